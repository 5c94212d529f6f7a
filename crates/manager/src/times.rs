// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest times of one kind, for percentiles.

use std::collections::VecDeque;
use tipme_control::manager::TimeFigures;
use tipme_record::Nanos;

/// Times that are kept.
const KEPT_MAX: usize = 1000;

/// Times as they come in; the oldest make room.
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
        let mut sorted: Vec<u64> = self.kept.iter().copied().collect();
        sorted.sort_unstable();
        let Some(max) = sorted.last() else { return TimeFigures::default() };
        let at = |share: f64| ms(sorted[((sorted.len() - 1) as f64 * share).ceil() as usize]);
        let last_ms = self.kept.back().map_or(0.0, |last| ms(*last));
        TimeFigures { n: self.n, last_ms, p50_ms: at(0.5), p99_ms: at(0.99), max_ms: ms(*max) }
    }
}

/// To a microsecond.
fn ms(nanos: u64) -> f64 {
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
        let expected = TimeFigures { n: 1500, last_ms: 1500.0, p50_ms: 1001.0, p99_ms: 1491.0, max_ms: 1500.0 };
        assert_eq!(recent.times(), expected);
    }
}
