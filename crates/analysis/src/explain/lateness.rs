// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a periodic thread woke up late: a budget of the time between its deadline and its wake-up.
//!
//! Until the record of the wake-up the timer is late; from then on the thread is ready, and what passes is its wake-up
//! latency: whoever has its CPU keeps it. Each nanosecond has exactly one cause.

use crate::timeline::cpu_intervals::{CpuInterval, CpuOwner, cpu_intervals};
use crate::timeline::recording::Recording;
use crate::timeline::silence::is_silent;
use crate::timeline::threads::ThreadState;
use std::collections::BTreeMap;
use tipme_measure::timer::LatenessCause;
use tipme_record::{Cpu, Nanos, Tid};

/// Whoever computes has a tick at least every ten milliseconds, which is recorded: shorter stretches tell nothing.
const SILENCE_MIN: Nanos = Nanos::from_millis(20);

/// A late wake-up of a thread that is pinned to a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    pub tid: Tid,
    pub cpu: Cpu,
    /// When it was to wake up.
    pub deadline: Nanos,
    /// When it looked at the clock after it had.
    pub wake: Nanos,
}

/// What the time went to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lateness {
    /// Causes with the names of who it was, the largest first; they sum to the whole.
    pub portions: Vec<(LatenessCause, String, Nanos)>,
    /// Since when the first of them had been at it, which may be before the deadline.
    pub begin: Nanos,
}

/// A part of the time.
struct LatenessPiece {
    cause: LatenessCause,
    /// The process, where it was a thread.
    name: String,
    /// The thread, where it was one.
    thread: String,
    interval: CpuInterval,
}

/// Explains a late wake-up; `None` where the recording does not reach back to it.
pub fn lateness(recording: &Recording, late: &Late) -> Option<Lateness> {
    if late.deadline < recording.complete_from() || late.wake <= late.deadline {
        return None;
    }
    let pieces = pieces(recording, late);
    let mut groups: BTreeMap<(LatenessCause, &str), Vec<&LatenessPiece>> = BTreeMap::new();
    for piece in &pieces {
        groups.entry((piece.cause, &piece.name)).or_default().push(piece);
    }
    let mut groups: Vec<(Nanos, Vec<&LatenessPiece>)> =
        groups.into_values().map(|group| (time(&group), group)).collect();
    groups.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let begin = begin(recording, &groups.first()?.1.first()?.interval);
    let portions = groups.iter().filter_map(|(time, group)| Some((group.first()?.cause, name(group)?, *time)));
    Some(Lateness { portions: portions.collect(), begin })
}

fn time(group: &[&LatenessPiece]) -> Nanos {
    Nanos(group.iter().map(|piece| piece.interval.time().0).sum())
}

/// The process, and its thread where only one of them had the CPU and has a name of its own.
fn name(group: &[&LatenessPiece]) -> Option<String> {
    let first = group.first()?;
    let alone = group.iter().all(|piece| piece.thread == first.thread);
    let own = alone && !first.thread.is_empty() && first.thread != first.name;
    Some(if own { format!("{} of {}", first.thread, first.name) } else { first.name.clone() })
}

/// When the thread was made ready; the deadline where it was not asleep then.
fn ready(recording: &Recording, late: &Late) -> Nanos {
    let span = recording.timeline.at(late.tid, late.deadline);
    let asleep = span.filter(|span| span.segment.state == ThreadState::Blocked);
    asleep.map_or(late.deadline, |span| span.end.clamp(late.deadline, late.wake))
}

/// The cpu_intervals of the CPU, cut at the time when the thread was made ready.
fn pieces(recording: &Recording, late: &Late) -> Vec<LatenessPiece> {
    let ready = ready(recording, late);
    let before = cpu_intervals(recording, late.cpu, late.deadline, ready).into_iter();
    let after = cpu_intervals(recording, late.cpu, ready, late.wake).into_iter();
    let before = before.map(|interval| asleep(recording, late.cpu, interval));
    before.chain(after.map(|interval| awake(recording, interval, late))).collect()
}

/// What keeps a thread from being made ready: whoever runs meanwhile does not keep a timer from firing.
fn asleep(recording: &Recording, cpu: Cpu, interval: CpuInterval) -> LatenessPiece {
    let name = match &interval.owner {
        CpuOwner::Thread { tid, .. } => format!("while {} ran", process(recording, *tid, interval.from)),
        CpuOwner::Work { function, .. } => format!("while work item {function} ran"),
        CpuOwner::Idle => String::new(),
        _ => return recorded(recording, interval),
    };
    let (cause, name) = stalled(recording, cpu, &interval).unwrap_or((LatenessCause::Timer, name));
    LatenessPiece { cause, name, thread: String::new(), interval }
}

/// What keeps a thread that is ready from running. A CPU that was away was nobody's.
fn awake(recording: &Recording, interval: CpuInterval, late: &Late) -> LatenessPiece {
    let own = matches!(interval.owner, CpuOwner::Thread { tid, .. } if tid == late.tid);
    let taken = recording.withdrawals.explains(late.cpu, interval.from, interval.to);
    let cause = match &interval.owner {
        CpuOwner::Thread { .. } | CpuOwner::Work { .. } | CpuOwner::Idle if taken => LatenessCause::Hypervisor,
        CpuOwner::Thread { .. } if own => LatenessCause::Own,
        _ => return recorded(recording, interval),
    };
    LatenessPiece { cause, name: String::new(), thread: String::new(), interval }
}

/// Whoever has the CPU by the records.
fn recorded(recording: &Recording, interval: CpuInterval) -> LatenessPiece {
    let (cause, name, thread) = match &interval.owner {
        CpuOwner::Interrupt { name } => (LatenessCause::Interrupt, name.clone(), String::new()),
        CpuOwner::Softirq { name } => (LatenessCause::Softirq, name.clone(), String::new()),
        CpuOwner::Thread { tid, name } => {
            (LatenessCause::Thread, process(recording, *tid, interval.from), name.clone())
        }
        CpuOwner::Work { function, .. } => (LatenessCause::Thread, format!("work item {function}"), String::new()),
        CpuOwner::Idle => (LatenessCause::IdleExit, String::new(), String::new()),
        CpuOwner::Unknown => (LatenessCause::Unexplained, String::new(), String::new()),
    };
    LatenessPiece { cause, name, thread, interval }
}

/// What held a CPU on which a timer was due and did not come, if it was nothing of this kernel.
fn stalled(recording: &Recording, cpu: Cpu, interval: &CpuInterval) -> Option<(LatenessCause, String)> {
    let (lo, hi) = (interval.from, interval.to);
    if recording.withdrawals.explains(cpu, lo, hi) {
        return Some((LatenessCause::Hypervisor, String::new()));
    }
    let silent = hi.since(lo) >= SILENCE_MIN && is_silent(recording, lo, hi);
    silent.then(|| (LatenessCause::Outside, "all CPUs at once".to_owned()))
}

/// The name of a thread's process.
fn process(recording: &Recording, tid: Tid, at: Nanos) -> String {
    recording.tasks.comm(recording.tasks.pid(tid, at), at)
}

/// Since when a thread had run, which may be long before the deadline.
fn begin(recording: &Recording, interval: &CpuInterval) -> Nanos {
    let (CpuOwner::Thread { tid, .. } | CpuOwner::Work { tid, .. }) = interval.owner else { return interval.from };
    let span = recording.timeline.at(tid, interval.from);
    span.filter(|span| span.segment.state == ThreadState::Running).map_or(interval.from, |span| span.start)
}
