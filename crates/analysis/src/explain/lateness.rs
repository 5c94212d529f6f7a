// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a periodic thread woke up late: a budget of the time between its deadline and its wake-up.
//!
//! Until the record of the wake-up the timer is late; from then on the thread is ready, and what passes is its wake-up
//! latency: whoever has its CPU keeps it. Each nanosecond has exactly one cause.
//!
//! A timer is late because its CPU took no interrupt: the thread there held them off, or the CPU was away. What is
//! neither is the timer's own, such as its slack.

use crate::explain::outsider::{accessed, all_at_once, may_be_taken, outsider, outsider_words};
use crate::model::Outsider;
use crate::timeline::cpu_intervals::{CpuInterval, CpuOwner, cpu_intervals};
use crate::timeline::overdue::OverdueTimer;
use crate::timeline::recording::Recording;
use crate::timeline::silence::silent_at_work;
use crate::timeline::threads::{CONTEXT_UNKNOWN, Span, ThreadState};
use std::collections::BTreeMap;
use tipme_measure::timer::LatenessCause;
use tipme_record::{Cpu, Nanos, Tid};

/// What was away.
const ALL: &str = "all CPUs at once";
const ONE: &str = "one CPU";

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

/// When the thread was made ready; the deadline where it was not asleep then, and where its wake-up was not recorded,
/// as on the time of a thread that is hidden from the recorder: such a timer counts as in time, unless its CPU took no
/// interrupt.
fn ready(recording: &Recording, late: &Late) -> Nanos {
    let span = recording.timeline.at(late.tid, late.deadline);
    let recorded = |span: &Span| span.segment.context != CONTEXT_UNKNOWN;
    let asleep = span.filter(|span| span.segment.state == ThreadState::Blocked && recorded(span));
    asleep.map_or(late.deadline, |span| span.end.clamp(late.deadline, late.wake))
}

/// The CPU whose interrupt made the thread ready: timers may be on another one than their threads.
fn timer_cpu(recording: &Recording, late: &Late, ready: Nanos) -> Cpu {
    let sleep = recording.timeline.before(late.tid, ready);
    let waker = sleep.map(|span| span.segment.waker).filter(|waker| *waker != Tid(0) && *waker != late.tid);
    let ran = waker.and_then(|waker| recording.timeline.at(waker, ready));
    let ran = ran.filter(|span| span.segment.state == ThreadState::Running);
    ran.map_or(late.cpu, |span| Cpu(u32::from(span.segment.place)))
}

/// The intervals of the timer's CPU until the thread was made ready, then those of its own; cut where a CPU took no
/// interrupt.
fn pieces(recording: &Recording, late: &Late) -> Vec<LatenessPiece> {
    let ready = ready(recording, late);
    let timer = timer_cpu(recording, late, ready);
    let before = cut(recording, timer, late.deadline, ready).into_iter();
    let after = cut(recording, late.cpu, ready, late.wake).into_iter();
    let before = before.map(|(overdue, interval)| asleep(recording, timer, interval, overdue));
    before.chain(after.map(|(overdue, interval)| awake(recording, interval, overdue, late))).collect()
}

/// The intervals of a CPU, with the timer that was due there meanwhile.
fn cut(recording: &Recording, cpu: Cpu, lo: Nanos, hi: Nanos) -> Vec<(Option<&OverdueTimer>, CpuInterval)> {
    let tiles = recording.overdue.tiles(cpu, lo, hi).into_iter();
    let intervals = |(overdue, lo, hi)| {
        let intervals = cpu_intervals(recording, cpu, lo, hi).into_iter();
        intervals.map(move |interval| (overdue, interval))
    };
    tiles.flat_map(intervals).collect()
}

