// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gaps of one CPU, as they were observed.

use super::calibration::ClockFigures;

/// Bins of a profile at most; where more were asked for, they are as much wider.
pub const BINS_MAX: u64 = 1_000_000;

/// Time that the loop did not have its CPU. Of a record of the classic loop only the length is known: its
/// stolen time stands at its begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gap {
    /// CLOCK_MONOTONIC.
    pub start_ns: u64,
    pub length_ns: u64,
}

/// Part of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    pub start_ns: u64,
    /// That of all others; the last one may be shorter.
    pub length_ns: u64,
    pub stolen_ns: u64,
}

/// What the loop on one CPU saw.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observed {
    pub cpu: usize,
    /// The loop's own thread.
    pub tid: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// What is shorter than this is no gap.
    pub gap_min_ns: u64,
    /// In the order of time, none overlapping another.
    pub gaps: Vec<Gap>,
    /// Gaps that there was no room for.
    pub gaps_lost: u64,
    /// The length of those together.
    pub lost_ns: u64,
    /// When each record was complete.
    pub records_ns: Vec<u64>,
    /// Records that there was no room for.
    pub records_lost: u64,
    /// What the kernel says that the thread had of the CPU.
    pub cpu_time_ns: u64,
    /// Page faults of the thread meanwhile.
    pub faults: u64,
    /// Whether the buffers were locked in memory.
    pub locked: bool,
    pub clock: ClockFigures,
}

impl Gap {
    /// When the loop went on.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }

    /// How much of it lies in `from..to`.
    fn within(&self, from: u64, to: u64) -> u64 {
        self.end_ns().min(to).saturating_sub(self.start_ns.max(from))
    }
}

impl Bin {
    /// The share of it that was stolen, from 0 to 1.
    pub fn utilisation(&self) -> f64 {
        share(self.stolen_ns, self.length_ns)
    }
}

impl Observed {
    /// Wall time.
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// All stolen time, that of lost gaps included.
    pub fn stolen_ns(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.length_ns).sum::<u64>().saturating_add(self.lost_ns)
    }

    /// The share of wall time that the loop missed.
    pub fn stolen_share(&self) -> f64 {
        share(self.stolen_ns(), self.wall_ns())
    }

    /// The same by the kernel's account of the thread's CPU time; that may exceed wall time by its rounding.
    pub fn check_share(&self) -> f64 {
        1.0 - share(self.cpu_time_ns, self.wall_ns())
    }

    /// Records that were completed.
    pub fn records(&self) -> u64 {
        self.records_ns.len() as u64 + self.records_lost
    }

    /// The longest time without a complete record. Under load that may be all of it: the gap is the record then.
    pub(crate) fn longest_record_ns(&self) -> u64 {
        let ends = self.records_ns.iter().copied().chain([self.end_ns]);
        let lengths = ends.scan(self.begin_ns, |begin, end| Some(end.saturating_sub(std::mem::replace(begin, end))));
        lengths.max().unwrap_or_default()
    }

    /// The profile of this CPU.
    pub fn bins(&self, width_ns: u64) -> Vec<Bin> {
        bins(&self.gaps, self.begin_ns, self.end_ns, width_ns)
    }
}

/// A share of a whole; 0 of nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Stolen time in bins of regular wall time, the last one cut at `to`. What lies in `from..to` is in the bins exactly.
pub fn bins(gaps: &[Gap], from: u64, to: u64, width_ns: u64) -> Vec<Bin> {
    let width = width_ns.max(to.saturating_sub(from).div_ceil(BINS_MAX)).max(1);
    let starts = std::iter::successors(Some(from), |start| start.checked_add(width)).take_while(|start| *start < to);
    let bin = |start: u64| Bin { start_ns: start, length_ns: width.min(to - start), stolen_ns: 0 };
    let mut bins: Vec<Bin> = starts.map(bin).collect();
    for gap in gaps.iter().filter(|gap| gap.within(from, to) > 0) {
        let first = (gap.start_ns.max(from) - from) / width;
        for bin in bins.iter_mut().skip(first as usize).take_while(|bin| bin.start_ns < gap.end_ns()) {
            bin.stolen_ns += gap.within(bin.start_ns, bin.start_ns + bin.length_ns);
        }
    }
    bins
}

/// The gaps to keep where not all can be, in the order of time: the longest ones, of equal ones the first.
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
        let observed =
            Observed { begin_ns: 0, end_ns: 10 * MS, gaps: vec![gap(MS / 2, 9 * MS)], ..Observed::default() };
        assert_eq!(observed.stolen_share(), 0.9);
        assert_eq!(observed.bins(10 * MS), [Bin { start_ns: 0, length_ns: 10 * MS, stolen_ns: 9 * MS }]);
        assert_eq!(observed.bins(10 * MS)[0].utilisation(), 0.9);
    }

    #[test]
    fn a_gap_is_shared_among_the_bins_that_it_covers() {
        let stolen: Vec<u64> = bins(&[gap(15, 20), gap(39, 1)], 10, 45, 10).iter().map(|bin| bin.stolen_ns).collect();
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
        let observed =
            Observed { end_ns: 100, gaps, gaps_lost: 2, lost_ns: 30, cpu_time_ns: 48, ..Observed::default() };
        assert_eq!((observed.stolen_ns(), observed.stolen_share(), observed.check_share()), (50, 0.5, 0.52));
        assert_eq!(Observed::default().stolen_share(), 0.0);
    }

    #[test]
    fn the_longest_gaps_are_kept_in_order() {
        let gaps = [gap(1, 5), gap(10, 7), gap(20, 5), gap(30, 9)];
        assert_eq!(longest(&gaps, 3), [gap(1, 5), gap(10, 7), gap(30, 9)]);
        assert_eq!(longest(&gaps, 9), gaps);
    }
}
