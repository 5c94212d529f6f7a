// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observed gaps of one CPU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of bins in a profile; if more are requested, they are widened.
pub const BINS_MAX: u64 = 1_000_000;

/// Time in which the loop did not have its CPU. For a record of the classic loop only the total is
/// known: its stolen time is placed at its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gap {
    /// CLOCK_MONOTONIC.
    pub start_ns: u64,
    pub length_ns: u64,
}

/// Bin of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    pub start_ns: u64,
    /// The same for all bins; the last one may be shorter.
    pub length_ns: u64,
    pub stolen_ns: u64,
}

/// Observations of the loop on one CPU.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observed {
    pub cpu: usize,
    /// The loop's own thread.
    pub tid: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Minimum length of a gap.
    pub gap_min_ns: u64,
    /// In order of time, without overlaps.
    pub gaps: Vec<Gap>,
    /// Number of gaps without room.
    pub gaps_lost: u64,
    /// Total length of those gaps.
    pub lost_ns: u64,
    /// Completion time of each record.
    pub records_ns: Vec<u64>,
    /// Number of records without room.
    pub records_lost: u64,
    /// CPU time of the thread according to the kernel.
    pub cpu_time_ns: u64,
    /// Page faults of the thread during that time.
    pub faults: u64,
    /// `true` if the buffers were locked in memory.
    pub locked: bool,
    pub classic: Option<ClassicLoop>,
}

/// Calibration of a loop of fixed length.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassicLoop {
    pub iterations: u64,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Increase of the loop's time until the end.
    pub drift_percent: f64,
}

impl Gap {
    /// Returns the time at which the loop continued.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }

    /// Returns the part of the gap in `from..to`.
    fn within(&self, from: u64, to: u64) -> u64 {
        self.end_ns().min(to).saturating_sub(self.start_ns.max(from))
    }
}

impl Bin {
    /// Returns the stolen share, from 0 to 1.
    pub fn utilisation(&self) -> f64 {
        share(self.stolen_ns, self.length_ns)
    }
}

impl Observed {
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Returns all stolen time, including that of lost gaps.
    pub fn stolen_ns(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.length_ns).sum::<u64>().saturating_add(self.lost_ns)
    }

    /// Returns the share of wall time that the loop missed.
    pub fn stolen_share(&self) -> f64 {
        share(self.stolen_ns(), self.wall_ns())
    }

    /// Returns the same share by the kernel's account of the thread's CPU time. That time may
    /// exceed wall time because of rounding.
    pub fn check_share(&self) -> f64 {
        1.0 - share(self.cpu_time_ns, self.wall_ns())
    }

    /// Returns the number of completed records.
    pub fn records(&self) -> u64 {
        self.records_ns.len() as u64 + self.records_lost
    }

    /// Returns the longest time without a completed record. Under load that may be the whole run:
    /// the gap then spans the record.
    pub(crate) fn longest_record_ns(&self) -> u64 {
        let ends = self.records_ns.iter().copied().chain([self.end_ns]);
        let lengths = ends.scan(self.begin_ns, |begin, end| {
            Some(end.saturating_sub(std::mem::replace(begin, end)))
        });
        lengths.max().unwrap_or_default()
    }

    /// Returns the profile of this CPU.
    pub fn bins(&self, width_ns: u64) -> Vec<Bin> {
        bins(&self.gaps, self.begin_ns, self.end_ns, width_ns)
    }
}

/// Returns a share of a whole; 0 for an empty whole.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Distributes stolen time to bins of equal wall time; the last one ends at `to`. The bins cover
/// the stolen time in `from..to` exactly.
pub fn bins(gaps: &[Gap], from: u64, to: u64, width_ns: u64) -> Vec<Bin> {
    let width = width_ns.max(to.saturating_sub(from).div_ceil(BINS_MAX)).max(1);
    let starts = std::iter::successors(Some(from), |start| start.checked_add(width))
        .take_while(|start| *start < to);
    let mut bins: Vec<Bin> = starts
        .map(|start_ns| Bin { start_ns, length_ns: width.min(to - start_ns), stolen_ns: 0 })
        .collect();
    for gap in gaps.iter().filter(|gap| gap.within(from, to) > 0) {
        let first = (gap.start_ns.max(from) - from) / width;
        for bin in
            bins.iter_mut().skip(first as usize).take_while(|bin| bin.start_ns < gap.end_ns())
        {
            bin.stolen_ns += gap.within(bin.start_ns, bin.start_ns + bin.length_ns);
        }
    }
    bins
}

