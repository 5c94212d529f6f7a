// SPDX-License-Identifier: MIT OR Apache-2.0
//! The few primitive operations that the mechanism needs of a machine.
//!
//! A *place* is one thing that can hold a *value*: a thread's nice value, a session's autogroup, a
//! file of a control group, the group of a process, whether a group exists. Whatever is changed, is
//! changed by [`World::set`] of one place, so one journal covers everything, and a world in memory
//! can stop at every step.

use crate::units_names::Property;
use crate::why::SkipReason;
use serde::{Deserialize, Serialize};
use std::io;
use tipme_policy::Identity;

/// A process is young for so many clock ticks: half a second.
const YOUNG_TICKS: u64 = 50;

/// Milliseconds after which something that had to wait for the kernel can be tried again.
pub const LATER_MS: u64 = 110;
/// Tries, that far apart, to take something back that the kernel wants to wait for.
pub(crate) const LATER_TRIES_MAX: usize = 20;

/// What is set for each thread of a process. The number is the order in which it is set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThreadKnob {
    /// -20 to 19.
    Nice,
    /// Nanoseconds of the thread's time slice; 0 is what the scheduler gives by itself.
    Slice,
    /// The policy's number, with the flag that resets it on fork.
    Scheduling,
    /// Class and level as the kernel packs them.
    Io,
}

impl ThreadKnob {
    pub(crate) const ALL: [ThreadKnob; 4] =
        [ThreadKnob::Nice, ThreadKnob::Slice, ThreadKnob::Scheduling, ThreadKnob::Io];

    /// True for what a thread has that nobody has touched.
    pub(crate) fn is_default(self, value: i64) -> bool {
        match self {
            ThreadKnob::Nice | ThreadKnob::Slice | ThreadKnob::Scheduling => value == 0,
            // No class at all, or what older kernels say in its stead: best effort, level 4.
            ThreadKnob::Io => value == 0 || value == (2 << 13 | 4),
        }
    }

    /// True for a baseline that somebody wants.
    pub(crate) fn is_wish(self, baseline: &Value) -> bool {
        baseline.number().is_some_and(|value| !self.is_default(value))
    }
}

/// One thing that can hold a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KnobPlace {
    /// A knob of one thread. Thread numbers are reused as process numbers are, so the start belongs to it.
    Thread { process: Identity, tid: u32, start: u64, knob: ThreadKnob },
    /// Nothing that can be set: says that this value was put into a process of the session, for what inherited it.
    Trace { session: u32, knob: ThreadKnob, value: i64 },
    /// The autogroup of a session: its number is unique until the machine stops.
    Autogroup { number: u64, session: u32 },
    /// A number in a file of a control group; -1 is `max`.
    File { path: String },
    /// Whether a group's children have a controller: 0 or 1.
    Controller { group: String, name: String },
    /// The folder of the control group that a process is in.
    Member { process: Identity, root: String },
    /// Whether a control group exists: 0 or 1. `root` is where its hierarchy is mounted.
    Group { path: String, root: String },
    /// A property of the unit that has this folder; -1 is "not set" and "infinity".
    Unit { folder: String, property: Property },
    /// Whether a scope of ours exists: 0 or 1. It begins with the process `first`.
    Scope { folder: String, root: String, first: Identity },
}

impl KnobPlace {
    /// When it is taken back: groups lose their limits, then controllers, then processes, then they go.
    pub(crate) fn phase(&self) -> u8 {
        match self {
            KnobPlace::Thread { .. } | KnobPlace::Trace { .. } | KnobPlace::Autogroup { .. } => 0,
            KnobPlace::File { .. } | KnobPlace::Unit { .. } => 0,
            KnobPlace::Controller { .. } => 1,
            KnobPlace::Member { .. } => 2,
            // The others send their processes there.
            KnobPlace::Group { path, .. } if path.ends_with("/rest") => 4,
            KnobPlace::Group { .. } | KnobPlace::Scope { .. } => 3,
        }
    }

    /// Folder and root of a group that was made here for processes.
    pub(crate) fn group_folder(&self) -> Option<(&str, &str)> {
        match self {
            KnobPlace::Group { path, root } => Some((path, root)),
            KnobPlace::Scope { folder, root, .. } => Some((folder, root)),
            _ => None,
        }
    }

    pub(crate) fn process(&self) -> Option<Identity> {
        match self {
            KnobPlace::Thread { process, .. } | KnobPlace::Member { process, .. } => Some(*process),
            _ => None,
        }
    }
}

/// What a place holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
}

impl Value {
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
        }
    }
}

impl Default for Value {
    fn default() -> Value {
        Value::Number(0)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => text.fmt(f),
        }
    }
}

/// Why an operation on a place did not happen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KnobFault {
    /// The process, thread, session or group is gone.
    Vanished,
    /// The kernel, or who keeps units, wants fewer changes in a time, or is not done: try again later.
    Later,
    /// Whoever was asked said no, with this error number. With `ETIMEDOUT` the change may still happen.
    Refused(i32),
}

/// A thread with what is set for it now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ThreadSettings {
    pub(crate) tid: u32,
    pub(crate) start: u64,
    pub(crate) session: u32,
    pub(crate) nice: i64,
    pub(crate) slice: i64,
    pub(crate) scheduling: i64,
    pub(crate) io: i64,
}

