// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle loop on one CPU.

use super::classic;
use super::options::IdleOptions;
use super::plan::{LoopNotes, LoopPlan, LoopSpan};
use crate::cpu_work::cpu_time;
use crate::cpus::stay_on;
use crate::priority::set_policy;
use anyhow::{Context, Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use tipme_desktop::clock;
use tipme_measure::idle::{ClassicLoop, Observed};

/// Minimum length of a gap in turns of the loop: a clock that is slow to read (HPET, ACPI PM) takes
/// as long as some gaps.
const TURNS_IN_GAP: u64 = 2;

/// Turns of a loop, of which the median counts: some milliseconds if the clock is slow, so that all
/// loops read it at once.
const TURNS: usize = 1_001;

/// A loop that is ready to run: all its allocations and calibrations are done.
pub(super) struct Prepared {
    cpu: usize,
    plan: LoopPlan,
    notes: LoopNotes,
    classic: Option<ClassicLoop>,
}

impl Prepared {
    /// Observes the CPU until the time is over or `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<Observed> {
        let (plan, notes) = (&mut self.plan, &mut self.notes);
        // Measured only now, while the other loops read too: a slow clock is shared by all CPUs.
        plan.gap = plan.gap.max(TURNS_IN_GAP * turn());
        if self.classic.is_none() && plan.record <= plan.gap {
            bail!(
                "the clock is too slow to read for this --resolution; give a longer one, such as 1ms"
            );
        }
        let before = (cpu_time(), faults());
        // Starts here, so that a loop that never gets its CPU counts that as missed.
        let begin = clock::now().0;
        yield_to_all()?;
        let end = match self.classic {
            None => watch(begin, plan, stop, notes),
            Some(known) => classic::watch(known.iterations, begin + plan.duration, stop, notes),
        };
        let gap = plan.gap;
        let cpu_time_ns = (cpu_time() - before.0).as_nanos() as u64;
        let watched = LoopSpan { begin, end, gap, cpu_time_ns, faults: faults() - before.1 };
        Ok(self.notes.observed(self.cpu, &watched, self.classic))
    }
}

/// Prepares the calling thread to observe a CPU, at its usual priority.
pub(super) fn prepare(cpu: usize, options: &IdleOptions) -> Result<Prepared> {
    stay_on(cpu)?;
    let (plan, notes) = (LoopPlan::new(options), LoopNotes::new(options));
    let classic = options.classic.then(|| classic::calibrate(plan.record));
    Ok(Prepared { cpu, plan, notes, classic })
}

/// Measures the time from one reading of the clock to the next: the median of several in direct
/// succession.
fn turn() -> u64 {
    let mut lengths = [0; TURNS];
    let mut last = clock::now().0;
    for length in &mut lengths {
        let now = clock::now().0;
        *length = now.saturating_sub(last);
        last = now;
    }
    lengths.sort_unstable();
    lengths[TURNS / 2]
}

/// Switches the calling thread to SCHED_IDLE. An unprivileged user cannot revert that.
fn yield_to_all() -> Result<()> {
    set_policy(libc::SCHED_IDLE, 0).context("cannot take the idle priority (SCHED_IDLE)")
}

/// Reads the clock until the end. The time between two readings is either the loop's own or a gap.
fn watch(begin: u64, plan: &LoopPlan, stop: &AtomicBool, notes: &mut LoopNotes) -> u64 {
    let end = begin.saturating_add(plan.duration);
    let (mut last, mut own) = (begin, 0);
    loop {
        let at = clock::now().0;
        let passed = at.saturating_sub(last);
        if passed <= plan.gap {
            own += passed;
            if own < plan.record {
                last = at;
                continue;
            }
            own -= plan.record;
            notes.records.push(at);
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
    use tipme_measure::idle::Gap;

    #[test]
    fn everybody_may_come_last() {
        let yielded = std::thread::spawn(yield_to_all);
        yielded.join().expect("it ends").expect("everybody may");
    }

    #[test]
    fn a_reading_takes_less_than_a_gap() {
        assert!((1..u64::from(u32::MAX)).contains(&turn()));
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
        assert!(notes.gaps.items().is_empty() && notes.gaps.lost() == 0);
        assert!(notes.records.items().is_empty());
    }

    #[test]
    fn lost_gaps_keep_their_time() {
        let options = IdleOptions {
            duration: Duration::from_millis(1),
            resolution: Duration::from_millis(1),
            classic: false,
            cpus: vec![0],
        };
        let mut notes = LoopNotes::new(&options);
        notes.gaps = LockedBuffer::new(1, Gap::default());
        (0..100).for_each(|at| notes.gap(100 * at, 10));
        notes.gap(10_000, 50);
        let watched = LoopSpan { begin: 0, end: 11_000, gap: 7_000, cpu_time_ns: 9_950, faults: 3 };
        let observed = notes.observed(5, &watched, None);
        assert_eq!((observed.gaps.len(), observed.gaps_lost, observed.lost_ns), (1, 100, 1_040));
        assert_eq!(
            (observed.stolen_ns(), observed.wall_ns(), observed.gap_min_ns),
            (1_050, 11_000, 7_000)
        );
        assert_eq!((observed.cpu, observed.faults), (5, 3));
    }
}