/// What keeps a thread from being made ready: whoever runs meanwhile keeps a timer from firing only by holding
/// interrupts off.
fn asleep(recording: &Recording, cpu: Cpu, interval: CpuInterval, overdue: Option<&OverdueTimer>) -> LatenessPiece {
    let name = match &interval.owner {
        CpuOwner::Thread { tid, .. } => format!("while {} ran", process(recording, *tid, interval.from)),
        CpuOwner::Work { function, .. } => format!("while work item {function} ran"),
        CpuOwner::Idle => String::new(),
        _ => return recorded(recording, cpu, interval),
    };
    let (cause, name) = stalled(recording, cpu, &interval, overdue).unwrap_or((LatenessCause::Timer, name));
    LatenessPiece { cause, name, thread: String::new(), interval }
}

/// Why a CPU took no interrupt.
fn deaf(recording: &Recording, overdue: &OverdueTimer, interval: &CpuInterval) -> (LatenessCause, String) {
    if is_held_off(recording, overdue) {
        return (LatenessCause::HeldOff, process(recording, overdue.tid, interval.from));
    }
    let function =
        accessed(recording, overdue).or(overdue.function(&recording.names).filter(|_| overdue.tid != Tid(0)));
    away(recording, overdue.cpu, (overdue.due, overdue.came), function)
}

/// Whether the thread there held interrupts off, and nobody can have taken the CPU instead.
fn is_held_off(recording: &Recording, overdue: &OverdueTimer) -> bool {
    overdue.is_held_off() && !may_be_taken(recording, overdue.cpu, overdue.due, overdue.came)
}

/// Who had a CPU that was away, and how many were.
fn away(recording: &Recording, cpu: Cpu, (lo, hi): (Nanos, Nanos), function: Option<&str>) -> (LatenessCause, String) {
    let place = match function {
        _ if all_at_once(recording, lo, hi) => ALL.to_owned(),
        Some(function) => format!("{ONE}, in {function}"),
        None => ONE.to_owned(),
    };
    match outsider(recording, cpu, lo, hi) {
        Outsider::Undecided => (LatenessCause::Outside, format!("{}, {place}", outsider_words(recording, cpu, lo, hi))),
        who => (who.into(), place),
    }
}

/// What keeps a thread that is ready from running. A CPU that was away was nobody's.
fn awake(recording: &Recording, interval: CpuInterval, overdue: Option<&OverdueTimer>, late: &Late) -> LatenessPiece {
    let own = matches!(interval.owner, CpuOwner::Thread { tid, .. } if tid == late.tid);
    let taken = recording.withdrawals.explains(late.cpu, interval.from, interval.to);
    let free = matches!(interval.owner, CpuOwner::Thread { .. } | CpuOwner::Work { .. } | CpuOwner::Idle);
    let (cause, name) = match overdue.filter(|one| free && !is_held_off(recording, one)) {
        _ if free && taken => (LatenessCause::Hypervisor, String::new()),
        Some(away) => deaf(recording, away, &interval),
        None if own => (LatenessCause::Own, String::new()),
        None => return recorded(recording, late.cpu, interval),
    };
    LatenessPiece { cause, name, thread: String::new(), interval }
}

/// Whoever has the CPU by the records, unless it may have been taken from a handler.
fn recorded(recording: &Recording, cpu: Cpu, interval: CpuInterval) -> LatenessPiece {
    let (lo, hi) = (interval.from, interval.to);
    let (cause, name, thread) = match &interval.owner {
        CpuOwner::Interrupt { .. } | CpuOwner::Softirq { .. } if may_be_taken(recording, cpu, lo, hi) => {
            let (cause, name) = away(recording, cpu, (lo, hi), None);
            (cause, name, String::new())
        }
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

/// What held a CPU on which a timer was due and did not come.
fn stalled(
    recording: &Recording,
    cpu: Cpu,
    interval: &CpuInterval,
    overdue: Option<&OverdueTimer>,
) -> Option<(LatenessCause, String)> {
    let (lo, hi) = (interval.from, interval.to);
    match overdue {
        _ if recording.withdrawals.explains(cpu, lo, hi) => Some((LatenessCause::Hypervisor, String::new())),
        Some(overdue) => Some(deaf(recording, overdue, interval)),
        None => (silent_at_work(recording, lo, hi) > 0).then(|| away(recording, cpu, (lo, hi), None)),
    }
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