impl ThreadSettings {
    pub(crate) fn value(&self, knob: ThreadKnob) -> i64 {
        match knob {
            ThreadKnob::Nice => self.nice,
            ThreadKnob::Slice => self.slice,
            ThreadKnob::Scheduling => self.scheduling,
            ThreadKnob::Io => self.io,
        }
    }

    /// Whether it has one of the policies without a real-time priority, whatever is reset on fork.
    pub(crate) fn is_fair(&self) -> bool {
        let policy = self.scheduling & !i64::from(libc::SCHED_RESET_ON_FORK);
        [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].map(i64::from).contains(&policy)
    }

    pub(crate) fn place(&self, process: Identity, knob: ThreadKnob) -> KnobPlace {
        KnobPlace::Thread { process, tid: self.tid, start: self.start, knob }
    }
}

/// A session's autogroup as a process in it shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Autogroup {
    pub(crate) number: u64,
    pub(crate) session: u32,
}

/// What is said about the memory of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// Its pages go first when memory is short.
    Cold,
    /// Its pages go now.
    PageOut,
    /// Its pages are wanted back.
    WillNeed,
}

/// The memory of the machine, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Stock {
    pub(crate) total: u64,
    /// Swap that is free.
    pub(crate) swap: u64,
}

/// The machine, or a picture of one.
pub(crate) trait World {
    /// A call begins: forgets what was looked at before.
    fn begin_call(&mut self);
    /// A call is over: holds nothing any more.
    fn end_call(&mut self);
    /// Everything is going to be taken back: who did not answer lately gets a new chance until [`World::end_call`], for
    /// a time that is bounded.
    fn begin_restore(&mut self);
    /// What the place holds now.
    fn get(&self, place: &KnobPlace) -> Result<Value, KnobFault>;
    /// Changes it, having made sure that process and thread are still the ones that are meant.
    fn set(&mut self, place: &KnobPlace, value: &Value) -> Result<(), KnobFault>;
    /// Whether the place may be changed at all: owner, tree, kind of process, as they are now. Not asked for taking back.
    fn admit(&self, place: &KnobPlace) -> Result<(), SkipReason>;
    /// Whether a change from `baseline` can be taken back later with the rights at hand.
    fn reversible(&self, place: &KnobPlace, baseline: &Value) -> bool;

    /// Whether a process has just been forked, so that what is run before its program may still be at work.
    fn is_young(&self, process: Identity) -> bool {
        self.ticks().saturating_sub(process.start) < YOUNG_TICKS
    }
    /// Whether a thread can have a time slice of its own: from Linux 6.12 on.
    fn has_slices(&self) -> bool;
    /// The threads of a process, the first one first.
    fn threads(&self, process: Identity) -> Result<Vec<ThreadSettings>, KnobFault>;
    /// The session that the process belongs to now.
    fn session(&self, process: Identity) -> Option<u32>;
    /// The session's autogroup.
    fn autogroup(&self, process: Identity) -> Option<Autogroup>;
    /// True where the process has no right to a negative nice value, so that it can only have inherited one.
    fn is_unprivileged(&self, process: Identity) -> bool;
    /// The process and those above it, the nearest first, each with its session.
    fn lineage(&self, process: Identity) -> Vec<(Identity, u32)>;
    /// The processes below it, without those that `leads` knows and what is below them.
    fn below(&self, process: Identity, leads: &dyn Fn(Identity) -> bool) -> Vec<Identity>;
    /// A number that is another one once any process or thread was forked; `None` where that cannot be told.
    fn last_pid(&self) -> Option<u64>;
    /// All processes.
    fn all(&self) -> Vec<Identity>;
    /// The processes in a control group.
    fn members(&self, group: &str) -> Vec<Identity>;
    /// The processes in a control group and in those below it.
    fn tree(&self, group: &str) -> Vec<Identity>;
    /// Has the kernel take up to `bytes` of a group's memory back.
    fn reclaim(&mut self, group: &str, bytes: u64) -> Result<(), KnobFault>;
    /// Bytes of a process that are in memory; 0 where it is gone.
    fn resident(&self, process: Identity) -> u64;
    /// What the machine has.
    fn memory(&self) -> Stock;
    /// Bytes of a group that are pages of files.
    fn file_bytes(&self, group: &str) -> u64;
    /// How much of the last 10 s all in a group waited for memory, in percent.
    fn full_percent(&self, group: &str) -> f32;
    /// Gives advice about up to `most` bytes of the memory of a process; returns the bytes that it was given for.
    fn advise(&mut self, process: Identity, advice: Advice, most: u64) -> Result<u64, KnobFault>;
    /// Clock ticks since the machine started, as in [`Identity::start`].
    fn ticks(&self) -> u64;
    /// A number that is another one after the machine has been started again.
    fn boot(&self) -> u64;
}

/// The fault that an error of the kernel stands for.
pub(crate) fn fault(error: io::Error) -> KnobFault {
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT | libc::ENODEV) => KnobFault::Vanished,
        Some(libc::EAGAIN) => KnobFault::Later,
        code => KnobFault::Refused(code.unwrap_or(libc::EIO)),
    }
}
