// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes of late wakeups of a periodic thread: a budget of the time from its deadline to its
//! wakeup.
//!
//! Until the wakeup is recorded the timer is late; from then on the thread is runnable, and the
//! rest is wakeup latency caused by the owner of its CPU. Each nanosecond has exactly one cause.
//!
//! A timer is late because its CPU took no interrupt: a thread held interrupts off, or the CPU was
//! away. The rest belongs to the timer itself, such as its slack.

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

/// Extent of an outage.
const ALL: &str = "all CPUs at once";
const ONE: &str = "one CPU";

/// Late wakeup of a thread that is pinned to a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    pub tid: Tid,
    pub cpu: Cpu,
    /// Time at which the thread was to wake up.
    pub deadline: Nanos,
    /// Time at which the thread read the clock after its wakeup.
    pub wake: Nanos,
}

/// Causes of the delay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lateness {
    /// Causes with the names of their owners, the largest first; they sum to the whole.
    pub portions: Vec<(LatenessCause, String, Nanos)>,
    /// Start of the first cause, which may be before the deadline.
    pub begin: Nanos,
}

/// Part of the delay.
struct LatenessPiece {
    cause: LatenessCause,
    /// Process, if the owner was a thread.
    name: String,
    /// Name of the thread, if the owner was one.
    thread: String,
    interval: CpuInterval,
}

/// Explains a late wakeup; returns `None` if the recording does not reach back to it.
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
    let portions =
        groups.iter().filter_map(|(time, group)| Some((group.first()?.cause, name(group)?, *time)));
    Some(Lateness { portions: portions.collect(), begin })
}

fn time(group: &[&LatenessPiece]) -> Nanos {
    Nanos(group.iter().map(|piece| piece.interval.time().0).sum())
}

/// Returns the name of the process, with its thread if a single one with a name of its own had the
/// CPU.
fn name(group: &[&LatenessPiece]) -> Option<String> {
    let first = group.first()?;
    let alone = group.iter().all(|piece| piece.thread == first.thread);
    let own = alone && !first.thread.is_empty() && first.thread != first.name;
    Some(if own { format!("{} of {}", first.thread, first.name) } else { first.name.clone() })
}

/// Returns the time at which the thread became runnable. This is the deadline if the thread was not
/// asleep then, or if its wakeup was not recorded, as in the context of a thread hidden from the
/// recorder: such a timer counts as on time, unless its CPU took no interrupt.
fn ready(recording: &Recording, late: &Late) -> Nanos {
    let span = recording.timeline.at(late.tid, late.deadline);
    let recorded = |span: &Span| span.segment.context != CONTEXT_UNKNOWN;
    let asleep = span.filter(|span| span.segment.state == ThreadState::Blocked && recorded(span));
    asleep.map_or(late.deadline, |span| span.end.clamp(late.deadline, late.wake))
}

/// Returns the CPU that took the timer interrupt: timers may be on another CPU than their threads.
fn timer_cpu(recording: &Recording, late: &Late, ready: Nanos) -> Cpu {
    let sleep = recording.timeline.before(late.tid, ready);
    let waker =
        sleep.map(|span| span.segment.waker).filter(|waker| *waker != Tid(0) && *waker != late.tid);
    let ran = waker.and_then(|waker| recording.timeline.at(waker, ready));
    let ran = ran.filter(|span| span.segment.state == ThreadState::Running);
    ran.map_or(late.cpu, |span| Cpu(u32::from(span.segment.place)))
}

/// Returns the intervals of the timer's CPU until the wakeup, then those of the thread's CPU, split
/// where a CPU took no interrupt.
fn pieces(recording: &Recording, late: &Late) -> Vec<LatenessPiece> {
    let ready = ready(recording, late);
    let timer = timer_cpu(recording, late, ready);
    let before = cut(recording, timer, late.deadline, ready).into_iter();
    let after = cut(recording, late.cpu, ready, late.wake).into_iter();
    let before = before.map(|(overdue, interval)| asleep(recording, timer, interval, overdue));
    before
        .chain(after.map(|(overdue, interval)| awake(recording, interval, overdue, late)))
        .collect()
}

/// Returns the intervals of a CPU, each with the timer that was overdue there meanwhile.
fn cut(
    recording: &Recording,
    cpu: Cpu,
    lo: Nanos,
    hi: Nanos,
) -> Vec<(Option<&OverdueTimer>, CpuInterval)> {
    let tiles = recording.overdue.tiles(cpu, lo, hi).into_iter();
    tiles
        .flat_map(|(overdue, lo, hi)| {
            let intervals = cpu_intervals(recording, cpu, lo, hi).into_iter();
            intervals.map(move |interval| (overdue, interval))
        })
        .collect()
}

/// Returns the reason why a thread was not woken. A running thread delays a timer only by holding
/// interrupts off.
fn asleep(
    recording: &Recording,
    cpu: Cpu,
    interval: CpuInterval,
    overdue: Option<&OverdueTimer>,
) -> LatenessPiece {
    let name = match &interval.owner {
        CpuOwner::Thread { tid, .. } => {
            format!("while {} ran", process(recording, *tid, interval.from))
        }
        CpuOwner::Work { function, .. } => format!("while work item {function} ran"),
        CpuOwner::Idle => String::new(),
        _ => return recorded(recording, cpu, interval),
    };
    let (cause, name) =
        stalled(recording, cpu, &interval, overdue).unwrap_or((LatenessCause::Timer, name));
    LatenessPiece { cause, name, thread: String::new(), interval }
}