/// Returns the longest gaps up to `limit`, in order of time; among equal ones the first are kept.
pub fn longest(gaps: &[Gap], limit: usize) -> Vec<Gap> {
    let mut kept: Vec<(usize, Gap)> = gaps.iter().copied().enumerate().collect();
    if kept.len() > limit {
        kept.sort_by_key(|(at, gap)| (std::cmp::Reverse(gap.length_ns), *at));
        kept.truncate(limit);
        kept.sort_by_key(|(at, _)| *at);
    }
    kept.into_iter().map(|(_, gap)| gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn gap(start_ns: u64, length_ns: u64) -> Gap {
        Gap { start_ns, length_ns }
    }

    #[test]
    fn ten_milliseconds_with_one_idle_are_ninety_percent() {
        let observed = Observed {
            begin_ns: 0,
            end_ns: 10 * MS,
            gaps: vec![gap(MS / 2, 9 * MS)],
            ..Observed::default()
        };
        assert_eq!(observed.stolen_share(), 0.9);
        assert_eq!(
            observed.bins(10 * MS),
            [Bin { start_ns: 0, length_ns: 10 * MS, stolen_ns: 9 * MS }]
        );
        assert_eq!(observed.bins(10 * MS)[0].utilisation(), 0.9);
    }

    #[test]
    fn a_gap_is_shared_among_the_bins_that_it_covers() {
        let stolen: Vec<u64> =
            bins(&[gap(15, 20), gap(39, 1)], 10, 45, 10).iter().map(|bin| bin.stolen_ns).collect();
        assert_eq!(stolen, [5, 10, 6, 0]);
        let last = bins(&[gap(0, 100)], 10, 45, 10)[3];
        assert_eq!((last.start_ns, last.length_ns, last.utilisation()), (40, 5, 1.0));
        assert_eq!(bins(&[gap(0, 5)], 7, 7, 10), []);
    }

    #[test]
    fn there_are_never_too_many_bins() {
        let found = bins(&[gap(3, 4)], 0, 10 * BINS_MAX + 1, 1);
        assert!(found.len() as u64 <= BINS_MAX, "{}", found.len());
        assert_eq!(found.iter().map(|bin| bin.stolen_ns).sum::<u64>(), 4);
        assert_eq!(found.iter().map(|bin| bin.length_ns).sum::<u64>(), 10 * BINS_MAX + 1);
    }

    #[test]
    fn without_a_record_the_gap_is_the_record() {
        let observed = Observed { begin_ns: MS, end_ns: 9 * MS, ..Observed::default() };
        assert_eq!((observed.records(), observed.longest_record_ns()), (0, 8 * MS));
        let observed = Observed { records_ns: vec![2 * MS, 7 * MS], records_lost: 1, ..observed };
        assert_eq!((observed.records(), observed.longest_record_ns()), (3, 5 * MS));
    }

    #[test]
    fn lost_gaps_count() {
        let gaps = vec![gap(10, 20)];
        let observed = Observed {
            end_ns: 100,
            gaps,
            gaps_lost: 2,
            lost_ns: 30,
            cpu_time_ns: 48,
            ..Observed::default()
        };
        assert_eq!(
            (observed.stolen_ns(), observed.stolen_share(), observed.check_share()),
            (50, 0.5, 0.52)
        );
        assert_eq!(Observed::default().stolen_share(), 0.0);
    }

    #[test]
    fn the_longest_gaps_are_kept_in_order() {
        let gaps = [gap(1, 5), gap(10, 7), gap(20, 5), gap(30, 9)];
        assert_eq!(longest(&gaps, 3), [gap(1, 5), gap(10, 7), gap(30, 9)]);
        assert_eq!(longest(&gaps, 9), gaps);
    }
}
