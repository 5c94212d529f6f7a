// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a request, and why something was left as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tipme_policy::{Identity, Role};

/// What can be changed, as people know it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Knob {
    Nice,
    Slice,
    Scheduling,
    Io,
    Autogroup,
    /// The control group that a process is in.
    Group,
    CpuWeight,
    IoWeight,
    MemoryLow,
    MemoryHigh,
    Reclaim,
    /// Advice about the memory of a process.
    Advice,
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Knob::Nice => "nice value",
            Knob::Slice => "time slice",
            Knob::Scheduling => "scheduling policy",
            Knob::Io => "I/O priority",
            Knob::Autogroup => "autogroup",
            Knob::Group => "control group",
            Knob::CpuWeight => "cpu.weight",
            Knob::IoWeight => "io.weight",
            Knob::MemoryLow => "memory.low",
            Knob::MemoryHigh => "memory.high",
            Knob::Reclaim => "memory.reclaim",
            Knob::Advice => "memory advice",
        })
    }
}

/// Why something was left as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SkipReason {
    /// It is not the default, and not from here: the user or another program wants it so.
    SetByOther(String),
    /// It was changed here, and then by somebody else.
    ChangedByOther(String),
    /// The process belongs to this user, not to the one whose processes may be changed.
    NotOwner(u32),
    /// The process is not below the one that was named.
    NotBelow(Identity),
    /// Process 1, or a thread of the kernel.
    System,
    /// The change could not be taken back with the rights at hand.
    Irreversible,
    /// The session is shared with processes of a more favoured role, which it now serves.
    SharedSession { session: u32, serves: Role },
    /// The kernel or systemd gives only so many changes in a time; the next call tries again.
    Later,
    /// The kernel refused, with this error number.
    Refused(i32),
    /// This service manager's unit holds the process.
    Unit(String),
    /// This back end or machine has nothing of the kind.
    Unsupported(&'static str),
    /// A bound was reached.
    TooMany(&'static str),
    /// The journal could not be written, so nothing was changed.
    Journal(String),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::SetByOther(value) => write!(f, "it is {value}, set by the user or another program"),
            SkipReason::ChangedByOther(value) => write!(f, "somebody else has set it to {value} since"),
            SkipReason::NotOwner(uid) => write!(f, "the process belongs to user {uid}"),
            SkipReason::NotBelow(top) => write!(f, "the process is not below process {}", top.pid),
            SkipReason::System => f.write_str("it belongs to the system"),
            SkipReason::Irreversible => f.write_str("it could not be taken back without CAP_SYS_NICE"),
            SkipReason::SharedSession { session, serves } => {
                write!(f, "session {session} also holds {serves:?} processes")
            }
            SkipReason::Later => {
                f.write_str("the kernel or systemd has no time for more changes now; it is tried again")
            }
            SkipReason::Refused(code) => write!(f, "refused: {}", std::io::Error::from_raw_os_error(*code)),
            SkipReason::Unit(unit) => write!(f, "it belongs to the service manager's {unit}"),
            SkipReason::Unsupported(what) => f.write_str(what),
            SkipReason::TooMany(what) => write!(f, "too many {what}"),
            SkipReason::Journal(error) => write!(f, "the journal cannot be written: {error}"),
        }
    }
}

/// Something that was asked for and not done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    pub who: Identity,
    pub knob: Knob,
    pub why: SkipReason,
}

/// What a call has done.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Applied {
    /// Knobs that have another value now, counted per thread, session, group and process.
    pub changed: usize,
    /// What was asked for and not done, once for each process and knob; `SKIPPED_MAX` at most.
    pub skipped: Vec<Skipped>,
    /// What is missing in `skipped`.
    pub skipped_more: usize,
    /// Processes that were gone, which is normal.
    pub vanished: usize,
    /// Something waits for the kernel or systemd: call again with no actions after [`crate::LATER_MS`].
    pub later: bool,
}

/// Entries of [`Applied::skipped`] at most.
pub(crate) const SKIPPED_MAX: usize = 1_024;

impl Applied {
    pub(crate) fn skip(&mut self, who: Identity, knob: Knob, why: SkipReason) {
        self.later |= why == SkipReason::Later;
        if self.skipped.iter().any(|known| known.who == who && known.knob == knob) {
            return;
        }
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(Skipped { who, knob, why });
        } else {
            self.skipped_more += 1;
        }
    }
}

/// What taking back has done. Nothing is left changed by this program where `failed` is zero.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Restored {
    /// Back at the baseline now.
    pub restored: usize,
    /// At the baseline already.
    pub unchanged: usize,
    /// Left alone, since somebody else has changed it in between.
    pub changed_by_others: usize,
    /// Of processes that are gone.
    pub vanished: usize,
    /// Refused, or not answered in time; they stay in the journal for the next time.
    pub failed: usize,
    /// Lines of the journal that could not be read.
    pub unreadable: usize,
}

/// Why something of a process was left as it was, from the last time that it was settled.
#[derive(Default, Debug)]
pub(crate) struct Notes {
    pub(crate) left: BTreeMap<Identity, BTreeMap<Knob, SkipReason>>,
}

impl Notes {
    pub(crate) fn add(&mut self, who: Identity, knob: Knob, why: SkipReason) {
        self.left.entry(who).or_default().insert(knob, why);
    }

    pub(crate) fn begin(&mut self, touched: &BTreeSet<Identity>) {
        self.left.retain(|who, _| !touched.contains(who));
    }

    /// Forgets processes that have no role, so that the notes have the bound of the roles.
    pub(crate) fn keep<T>(&mut self, roles: &BTreeMap<Identity, T>) {
        self.left.retain(|who, _| roles.contains_key(who));
    }
}
