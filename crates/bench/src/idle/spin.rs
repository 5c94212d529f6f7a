// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop on one CPU.

use super::buffer::Buffer;
use super::classic::{self, Loop};
use super::counter::Counter;
use super::{GAP_MIN, Options, nanos, place};
use crate::cpu_work::cpu_time;
use anyhow::Result;
use rustix::thread::gettid;
use std::sync::atomic::{AtomicBool, Ordering};
use tipme_measure::idle::{ClassicLoop, ClockFigures, Gap, Observed};

/// Gaps of each second that there is room for: many times what a timer tick makes.
const GAPS_PER_SECOND: u64 = 20_000;
/// Gaps of one CPU in all: 32 MB.
const GAPS_MAX: u64 = 2_000_000;
/// Records of one CPU in all: 32 MB, more than an hour at a millisecond.
const RECORDS_MAX: u64 = 4_000_000;
/// Pairs of counter and clock.
const PAIRS_MAX: usize = 4_096;
/// Records between two pairs, at least.
const RECORDS_PER_PAIR: u64 = 64;

/// What a loop writes while it runs.
pub(super) struct Notes {
    gaps: Buffer<(u64, u64)>,
    /// Length of the gaps that there was no room for.
    lost_ticks: u64,
    records: Buffer<u64>,
    pairs: Buffer<(u64, u64)>,
    records_per_pair: u64,
    countdown: u64,
}

/// Lengths in ticks of the counter.
pub(super) struct Plan {
    pub(super) counter: Counter,
    gap: u64,
    record: u64,
    pub(super) duration: u64,
}

/// The begin and end of the watching, in ticks, and the thread's CPU time in between.
struct Watched {
    begin: u64,
    end: u64,
    cpu_time_ns: u64,
    faults: u64,
}

/// A loop that is ready to run: everything that takes time or memory is done.
pub(super) struct Prepared {
    cpu: usize,
    plan: Plan,
    notes: Notes,
    classic: Option<Loop>,
}

impl Prepared {
    /// Watches the CPU until the time is over or `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<Observed> {
        let (plan, notes) = (&self.plan, &mut self.notes);
        notes.pairs.push(plan.counter.sure_pair());
        let before = (cpu_time(), faults());
        // From here on, so that a loop that never gets its CPU misses that.
        let begin = plan.counter.read();
        place::yield_to_all()?;
        let end = match self.classic {
            None => watch(begin, plan, stop, notes),
            Some(known) => classic::watch(known.iterations, begin, plan, stop, notes),
        };
        let cpu_time_ns = (cpu_time() - before.0).as_nanos() as u64;
        let watched = Watched { begin, end, cpu_time_ns, faults: faults() - before.1 };
        notes.pairs.push(plan.counter.sure_pair());
        Ok(self.notes.observed(self.cpu, self.plan.counter, &watched, self.classic))
    }
}

/// Makes the calling thread ready to watch a CPU, at its usual priority.
pub(super) fn prepare(cpu: usize, options: &Options) -> Result<Prepared> {
    place::pin(cpu)?;
    let counter = Counter::choose();
    let (pairs, ticks_per_ns) = counter.look();
    let ticks = |time| (nanos(time) as f64 * ticks_per_ns) as u64;
    let plan = Plan {
        counter,
        gap: ticks(GAP_MIN),
        record: ticks(options.resolution).max(1),
        duration: ticks(options.duration),
    };
    let mut notes = Notes::new(options);
    pairs.into_iter().for_each(|pair| {
        notes.pairs.push(pair);
    });
    let classic = options.classic.then(|| classic::calibrate(counter, plan.record));
    Ok(Prepared { cpu, plan, notes, classic })
}