/// Returns the reason why a CPU took no interrupt.
fn deaf(
    recording: &Recording,
    overdue: &OverdueTimer,
    interval: &CpuInterval,
) -> (LatenessCause, String) {
    if is_held_off(recording, overdue) {
        return (LatenessCause::HeldOff, process(recording, overdue.tid, interval.from));
    }
    let function = accessed(recording, overdue)
        .or(overdue.function(&recording.names).filter(|_| overdue.tid != Tid(0)));
    away(recording, overdue.cpu, (overdue.due, overdue.came), function)
}

/// Returns `true` if the thread there held interrupts off, and the CPU cannot have been stolen
/// instead.
fn is_held_off(recording: &Recording, overdue: &OverdueTimer) -> bool {
    overdue.is_held_off() && !may_be_taken(recording, overdue.cpu, overdue.due, overdue.came)
}

/// Returns the owner of a CPU that was away, and the number of CPUs affected.
fn away(
    recording: &Recording,
    cpu: Cpu,
    (lo, hi): (Nanos, Nanos),
    function: Option<&str>,
) -> (LatenessCause, String) {
    let place = match function {
        _ if all_at_once(recording, lo, hi) => ALL.to_owned(),
        Some(function) => format!("{ONE}, in {function}"),
        None => ONE.to_owned(),
    };
    match outsider(recording, cpu, lo, hi) {
        Outsider::Undecided => {
            (LatenessCause::Outside, format!("{}, {place}", outsider_words(recording, cpu, lo, hi)))
        }
        who => (who.into(), place),
    }
}

/// Returns the reason why a runnable thread did not run. A CPU that was away had no owner.
fn awake(
    recording: &Recording,
    interval: CpuInterval,
    overdue: Option<&OverdueTimer>,
    late: &Late,
) -> LatenessPiece {
    let own = matches!(interval.owner, CpuOwner::Thread { tid, .. } if tid == late.tid);
    let taken = recording.withdrawals.explains(late.cpu, interval.from, interval.to);
    let free =
        matches!(interval.owner, CpuOwner::Thread { .. } | CpuOwner::Work { .. } | CpuOwner::Idle);
    let (cause, name) = match overdue.filter(|one| free && !is_held_off(recording, one)) {
        _ if free && taken => (LatenessCause::Hypervisor, String::new()),
        Some(away) => deaf(recording, away, &interval),
        None if own => (LatenessCause::Own, String::new()),
        None => return recorded(recording, late.cpu, interval),
    };
    LatenessPiece { cause, name, thread: String::new(), interval }
}

/// Returns the recorded owner of the CPU, unless the CPU may have been stolen from a handler.
fn recorded(recording: &Recording, cpu: Cpu, interval: CpuInterval) -> LatenessPiece {
    let (lo, hi) = (interval.from, interval.to);
    let (cause, name, thread) = match &interval.owner {
        CpuOwner::Interrupt { .. } | CpuOwner::Softirq { .. }
            if may_be_taken(recording, cpu, lo, hi) =>
        {
            let (cause, name) = away(recording, cpu, (lo, hi), None);
            (cause, name, String::new())
        }
        CpuOwner::Interrupt { name } => (LatenessCause::Interrupt, name.clone(), String::new()),
        CpuOwner::Softirq { name } => (LatenessCause::Softirq, name.clone(), String::new()),
        CpuOwner::Thread { tid, name } => {
            (LatenessCause::Thread, process(recording, *tid, interval.from), name.clone())
        }
        CpuOwner::Work { function, .. } => {
            (LatenessCause::Thread, format!("work item {function}"), String::new())
        }
        CpuOwner::Idle => (LatenessCause::IdleExit, String::new(), String::new()),
        CpuOwner::Unknown => (LatenessCause::Unexplained, String::new(), String::new()),
    };
    LatenessPiece { cause, name, thread, interval }
}

/// Returns the cause that stalled a CPU on which a timer was overdue or which was silent at work.
fn stalled(
    recording: &Recording,
    cpu: Cpu,
    interval: &CpuInterval,
    overdue: Option<&OverdueTimer>,
) -> Option<(LatenessCause, String)> {
    let (lo, hi) = (interval.from, interval.to);
    match overdue {
        _ if recording.withdrawals.explains(cpu, lo, hi) => {
            Some((LatenessCause::Hypervisor, String::new()))
        }
        Some(overdue) => Some(deaf(recording, overdue, interval)),
        None => {
            (silent_at_work(recording, lo, hi) > 0).then(|| away(recording, cpu, (lo, hi), None))
        }
    }
}

/// Returns the name of a thread's process.
fn process(recording: &Recording, tid: Tid, at: Nanos) -> String {
    recording.tasks.comm(recording.tasks.pid(tid, at), at)
}

/// Returns the time since which a thread had run, which may be long before the deadline.
fn begin(recording: &Recording, interval: &CpuInterval) -> Nanos {
    let (CpuOwner::Thread { tid, .. } | CpuOwner::Work { tid, .. }) = interval.owner else {
        return interval.from;
    };
    let span = recording.timeline.at(tid, interval.from);
    span.filter(|span| span.segment.state == ThreadState::Running)
        .map_or(interval.from, |span| span.start)
}
