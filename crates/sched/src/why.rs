// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of requests, and reasons for skipped changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use tipme_policy::{Identity, Role};
use tipme_record::named;

named! {
    /// A changeable setting, in the user's terms.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Knob {
        Nice = "nice value",
        Slice = "time slice",
        Scheduling = "scheduling policy",
        Io = "I/O priority",
        Autogroup = "autogroup",
        /// Control group of a process.
        Group = "control group",
        CpuWeight = "cpu.weight",
        IoWeight = "io.weight",
        MemoryLow = "memory.low",
        MemoryHigh = "memory.high",
        Reclaim = "memory.reclaim",
        /// Advice about the memory of a process.
        Advice = "memory advice",
    }
}

/// Reason why a setting was left alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SkipReason {
    /// Neither the default nor ours: set by the user or another program.
    SetByOther(String),
    /// Changed by us, and then by another program.
    ChangedByOther(String),
    /// The process belongs to this user, not to the permitted one.
    NotOwner(u32),
    /// The process is not below this one, to which changes are restricted.
    NotBelow(Identity),
    /// Process 1, or a kernel thread.
    System,
    /// The change could not be undone with the present privileges.
    Irreversible,
    /// The session is shared with processes of a more favoured role, which determines its weight.
    SharedSession { session: u32, serves: Role },
    /// The kernel or systemd limits the rate of changes; the next call retries.
    Later,
    /// The kernel refused, with this error number.
    Refused(i32),
    /// The process is in this unit of a service manager.
    Unit(String),
    /// The backend or machine has no such setting.
    Unsupported(&'static str),
    /// A bound was reached.
    TooMany(&'static str),
    /// The journal could not be written, so nothing was changed.
    Journal(String),
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::SetByOther(value) => {
                write!(f, "it is {value}, set by the user or another program")
            }
            SkipReason::ChangedByOther(value) => {
                write!(f, "another program has set it to {value} since")
            }
            SkipReason::NotOwner(uid) => write!(f, "the process belongs to user {uid}"),
            SkipReason::NotBelow(top) => write!(f, "the process is not below process {}", top.pid),
            SkipReason::System => f.write_str("it belongs to the system"),
            SkipReason::Irreversible => f.write_str("it could not be undone without CAP_SYS_NICE"),
            SkipReason::SharedSession { session, serves } => {
                write!(f, "session {session} also contains {serves:?} processes")
            }
            SkipReason::Later => {
                f.write_str("the kernel or systemd limits the rate of changes; it is retried")
            }
            SkipReason::Refused(code) => {
                write!(f, "refused: {}", std::io::Error::from_raw_os_error(*code))
            }
            SkipReason::Unit(unit) => write!(f, "it is in the systemd unit {unit}"),
            SkipReason::Unsupported(what) => f.write_str(what),
            SkipReason::TooMany(what) => write!(f, "too many {what}"),
            SkipReason::Journal(error) => write!(f, "cannot write the journal: {error}"),
        }
    }
}

/// A requested change that was not made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skipped {
    pub who: Identity,
    pub knob: Knob,
    pub why: SkipReason,
}

/// Result of a call.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Applied {
    /// Number of changed values, counted per thread, session, group and process.
    pub changed: usize,
    /// Changes not made, once for each process and knob; at most `SKIPPED_MAX`.
    pub skipped: Vec<Skipped>,
    /// Number of entries missing in `skipped`.
    pub skipped_more: usize,
    /// Number of processes that were gone, which is normal.
    pub vanished: usize,
    /// The kernel or systemd deferred a change: call again with no actions after
    /// [`crate::LATER_MS`].
    pub later: bool,
}

/// Maximum number of entries in [`Applied::skipped`].
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

/// Result of a restore. If `failed` is zero, nothing is left changed by this program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Restored {
    /// Back at the baseline now.
    pub restored: usize,
    /// At the baseline already.
    pub unchanged: usize,
    /// Left alone, since another program has changed it in between.
    pub changed_by_others: usize,
    /// Belonged to vanished processes.
    pub vanished: usize,
    /// Refused or unanswered; they stay in the journal for the next restore.
    pub failed: usize,
    /// Number of unreadable journal lines.
    pub unreadable: usize,
}

/// Reasons for skipped changes of each process, from its last settling.
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

    /// Forgets processes without a role, so that the notes share the bound of the roles.
    pub(crate) fn keep<T>(&mut self, roles: &BTreeMap<Identity, T>) {
        self.left.retain(|who, _| roles.contains_key(who));
    }
}
