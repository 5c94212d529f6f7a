// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plan of a loop, and its notes.

use super::counter::Counter;
use super::long_gaps::LongGaps;
use super::options::{GAP_MIN, IdleOptions, nanos};
use crate::locked_buffer::LockedBuffer;
use rustix::thread::gettid;
use tipme_measure::idle::{ClassicLoop, ClockFigures, Gap, Observed};

/// Maximum number of gaps of one CPU: 32 MB.
pub(super) const GAPS_MAX: u64 = 2_000_000;
/// Maximum number of records of one CPU: 32 MB, more than an hour at a millisecond.
pub(super) const RECORDS_MAX: u64 = 4_000_000;
/// Maximum number of pairs of counter and clock.
pub(super) const PAIRS_MAX: usize = 4_096;
/// Minimum number of records between two pairs.
pub(super) const RECORDS_PER_PAIR: u64 = 64;
/// Capacity for gaps per second: many times the rate of a timer tick.
pub(super) const GAPS_PER_SECOND: u64 = 20_000;

/// Notes that a loop takes while it runs.
pub(super) struct LoopNotes {
    pub(super) gaps: LockedBuffer<(u64, u64)>,
    /// The longest gaps beyond the capacity, and the total length of the others.
    pub(super) longest: LongGaps,
    pub(super) lost_ticks: u64,
    pub(super) records: LockedBuffer<u64>,
    pub(super) pairs: LockedBuffer<(u64, u64)>,
    pub(super) records_per_pair: u64,
    pub(super) countdown: u64,
}

/// Plan of a loop; lengths are in ticks of the counter.
pub(super) struct LoopPlan {
    pub(super) counter: Counter,
    /// Minimum length of a gap.
    pub(super) gap: u64,
    pub(super) record: u64,
    pub(super) duration: u64,
}

impl LoopNotes {
    pub(super) fn new(options: &IdleOptions) -> LoopNotes {
        let seconds = options.duration.as_secs() + 1;
        let gaps = seconds.saturating_mul(GAPS_PER_SECOND).min(GAPS_MAX);
        let records =
            (nanos(options.duration) / nanos(options.resolution).max(1) + 16).min(RECORDS_MAX);
        let records_per_pair = RECORDS_PER_PAIR.max(2 * records / PAIRS_MAX as u64);
        LoopNotes {
            gaps: LockedBuffer::new(gaps as usize, (0, 0)),
            longest: LongGaps::new(),
            lost_ticks: 0,
            records: LockedBuffer::new(records as usize, 0),
            pairs: LockedBuffer::new(PAIRS_MAX, (0, 0)),
            records_per_pair,
            countdown: records_per_pair,
        }
    }

    /// Completes a record. Compares counter and clock now and then, which takes less than a gap
    /// (`Counter::turn`).
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

    /// Converts the notes to nanoseconds. Converts both ends of a gap, so that gaps and the time
    /// between them sum to the whole.
    pub(super) fn observed(
        self,
        cpu: usize,
        counter: Counter,
        watched: &LoopSpan,
        classic: Option<Loop>,
    ) -> Observed {
        let (calibration, clock) = counter.calibrate(self.pairs.items());
        let length =
            |ticks: u64| calibration.ns(watched.begin + ticks) - calibration.ns(watched.begin);
        let classic = classic.map(|known| ClassicLoop {
            iterations: known.iterations,
            begin_ns: length(known.ticks),
            ..ClassicLoop::default()
        });
        let beyond = self.longest.gaps();
        let gaps = self.gaps.items().iter().chain(&beyond).map(|(start, length)| {
            let start_ns = calibration.ns(*start);
            Gap { start_ns, length_ns: calibration.ns(start + length) - start_ns }
        });
        Observed {
            cpu,
            tid: gettid().as_raw_nonzero().get() as u32,
            begin_ns: calibration.ns(watched.begin),
            end_ns: calibration.ns(watched.end),
            gap_min_ns: length(watched.gap).max(nanos(GAP_MIN)),
            gaps: gaps.collect(),
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

/// Start and end of the observation in ticks, and the CPU time of the thread in between.
pub(super) struct LoopSpan {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Minimum length of a gap, given the time of a counter reading.
    pub(super) gap: u64,
    pub(super) cpu_time_ns: u64,
    pub(super) faults: u64,
}

/// A loop that takes as long as a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Loop {
    pub(super) iterations: u64,
    /// Duration of the loop.
    pub(super) ticks: u64,
}
