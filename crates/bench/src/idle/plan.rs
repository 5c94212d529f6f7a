// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plan of a loop, and its notes. All times are CLOCK_MONOTONIC, in nanoseconds.

use super::options::{GAP_MIN, IdleOptions, nanos};
use crate::locked_buffer::LockedBuffer;
use rustix::thread::gettid;
use tipme_measure::idle::{ClassicLoop, Gap, Observed};

/// Maximum number of gaps of one CPU: 32 MB.
const GAPS_MAX: u64 = 2_000_000;
/// Maximum number of records of one CPU: 32 MB, more than an hour at a millisecond.
const RECORDS_MAX: u64 = 4_000_000;
/// Capacity for gaps per second: many times the rate of a timer tick.
const GAPS_PER_SECOND: u64 = 20_000;

/// Notes that a loop takes while it runs.
pub(super) struct LoopNotes {
    pub(super) gaps: LockedBuffer<Gap>,
    /// Total length of the gaps beyond the capacity.
    lost_ns: u64,
    pub(super) records: LockedBuffer<u64>,
}

/// Plan of a loop.
pub(super) struct LoopPlan {
    /// Minimum length of a gap.
    pub(super) gap: u64,
    pub(super) record: u64,
    pub(super) duration: u64,
}

impl LoopPlan {
    pub(super) fn new(options: &IdleOptions) -> LoopPlan {
        let [gap, record, duration] = [GAP_MIN, options.resolution, options.duration].map(nanos);
        LoopPlan { gap, record, duration }
    }
}

impl LoopNotes {
    pub(super) fn new(options: &IdleOptions) -> LoopNotes {
        let seconds = options.duration.as_secs() + 1;
        let gaps = seconds.saturating_mul(GAPS_PER_SECOND).min(GAPS_MAX);
        let records =
            (nanos(options.duration) / nanos(options.resolution).max(1) + 16).min(RECORDS_MAX);
        LoopNotes {
            gaps: LockedBuffer::new(gaps as usize, Gap::default()),
            lost_ns: 0,
            records: LockedBuffer::new(records as usize, 0),
        }
    }

    pub(super) fn gap(&mut self, start_ns: u64, length_ns: u64) {
        if !self.gaps.push(Gap { start_ns, length_ns }) {
            self.lost_ns += length_ns;
        }
    }

    pub(super) fn observed(
        self,
        cpu: usize,
        watched: &LoopSpan,
        classic: Option<ClassicLoop>,
    ) -> Observed {
        Observed {
            cpu,
            tid: gettid().as_raw_nonzero().get() as u32,
            begin_ns: watched.begin,
            end_ns: watched.end,
            gap_min_ns: watched.gap,
            gaps: self.gaps.items().to_vec(),
            gaps_lost: self.gaps.lost(),
            lost_ns: self.lost_ns,
            records_ns: self.records.items().to_vec(),
            records_lost: self.records.lost(),
            cpu_time_ns: watched.cpu_time_ns,
            faults: watched.faults,
            locked: self.gaps.is_locked() && self.records.is_locked(),
            classic,
        }
    }
}

/// Start and end of the observation, and the CPU time of the thread in between.
pub(super) struct LoopSpan {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Minimum length of a gap, given the time of a reading of the clock.
    pub(super) gap: u64,
    pub(super) cpu_time_ns: u64,
    pub(super) faults: u64,
}
