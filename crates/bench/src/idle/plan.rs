// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a loop is to do, and what it notes meanwhile.

use super::buffer::{Buffer, LongGaps};
use super::counter::Counter;
use super::options::{GAP_MIN, IdleOptions, nanos};
use rustix::thread::gettid;
use tipme_measure::idle::{ClassicLoop, ClockFigures, Gap, Observed};

/// Gaps of one CPU in all: 32 MB.
pub(super) const GAPS_MAX: u64 = 2_000_000;
/// Records of one CPU in all: 32 MB, more than an hour at a millisecond.
pub(super) const RECORDS_MAX: u64 = 4_000_000;
/// Pairs of counter and clock.
pub(super) const PAIRS_MAX: usize = 4_096;
/// Records between two pairs, at least.
pub(super) const RECORDS_PER_PAIR: u64 = 64;
/// Gaps of each second that there is room for: many times what a timer tick makes.
pub(super) const GAPS_PER_SECOND: u64 = 20_000;

/// What a loop writes while it runs.
pub(super) struct LoopNotes {
    pub(super) gaps: Buffer<(u64, u64)>,
    /// The longest ones of those that there was no room for, and the length of the others.
    pub(super) longest: LongGaps,
    pub(super) lost_ticks: u64,
    pub(super) records: Buffer<u64>,
    pub(super) pairs: Buffer<(u64, u64)>,
    pub(super) records_per_pair: u64,
    pub(super) countdown: u64,
}

/// Lengths in ticks of the counter.
pub(super) struct LoopPlan {
    pub(super) counter: Counter,
    /// The shortest gap.
    pub(super) gap: u64,
    pub(super) record: u64,
    pub(super) duration: u64,
}

impl LoopNotes {
    pub(super) fn new(options: &IdleOptions) -> LoopNotes {
        let seconds = options.duration.as_secs() + 1;
        let gaps = seconds.saturating_mul(GAPS_PER_SECOND).min(GAPS_MAX);
        let records = (nanos(options.duration) / nanos(options.resolution).max(1) + 16).min(RECORDS_MAX);
        let records_per_pair = RECORDS_PER_PAIR.max(2 * records / PAIRS_MAX as u64);
        LoopNotes {
            gaps: Buffer::new(gaps as usize, (0, 0)),
            longest: LongGaps::new(),
            lost_ticks: 0,
            records: Buffer::new(records as usize, 0),
            pairs: Buffer::new(PAIRS_MAX, (0, 0)),
            records_per_pair,
            countdown: records_per_pair,
        }
    }

    /// A record is complete. Now and then counter and clock are compared, which takes less than a gap (`Counter::turn`).
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

    pub(super) fn gap(&mut self, start: u64, length: u64) {
        if !self.gaps.push((start, length)) {
            self.lost_ticks += self.longest.exchange((start, length));
        }
    }

    /// In nanoseconds. Both ends of a gap are converted, so that gaps and what is between them sum to the whole.
    pub(super) fn observed(self, cpu: usize, counter: Counter, watched: &LoopSpan, classic: Option<Loop>) -> Observed {
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
        let beyond = self.longest.gaps();
        Observed {
            cpu,
            tid: gettid().as_raw_nonzero().get() as u32,
            begin_ns: calibration.ns(watched.begin),
            end_ns: calibration.ns(watched.end),
            gap_min_ns: length(watched.gap).max(nanos(GAP_MIN)),
            gaps: self.gaps.items().iter().chain(&beyond).map(gap).collect(),
            gaps_lost: self.gaps.lost() - beyond.len() as u64,
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

/// The begin and end of the watching, in ticks, and the thread's CPU time in between.
pub(super) struct LoopSpan {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The shortest gap that was told from a reading of the counter.
    pub(super) gap: u64,
    pub(super) cpu_time_ns: u64,
    pub(super) faults: u64,
}

/// A loop that takes a record's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Loop {
    pub(super) iterations: u64,
    /// How long it takes.
    pub(super) ticks: u64,
}
