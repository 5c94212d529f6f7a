// SPDX-License-Identifier: MIT OR Apache-2.0
//! The few primitive operations that the mechanism needs from a machine.
//!
//! A *place* is one thing that can hold a *value*: a thread's nice value, a session's autogroup, a
//! file of a control group, the group of a process, the existence of a group. Every change is a
//! [`World::set`] of one place, so a single journal covers everything, and an in-memory world can
//! crash at every step.

use crate::units_names::Property;
use crate::why::SkipReason;
use serde::{Deserialize, Serialize};
use std::io;
use tipme_policy::Identity;

/// Age in clock ticks up to which a process counts as young: half a second.
const YOUNG_TICKS: u64 = 50;

/// Milliseconds after which a change deferred by the kernel can be retried.
pub const LATER_MS: u64 = 110;
/// Maximum number of retries, at that interval, for a deferred restore.
pub(crate) const LATER_TRIES_MAX: usize = 20;

/// Per-thread settings of a process. The discriminant is the order in which they are set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThreadKnob {
    /// -20 to 19.
    Nice,
    /// Time slice in nanoseconds; 0 is the scheduler's default.
    Slice,
    /// Policy number with the reset-on-fork flag.
    Scheduling,
    /// Class and level as packed by the kernel.
    Io,
}

impl ThreadKnob {
    pub(crate) const ALL: [ThreadKnob; 4] =
        [ThreadKnob::Nice, ThreadKnob::Slice, ThreadKnob::Scheduling, ThreadKnob::Io];

    /// Returns `true` for the value of an untouched thread.
    pub(crate) fn is_default(self, value: i64) -> bool {
        match self {
            ThreadKnob::Nice | ThreadKnob::Slice | ThreadKnob::Scheduling => value == 0,
            // No class at all, or the equivalent reported by older kernels: best effort, level 4.
            ThreadKnob::Io => value == 0 || value == (2 << 13 | 4),
        }
    }

    /// Returns `true` for a baseline that the user chose.
    pub(crate) fn is_wish(self, baseline: &Value) -> bool {
        baseline.number().is_some_and(|value| !self.is_default(value))
    }
}

/// One thing that can hold a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KnobPlace {
    /// A knob of one thread. Thread ids are reused like PIDs, so the start time is part of the
    /// place.
    Thread { process: Identity, tid: u32, start: u64, knob: ThreadKnob },
    /// A record, not a setting: this value was applied to a process of the session and may have
    /// been inherited.
    Trace { session: u32, knob: ThreadKnob, value: i64 },
    /// Autogroup of a session; its number is unique until the next boot.
    Autogroup { number: u64, session: u32 },
    /// A number in a file of a control group; -1 is `max`.
    File { path: String },
    /// State of a controller for a group's children: 0 or 1.
    Controller { group: String, name: String },
    /// Folder of a process's control group.
    Member { process: Identity, root: String },
    /// Existence of a control group: 0 or 1. `root` is the mount point of its hierarchy.
    Group { path: String, root: String },
    /// A property of the unit with this folder; -1 is "not set" and "infinity".
    Unit { folder: String, property: Property },
    /// Existence of one of our scopes: 0 or 1. It starts with the process `first`.
    Scope { folder: String, root: String, first: Identity },
}

impl KnobPlace {
    /// Returns the restore phase: limits first, then controllers, then processes, then groups.
    pub(crate) fn phase(&self) -> u8 {
        match self {
            KnobPlace::Thread { .. } | KnobPlace::Trace { .. } | KnobPlace::Autogroup { .. } => 0,
            KnobPlace::File { .. } | KnobPlace::Unit { .. } => 0,
            KnobPlace::Controller { .. } => 1,
            KnobPlace::Member { .. } => 2,
            // Last, since the other groups send their processes there.
            KnobPlace::Group { path, .. } if path.ends_with("/rest") => 4,
            KnobPlace::Group { .. } | KnobPlace::Scope { .. } => 3,
        }
    }

    /// Returns folder and root of a group that the engine created for processes.
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

/// Value of a place.
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

/// Reason why an operation on a place failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KnobFault {
    /// The process, thread, session or group is gone.
    Vanished,
    /// The kernel or systemd limits the rate of changes or is busy: retry later.
    Later,
    /// Refused with this error number. After `ETIMEDOUT` the change may still happen.
    Refused(i32),
}

impl KnobFault {
    /// Returns the fault as the reason of a skipped change; `missing` is that of a missing place.
    pub(crate) fn reason(self, missing: &'static str) -> SkipReason {
        match self {
            KnobFault::Vanished => SkipReason::Unsupported(missing),
            KnobFault::Later => SkipReason::Later,
            KnobFault::Refused(code) => SkipReason::Refused(code),
        }
    }
}

