// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conversion of counter ticks to nanoseconds of CLOCK_MONOTONIC, and figures of that counter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pairs of counter and clock, taken at the same instant, in order of time.
///
/// Between two pairs the counter is assumed to run evenly, so slow changes of the clock's rate do
/// no harm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Calibration {
    anchors: Vec<(u64, u64)>,
}

impl Calibration {
    /// Skips pairs in which either side did not advance; returns `None` if fewer than two remain.
    pub fn new(pairs: &[(u64, u64)]) -> Option<Calibration> {
        let mut anchors: Vec<(u64, u64)> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            if anchors.last().is_none_or(|last| last.0 < pair.0 && last.1 < pair.1) {
                anchors.push(*pair);
            }
        }
        (anchors.len() >= 2).then_some(Calibration { anchors })
    }

    /// Creates the calibration of a counter that counts the clock's own nanoseconds.
    pub fn identity() -> Calibration {
        Calibration { anchors: vec![(0, 0), (u64::MAX, u64::MAX)] }
    }

    /// Converts a reading of the counter to the clock. Outside the pairs, the rate of the nearest
    /// segment applies.
    pub fn ns(&self, ticks: u64) -> u64 {
        let above = self.anchors.partition_point(|anchor| anchor.0 <= ticks);
        let segment = above.clamp(1, self.anchors.len() - 1);
        between(self.anchors[segment - 1], self.anchors[segment], ticks)
    }

    /// Returns the mean ticks per second.
    pub fn hertz(&self) -> f64 {
        rate(&self.anchors) * 1e9
    }

    /// Returns the increase of the counter's rate from the first quarter to the last, in ppm;
    /// `None` if there are too few pairs.
    pub fn drift_ppm(&self) -> Option<f64> {
        let quarter = self.anchors.len() / 4;
        if quarter < 2 {
            return None;
        }
        let (first, last) =
            (&self.anchors[..quarter], &self.anchors[self.anchors.len() - quarter..]);
        Some(1e6 * (rate(last) / rate(first) - 1.0))
    }

    /// Returns the maximum distance of a pair from the straight line through the first and the
    /// last.
    pub fn bend_ns(&self) -> u64 {
        let (first, last) = (self.anchors[0], self.anchors[self.anchors.len() - 1]);
        self.anchors
            .iter()
            .map(|anchor| between(first, last, anchor.0).abs_diff(anchor.1))
            .max()
            .unwrap_or_default()
    }
}

/// Returns the ticks per nanosecond from the first pair to the last.
fn rate(anchors: &[(u64, u64)]) -> f64 {
    let ends = anchors.first().zip(anchors.last());
    ends.map_or(0.0, |(first, last)| (last.0 - first.0) as f64 / (last.1 - first.1).max(1) as f64)
}

fn between(low: (u64, u64), high: (u64, u64), ticks: u64) -> u64 {
    let (ticks, low_ticks, low_ns) = (i128::from(ticks), i128::from(low.0), i128::from(low.1));
    let (wide_ticks, wide_ns) = (i128::from(high.0) - low_ticks, i128::from(high.1) - low_ns);
    let offset = (ticks - low_ticks) * wide_ns / wide_ticks;
    (low_ns + offset).clamp(0, i128::from(u64::MAX)) as u64
}

/// Clock read by a loop.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClockFigures {
    /// `tsc`, or `clock_gettime`.
    pub source: String,
    pub mhz: Option<f64>,
    /// Drift of the counter's rate against CLOCK_MONOTONIC, from begin to end.
    pub drift_ppm: Option<f64>,
    /// Maximum distance of the counter from a straight line.
    pub bend_ns: Option<u64>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_converted_between_and_outside_the_pairs() {
        let calibration =
            Calibration::new(&[(100, 1_000), (300, 1_100), (500, 1_300)]).expect("it goes on");
        let expected = [
            (100, 1_000),
            (200, 1_050),
            (300, 1_100),
            (400, 1_200),
            (500, 1_300),
            (700, 1_500),
            (0, 950),
        ];
        for (ticks, ns) in expected {
            assert_eq!(calibration.ns(ticks), ns, "{ticks}");
        }
        assert_eq!(Calibration::identity().ns(123_456_789), 123_456_789);
    }

    #[test]
    fn pairs_that_do_not_go_on_are_left_out() {
        assert_eq!(Calibration::new(&[(1, 1)]), None);
        assert_eq!(Calibration::new(&[(1, 1), (2, 1), (1, 2)]), None);
        let kept = Calibration::new(&[(1, 1), (2, 0), (3, 9)]).expect("two are left");
        assert_eq!(kept, Calibration::new(&[(1, 1), (3, 9)]).expect("two"));
    }

    #[test]
    fn rate_drift_and_bend() {
        let even: Vec<(u64, u64)> = (0..40).map(|at| (at * 2_000, at * 1_000)).collect();
        let even = Calibration::new(&even).expect("it goes on");
        assert_eq!((even.hertz(), even.drift_ppm(), even.bend_ns()), (2e9, Some(0.0), 0));
        let mut pairs: Vec<(u64, u64)> =
            (0..40_u64).map(|at| (at * 2_000_000, at * 1_000_000)).collect();
        pairs.iter_mut().skip(30).for_each(|pair| pair.0 += (pair.1 - 29_000_000) / 1_000);
        let bent = Calibration::new(&pairs).expect("it goes on");
        assert!(
            bent.drift_ppm().is_some_and(|ppm| (ppm - 500.0).abs() < 1.0),
            "{:?}",
            bent.drift_ppm()
        );
        assert!(bent.bend_ns() > 3_000 && bent.bend_ns() < 5_000, "{}", bent.bend_ns());
        assert_eq!(Calibration::identity().drift_ppm(), None);
    }
}
