// SPDX-License-Identifier: MIT OR Apache-2.0
//! Set of latencies with its printed figures.

use crate::percentile::{Share, percentile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latencies in nanoseconds, kept sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    sorted: Vec<u64>,
}

impl Summary {
    /// Creates a summary of latencies in any order, in nanoseconds.
    pub fn new(mut latencies: Vec<u64>) -> Summary {
        latencies.sort_unstable();
        Summary { sorted: latencies }
    }

    /// Returns the number of latencies.
    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    /// Returns all latencies, the shortest first.
    pub fn ascending(&self) -> &[u64] {
        &self.sorted
    }

    /// Returns the nearest-rank percentile of any number of observations; for decisions, not for
    /// display.
    pub fn value(&self, share: Share) -> Option<u64> {
        percentile(&self.sorted, share)
    }

    /// Returns the percentile if it may be printed, that is with five observations above it.
    pub fn shown(&self, share: Share) -> Option<u64> {
        self.value(share).filter(|_| share.is_shown(self.n()))
    }

    /// Returns the largest latency.
    pub fn max(&self) -> Option<u64> {
        self.sorted.last().copied()
    }

    /// Returns the percentile over all but one observation of this value; `None` if none is left.
    ///
    /// This is the baseline without the observation itself, computed without a copy.
    pub fn value_without(&self, latency: u64, share: Share) -> Option<u64> {
        let gone = self.sorted.binary_search(&latency).unwrap_or(self.n());
        let index =
            crate::percentile::nearest_rank(self.n() - usize::from(gone < self.n()), share)?;
        self.sorted.get(if index >= gone { index + 1 } else { index }).copied()
    }
}

/// Returns IP98 by the rule of Interaction to Next Paint: one outlier in fifty is ignored, over all
/// events.
pub fn interaction_p98(summary: &Summary) -> Option<u64> {
    let from_top = summary.n() / 50;
    summary.n().checked_sub(from_top + 1).and_then(|index| summary.sorted.get(index)).copied()
}

/// Numbers of satisfied, tolerating and frustrated users, and the score from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Apdex {
    pub satisfied: usize,
    pub tolerating: usize,
    pub frustrated: usize,
    pub score: f64,
}

/// Returns the Apdex score with a threshold and a limit of frustration in nanoseconds; `None` for
/// no events.
pub fn apdex(summary: &Summary, threshold: u64, frustrated: u64) -> Option<Apdex> {
    let n = summary.n();
    let satisfied = summary.sorted.partition_point(|latency| *latency <= threshold);
    let endured = summary.sorted.partition_point(|latency| *latency <= frustrated.max(threshold));
    let (tolerating, frustrated) = (endured - satisfied, n - endured);
    let score = (satisfied as f64 + tolerating as f64 / 2.0) / n as f64;
    (n > 0).then_some(Apdex { satisfied, tolerating, frustrated, score })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_to(n: u64) -> Summary {
        Summary::new((1..=n).rev().collect())
    }

    #[test]
    fn the_interaction_rule_forgives_one_in_fifty() {
        let expected = [
            (1, 1),
            (2, 2),
            (49, 49),
            (50, 49),
            (51, 50),
            (99, 98),
            (100, 98),
            (101, 99),
            (499, 490),
            (500, 490),
        ];
        for (n, value) in expected {
            assert_eq!(interaction_p98(&one_to(n)), Some(value), "n = {n}");
        }
        assert_eq!(interaction_p98(&Summary::default()), None);
    }

    #[test]
    fn few_observations_are_not_shown_as_a_percentile() {
        assert_eq!(one_to(249).shown(Share::P98), None);
        assert_eq!(one_to(250).shown(Share::P98), Some(245));
        assert_eq!(one_to(249).max(), Some(249));
    }

    #[test]
    fn one_observation_can_be_left_out() {
        assert_eq!(one_to(3).value_without(3, Share::P50), Some(1));
        assert_eq!(one_to(3).value_without(1, Share::P50), Some(2));
        assert_eq!(one_to(3).value_without(9, Share::P50), Some(2));
        assert_eq!(one_to(1).value_without(1, Share::P50), None);
    }

    #[test]
    fn apdex_counts_half_for_tolerating() {
        let score = apdex(&one_to(10), 4, 8).expect("ten events");
        assert_eq!(
            (score.satisfied, score.tolerating, score.frustrated, score.score),
            (4, 4, 2, 0.6)
        );
        assert_eq!(apdex(&Summary::default(), 1, 2), None);
    }
}
