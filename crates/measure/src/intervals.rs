// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work at even intervals, and the lengthening of the intervals under a load.

use crate::document::{Events, Run};
use crate::percentile::Share;
use crate::summary::Summary;
use crate::threshold::ClassLimits;
use crate::units::ms;
use schemars::JsonSchema;
use serde::Serialize;

/// Class of such events in a document.
pub const INTERVAL: &str = "interval";
/// Length in nanoseconds above which intervals count as long: the papers report the share of those
/// above 150 ms.
pub(crate) const LONG_NS: u64 = 150_000_000;

/// Intervals under one load, nanoseconds of CLOCK_MONOTONIC. A document has begins and duration
/// in its runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Intervals {
    /// Load on the machine: `none`, `hog`, `8 children`.
    pub load: String,
    /// Length of each interval without interference.
    #[serde(skip)]
    pub expected_ns: u64,
    /// Begin of each interval, including the one that was cut off.
    #[serde(skip)]
    pub starts_ns: Vec<u64>,
    pub intervals_ns: Vec<u64>,
    /// Length of the last interval when it was cut off; `None` if all had ended.
    pub censored_ns: Option<u64>,
    /// Time from the first to the last time stamp, including the interval that was cut off.
    #[serde(skip)]
    pub duration_ns: u64,
}

/// Printed figures of a load.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct IntervalFigures {
    pub n: usize,
    pub min_ms: Option<f64>,
    /// `None` with fewer than 10 intervals.
    pub p50_ms: Option<f64>,
    /// `None` with fewer than 250 intervals.
    pub p98_ms: Option<f64>,
    pub max_ms: Option<f64>,
    /// Number of intervals over 150 ms.
    pub long: usize,
    /// Their share of all; `None` without intervals.
    pub long_share: Option<f64>,
}

impl Intervals {
    /// Computes the intervals from ascending time stamps. `cut_off` is the time at which the work
    /// was ended before its next stamp, if it was.
    pub fn of(load: &str, expected_ns: u64, stamps: &[u64], cut_off: Option<u64>) -> Intervals {
        let last = stamps.last().copied();
        let censored_ns = cut_off.zip(last).map(|(end, last)| end.saturating_sub(last));
        let first = stamps.first().copied().unwrap_or_default();
        Intervals {
            load: load.to_owned(),
            expected_ns,
            starts_ns: stamps
                .iter()
                .take(stamps.len().saturating_sub(usize::from(cut_off.is_none())))
                .copied()
                .collect(),
            intervals_ns: stamps.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect(),
            censored_ns,
            duration_ns: last
                .map_or(0, |last| last.saturating_sub(first))
                .saturating_add(censored_ns.unwrap_or(0)),
        }
    }

    /// Returns the figures. An interval that was cut off counts with its known length.
    pub fn figures(&self) -> IntervalFigures {
        let summary = Summary::new(self.all().collect());
        let n = summary.n();
        let long = self.all().filter(|interval| *interval > LONG_NS).count();
        IntervalFigures {
            n,
            min_ms: summary.value(Share(0)).map(ms),
            p50_ms: summary.shown(Share::P50).map(ms),
            p98_ms: summary.shown(Share::P98).map(ms),
            max_ms: summary.max().map(ms),
            long,
            long_share: (n > 0).then(|| long as f64 / n as f64),
        }
    }

