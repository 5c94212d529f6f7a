// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest times of one kind, for percentiles.

use std::collections::VecDeque;
use tipme_control::manager::TimeFigures;
use tipme_measure::{Share, Summary};
use tipme_record::Nanos;

/// Maximum number of stored times.
const KEPT_MAX: usize = 1000;

/// A ring of times; the oldest are dropped.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    kept: VecDeque<u64>,
    n: u64,
}

impl Recent {
    pub(crate) fn push(&mut self, time: Nanos) {
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(time.0);
        self.n += 1;
    }

    pub(crate) fn times(&self) -> TimeFigures {
        let kept = Summary::new(self.kept.iter().copied().collect());
        let last_ms = self.kept.back().map_or(0.0, |last| rounded_ms(*last));
        let [p50_ms, p99_ms, max_ms] = [Share::P50, Share::P99, Share::ALL]
            .map(|share| kept.value(share).map_or(0.0, rounded_ms));
        TimeFigures { n: self.n, last_ms, p50_ms, p99_ms, max_ms }
    }
}

/// Converts to milliseconds, rounded to a microsecond.
fn rounded_ms(nanos: u64) -> f64 {
    (nanos as f64 / 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_latest_thousand() {
        let mut recent = Recent::default();
        assert_eq!(recent.times(), TimeFigures::default());
        for ms in 1..=1500 {
            recent.push(Nanos::from_millis(ms));
        }
        let expected = TimeFigures {
            n: 1500,
            last_ms: 1500.0,
            p50_ms: 1000.0,
            p99_ms: 1490.0,
            max_ms: 1500.0,
        };
        assert_eq!(recent.times(), expected);
    }
}