/// Present settings of a thread.
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

    /// Returns `true` for policies without a real-time priority, regardless of reset-on-fork.
    pub(crate) fn is_fair(&self) -> bool {
        let policy = self.scheduling & !i64::from(libc::SCHED_RESET_ON_FORK);
        [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].map(i64::from).contains(&policy)
    }

    pub(crate) fn place(&self, process: Identity, knob: ThreadKnob) -> KnobPlace {
        KnobPlace::Thread { process, tid: self.tid, start: self.start, knob }
    }
}

/// A session's autogroup, as read from one of its processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Autogroup {
    pub(crate) number: u64,
    pub(crate) session: u32,
}

/// Advice about the memory of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// Its pages are the first to reclaim.
    Cold,
    /// Its pages are reclaimed now.
    PageOut,
    /// Its pages are read back.
    WillNeed,
}

/// The machine's memory in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Stock {
    pub(crate) total: u64,
    /// Free swap.
    pub(crate) swap: u64,
}

/// The machine, or a simulation of one.
pub(crate) trait World {
    /// Starts a call: forgets data from earlier calls.
    fn begin_call(&mut self);
    /// Ends a call: releases all held processes.
    fn end_call(&mut self);
    /// Starts a restore: unresponsive managers get a new chance, within a bounded time, until
    /// [`World::end_call`].
    fn begin_restore(&mut self);
    /// Returns the present value of the place.
    fn get(&self, place: &KnobPlace) -> Result<Value, KnobFault>;
    /// Sets the place after checking that process and thread are still the same.
    fn set(&mut self, place: &KnobPlace, value: &Value) -> Result<(), KnobFault>;
    /// Checks whether the place may be changed now: owner, tree, kind of process. Not checked for a
    /// restore.
    fn admit(&self, place: &KnobPlace) -> Result<(), SkipReason>;
    /// Returns `true` if a change from `baseline` can be undone later with the present privileges.
    fn reversible(&self, place: &KnobPlace, baseline: &Value) -> bool;

    /// Returns `true` if a process has just been forked, so that a wrapper such as `nice` may still
    /// be running.
    fn is_young(&self, process: Identity) -> bool {
        self.ticks().saturating_sub(process.start) < YOUNG_TICKS
    }
    /// Returns `true` if threads can have time slices of their own, from Linux 6.12 on.
    fn has_slices(&self) -> bool;
    /// Returns the threads of a process, the first one first.
    fn threads(&self, process: Identity) -> Result<Vec<ThreadSettings>, KnobFault>;
    /// Returns the present session of the process.
    fn session(&self, process: Identity) -> Option<u32>;
    /// Returns the session's autogroup.
    fn autogroup(&self, process: Identity) -> Option<Autogroup>;
    /// Returns `true` if the process lacks the privilege for a negative nice value, and can only
    /// have inherited one.
    fn is_unprivileged(&self, process: Identity) -> bool;
    /// Returns the process and its ancestors, nearest first, each with its session.
    fn lineage(&self, process: Identity) -> Vec<(Identity, u32)>;
    /// Returns its descendants, without those selected by `leads` and their descendants.
    fn below(&self, process: Identity, leads: &dyn Fn(Identity) -> bool) -> Vec<Identity>;
    /// Returns a number that changes with every fork of a process or thread; `None` if it is
    /// unknown.
    fn last_pid(&self) -> Option<u64>;
    /// Returns all processes.
    fn all(&self) -> Vec<Identity>;
    /// Returns the processes in a control group.
    fn members(&self, group: &str) -> Vec<Identity>;
    /// Returns the processes in a control group and its descendants.
    fn tree(&self, group: &str) -> Vec<Identity>;
    /// Reclaims up to `bytes` of a group's memory.
    fn reclaim(&mut self, group: &str, bytes: u64) -> Result<(), KnobFault>;
    /// Returns the resident memory of a process in bytes; 0 if it is gone.
    fn resident(&self, process: Identity) -> u64;
    /// Returns the machine's memory.
    fn memory(&self) -> Stock;
    /// Returns the size of a group's file pages in bytes.
    fn file_bytes(&self, group: &str) -> u64;
    /// Returns PSI `full` of a group's memory over the last 10 s, in percent.
    fn full_percent(&self, group: &str) -> f32;
    /// Advises up to `most` bytes of the memory of a process; returns the number of bytes advised.
    fn advise(&mut self, process: Identity, advice: Advice, most: u64) -> Result<u64, KnobFault>;
    /// Returns the clock ticks since boot, as in [`Identity::start`].
    fn ticks(&self) -> u64;
    /// Returns a number that changes with every boot.
    fn boot(&self) -> u64;
}

/// Converts a kernel error into a fault.
pub(crate) fn fault(error: io::Error) -> KnobFault {
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT | libc::ENODEV) => KnobFault::Vanished,
        Some(libc::EAGAIN) => KnobFault::Later,
        code => KnobFault::Refused(code.unwrap_or(libc::EIO)),
    }
}