/// Reads the counter until the end. What lies between two readings is either the loop's own time or a gap.
fn watch(begin: u64, plan: &Plan, stop: &AtomicBool, notes: &mut Notes) -> u64 {
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

/// Page faults of this thread so far.
fn faults() -> u64 {
    // SAFETY: an all-zero `rusage` is one, and the call writes to no more than that.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    (usage.ru_minflt + usage.ru_majflt) as u64
}

impl Notes {
    fn new(options: &Options) -> Notes {
        let seconds = options.duration.as_secs() + 1;
        let gaps = seconds.saturating_mul(GAPS_PER_SECOND).min(GAPS_MAX);
        let records = (nanos(options.duration) / nanos(options.resolution).max(1) + 16).min(RECORDS_MAX);
        let records_per_pair = RECORDS_PER_PAIR.max(2 * records / PAIRS_MAX as u64);
        Notes {
            gaps: Buffer::new(gaps as usize, (0, 0)),
            lost_ticks: 0,
            records: Buffer::new(records as usize, 0),
            pairs: Buffer::new(PAIRS_MAX, (0, 0)),
            records_per_pair,
            countdown: records_per_pair,
        }
    }

    /// A record is complete. Now and then counter and clock are compared, which takes less than a gap.
    pub(super) fn record(&mut self, at: u64, counter: Counter) {
        self.records.push(at);
        self.countdown -= 1;
        if self.countdown == 0 {
            self.countdown = self.records_per_pair;
            if let Some(pair) = counter.pair() {
                self.pairs.push(pair);
            }
        }
    }

    fn gap(&mut self, start: u64, length: u64) {
        if !self.gaps.push((start, length)) {
            self.lost_ticks += length;
        }
    }

    /// In nanoseconds. Both ends of a gap are converted, so that gaps and what is between them sum to the whole.
    fn observed(self, cpu: usize, counter: Counter, watched: &Watched, classic: Option<Loop>) -> Observed {
        let (calibration, clock) = counter.calibrate(self.pairs.items());
        let length = |ticks: u64| calibration.ns(watched.begin + ticks) - calibration.ns(watched.begin);
        let classic = classic.map(|known| ClassicLoop {
            iterations: known.iterations,
            begin_ns: length(known.ticks),
            ..ClassicLoop::default()
        });
        let gap = |(start, length): &(u64, u64)| {
            let start_ns = calibration.ns(*start);
            Gap { start_ns, length_ns: calibration.ns(start + length) - start_ns }
        };
        Observed {
            cpu,
            tid: gettid().as_raw_nonzero().get() as u32,
            begin_ns: calibration.ns(watched.begin),
            end_ns: calibration.ns(watched.end),
            gaps: self.gaps.items().iter().map(gap).collect(),
            gaps_lost: self.gaps.lost(),
            lost_ns: length(self.lost_ticks),
            records_ns: self.records.items().iter().map(|at| calibration.ns(*at)).collect(),
            records_lost: self.records.lost(),
            cpu_time_ns: watched.cpu_time_ns,
            faults: watched.faults,
            locked: self.gaps.is_locked() && self.records.is_locked() && self.pairs.is_locked(),
            clock: ClockFigures { classic, ..clock },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn room_is_bounded() {
        let day = Duration::from_secs(86_400);
        let options = Options { duration: day, resolution: Duration::from_millis(100), classic: false, cpus: vec![0] };
        let notes = Notes::new(&options);
        assert_eq!(notes.records_per_pair, 2 * 864_016 / 4_096);
        assert!(notes.gaps.items().is_empty() && notes.gaps.lost() == 0);
    }

    #[test]
    fn lost_gaps_keep_their_time() {
        let options = Options {
            duration: Duration::from_millis(1),
            resolution: Duration::from_millis(1),
            classic: false,
            cpus: vec![0],
        };
        let mut notes = Notes { gaps: Buffer::new(1, (0, 0)), ..Notes::new(&options) };
        [(100, 10), (200, 30), (300, 50)].iter().for_each(|(start, length)| notes.gap(*start, *length));
        let watched = Watched { begin: 0, end: 1_000, cpu_time_ns: 900, faults: 3 };
        let observed = notes.observed(5, Counter::Clock, &watched, None);
        assert_eq!((observed.gaps.len(), observed.gaps_lost, observed.lost_ns), (1, 2, 80));
        assert_eq!((observed.stolen_ns(), observed.wall_ns(), observed.cpu, observed.faults), (90, 1_000, 5, 3));
    }
}