    /// Returns counts by the lower ends of buckets of this width in nanoseconds; empty buckets are
    /// left out.
    pub fn histogram(&self, bucket_ns: u64) -> Vec<(u64, u64)> {
        let mut counts = std::collections::BTreeMap::new();
        let width = bucket_ns.max(1);
        for interval in self.all() {
            *counts.entry(interval / width * width).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// Returns start and end of the longest intervals that begin at `from_ns` or later, the longest
    /// first.
    pub fn longest_since(&self, from_ns: u64, count: usize) -> Vec<(u64, u64)> {
        let spans = self.starts_ns.iter().zip(&self.intervals_ns);
        let mut spans: Vec<(u64, u64)> = spans
            .filter(|(start, _)| **start >= from_ns)
            .map(|(start, length)| (*start, start + length))
            .collect();
        spans.sort_by_key(|(start, end)| std::cmp::Reverse(end - start));
        spans.truncate(count);
        spans
    }

    /// Converts to a run of a document. A latency is the excess of an interval over the expected
    /// length, or 0 if it is shorter.
    pub fn run(&self, limits: ClassLimits) -> Run {
        let mut events = Events::of(INTERVAL, Some(limits));
        for (start, interval) in self.starts_ns.iter().zip(&self.intervals_ns) {
            events.push(*start, interval.saturating_sub(self.expected_ns));
        }
        if let Some(length) = self.censored_ns {
            let start = self.starts_ns.last().copied().unwrap_or_default();
            events.push(start, length.saturating_sub(self.expected_ns));
            events.censored = 1;
        }
        Run {
            name: self.load.clone(),
            duration_ns: self.duration_ns,
            interactive_ns: None,
            lost: 0,
            classes: vec![events],
        }
    }

    /// Returns all intervals in milliseconds, including the one that was cut off.
    pub fn values_ms(&self) -> Vec<f64> {
        self.all().map(ms).collect()
    }

    /// Returns all intervals, including the known length of the one that was cut off.
    fn all(&self) -> impl Iterator<Item = u64> + '_ {
        self.intervals_ns.iter().copied().chain(self.censored_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputClass, ThresholdProfile};

    const MS: u64 = 1_000_000;

    fn sample(cut_off: Option<u64>) -> Intervals {
        Intervals::of("hog", 60 * MS, &[MS, 61 * MS, 121 * MS, 421 * MS], cut_off)
    }

    #[test]
    fn intervals_lie_between_stamps() {
        let intervals = sample(None);
        assert_eq!(intervals.starts_ns, [MS, 61 * MS, 121 * MS]);
        assert_eq!(intervals.intervals_ns, [60 * MS, 60 * MS, 300 * MS]);
        assert_eq!(intervals.duration_ns, 420 * MS);
        let figures = intervals.figures();
        assert_eq!((figures.n, figures.min_ms, figures.max_ms), (3, Some(60.0), Some(300.0)));
        assert_eq!((figures.p50_ms, figures.p98_ms, figures.long), (None, None, 1));
        assert_eq!(figures.long_share, Some(1.0 / 3.0));
    }

    #[test]
    fn an_interval_that_was_cut_off_is_censored() {
        let intervals = sample(Some(1_421 * MS));
        assert_eq!(intervals.censored_ns, Some(1_000 * MS));
        assert_eq!((intervals.figures().n, intervals.figures().max_ms), (4, Some(1_000.0)));
        let run = intervals.run(InputClass::Motion.limits(ThresholdProfile::Default));
        assert_eq!((run.classes[0].censored, run.duration_ns), (1, 1_420 * MS));
        assert_eq!(run.classes[0].starts_ns, [MS, 61 * MS, 121 * MS, 421 * MS]);
        assert_eq!(run.classes[0].latencies_ns, [0, 0, 240 * MS, 940 * MS]);
        assert_eq!(run.classes[0].threshold_ns, Some(50 * MS));
    }

    #[test]
    fn a_histogram_counts_each_once() {
        let intervals = sample(Some(1_421 * MS));
        let histogram = intervals.histogram(10 * MS);
        assert_eq!(histogram, [(60 * MS, 2), (300 * MS, 1), (1_000 * MS, 1)]);
        assert_eq!(
            histogram.iter().map(|(_, count)| count).sum::<u64>(),
            intervals.figures().n as u64
        );
    }

    #[test]
    fn the_longest_come_first_and_not_from_before() {
        let intervals = sample(None);
        assert_eq!(intervals.longest_since(0, 2), [(121 * MS, 421 * MS), (MS, 61 * MS)]);
        assert_eq!(intervals.longest_since(122 * MS, 2), []);
    }

    #[test]
    fn nothing_was_stamped() {
        for stamps in [&[][..], &[5]] {
            let intervals = Intervals::of("none", 1, stamps, None);
            assert_eq!((intervals.figures().n, intervals.duration_ns), (0, 0));
            assert_eq!(intervals.histogram(0), Vec::new());
        }
        assert_eq!(Intervals::of("none", 60, &[5], Some(105)).figures().n, 1);
        assert_eq!(
            Intervals::of("none", 60, &[5], Some(105))
                .run(InputClass::Key.limits(ThresholdProfile::Default))
                .classes[0]
                .latencies_ns,
            [40]
        );
    }
}
