// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle loop on one CPU.

use super::classic;
use super::counter::Counter;
use super::options::{GAP_MIN, IdleOptions, nanos};
use super::plan::{Loop, LoopNotes, LoopPlan, LoopSpan};
use crate::cpu_work::cpu_time;
use crate::cpus::stay_on;
use crate::priority::set_policy;
use anyhow::{Context, Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use tipme_measure::idle::Observed;

/// Minimum length of a gap in turns of the loop: a clock that is slow to read (HPET, ACPI PM) takes
/// as long as some gaps.
const TURNS_IN_GAP: u64 = 2;

/// A loop that is ready to run: all its allocations and calibrations are done.
pub(super) struct Prepared {
    cpu: usize,
    plan: LoopPlan,
    notes: LoopNotes,
    classic: Option<Loop>,
}

impl Prepared {
    /// Observes the CPU until the time is over or `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<Observed> {
        let (plan, notes) = (&mut self.plan, &mut self.notes);
        notes.pairs.push(plan.counter.sure_pair());
        // Measured only now, while the other loops read too: a slow clock is shared by all CPUs.
        plan.gap = plan.gap.max(TURNS_IN_GAP * plan.counter.turn());
        if self.classic.is_none() && plan.record <= plan.gap {
            bail!(
                "the clock is too slow to read for this --resolution; give a longer one, such as 1ms"
            );
        }
        let before = (cpu_time(), faults());
        // Starts here, so that a loop that never gets its CPU counts that as missed.
        let begin = plan.counter.read();
        yield_to_all()?;
        let end = match self.classic {
            None => watch(begin, plan, stop, notes),
            Some(known) => classic::watch(known.iterations, begin, plan, stop, notes),
        };
        let gap = plan.gap;
        let cpu_time_ns = (cpu_time() - before.0).as_nanos() as u64;
        let watched = LoopSpan { begin, end, gap, cpu_time_ns, faults: faults() - before.1 };
        notes.pairs.push(plan.counter.sure_pair());
        Ok(self.notes.observed(self.cpu, self.plan.counter, &watched, self.classic))
    }
}

/// Prepares the calling thread to observe a CPU, at its usual priority.
pub(super) fn prepare(cpu: usize, options: &IdleOptions) -> Result<Prepared> {
    stay_on(cpu)?;
    let counter = Counter::choose();
    let (pairs, ticks_per_ns) = counter.look();
    let ticks = |time| (nanos(time) as f64 * ticks_per_ns) as u64;
    let plan = LoopPlan {
        counter,
        gap: ticks(GAP_MIN),
        record: ticks(options.resolution).max(1),
        duration: ticks(options.duration),
    };
    let mut notes = LoopNotes::new(options);
    pairs.into_iter().for_each(|pair| {
        notes.pairs.push(pair);
    });
    let classic = options.classic.then(|| classic::calibrate(counter, plan.record));
    Ok(Prepared { cpu, plan, notes, classic })
}

/// Switches the calling thread to SCHED_IDLE. An unprivileged user cannot revert that.
fn yield_to_all() -> Result<()> {
    set_policy(libc::SCHED_IDLE, 0).context("cannot take the idle priority (SCHED_IDLE)")
}

/// Reads the counter until the end. The time between two readings is either the loop's own or a
/// gap.
fn watch(begin: u64, plan: &LoopPlan, stop: &AtomicBool, notes: &mut LoopNotes) -> u64 {
    let end = begin.saturating_add(plan.duration);
    let (mut last, mut own) = (begin, 0);
    loop {
        let at = plan.counter.read();
        let passed = at.saturating_sub(last);
        if passed <= plan.gap {
            own += passed;
            if own < plan.record {
                last = at;
                continue;
            }
            own -= plan.record;
            notes.record(at, plan.counter);
        } else {
            notes.gap(last, passed);
        }
        last = at;
        if at >= end || stop.load(Ordering::Relaxed) {
            return last;
        }
    }
}

/// Returns the page faults of this thread so far.
fn faults() -> u64 {
    // SAFETY: an all-zero `rusage` is one, and the call writes to no more than that.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    (usage.ru_minflt + usage.ru_majflt) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locked_buffer::LockedBuffer;
    use std::time::Duration;

    #[test]
    fn everybody_may_come_last() {
        let yielded = std::thread::spawn(yield_to_all);
        yielded.join().expect("it ends").expect("everybody may");
    }

    #[test]
    fn room_is_bounded() {
        let day = Duration::from_secs(86_400);
        let options = IdleOptions {
            duration: day,
            resolution: Duration::from_millis(100),
            classic: false,
            cpus: vec![0],
        };
        let notes = LoopNotes::new(&options);
        assert_eq!(notes.records_per_pair, 2 * 864_016 / 4_096);
        assert!(notes.gaps.items().is_empty() && notes.gaps.lost() == 0);
    }

    #[test]
    fn lost_gaps_keep_their_time() {
        let options = IdleOptions {
            duration: Duration::from_millis(1),
            resolution: Duration::from_millis(1),
            classic: false,
            cpus: vec![0],
        };
        let mut notes =
            LoopNotes { gaps: LockedBuffer::new(1, (0, 0)), ..LoopNotes::new(&options) };
        (0..100).for_each(|at| notes.gap(100 * at, 10));
        notes.gap(10_000, 50);
        let watched = LoopSpan { begin: 0, end: 11_000, gap: 7_000, cpu_time_ns: 9_950, faults: 3 };
        let observed = notes.observed(5, Counter::Clock, &watched, None);
        assert_eq!(observed.gaps.len() as u64 + observed.gaps_lost, 101);
        assert!(observed.gaps_lost > 0 && observed.lost_ns == 10 * observed.gaps_lost);
        assert_eq!(
            observed.gaps.last().map(|gap| (gap.start_ns, gap.length_ns)),
            Some((10_000, 50))
        );
        assert_eq!(
            (observed.stolen_ns(), observed.wall_ns(), observed.gap_min_ns),
            (1_050, 11_000, 7_000)
        );
        assert_eq!((observed.cpu, observed.faults), (5, 3));
    }
}
