// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of regular recurrences.

use crate::units::ms;

/// Minimum number of activations for a period.
const ACTIVATIONS_MIN: usize = 4;

/// Maximum deviation of intervals as a share of their mean.
const DEVIATION_MAX: f64 = 0.1;

/// Maximum length of an interval in periods: activations in between were missed.
const MISSED_MAX: f64 = 3.0;

/// Minimum number of intervals per missed activation.
const MISSED_SHARE: usize = 3;

/// Regular recurrence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Period {
    pub every_ns: u64,
    /// Number of observed activations.
    pub times: usize,
    /// Standard deviation of the intervals as a share of their mean.
    pub deviation: f64,
}

impl Period {
    /// Formats `every 5.0 s (7 times, deviation 0.4%)`.
    pub fn text(&self) -> String {
        let ms = ms(self.every_ns);
        let every = if ms >= 999.5 { format!("{:.1} s", ms / 1e3) } else { format!("{ms:.1} ms") };
        format!("every {every} ({} times, deviation {:.1}%)", self.times, 100.0 * self.deviation)
    }

    /// Returns the period in seconds, for JSON.
    pub fn seconds(&self) -> f64 {
        self.every_ns as f64 / 1e9
    }
}

/// Finds the period of activations from their start times in nanoseconds, which must be ascending.
///
/// Occasional missed activations do not hide the period; a change of the period does.
pub fn period(begins: &[u64]) -> Option<Period> {
    if begins.len() < ACTIVATIONS_MIN {
        return None;
    }
    let intervals: Vec<f64> =
        begins.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    let mut sorted = intervals.clone();
    sorted.sort_by(f64::total_cmp);
    // The lower median: of two intervals one may include a missed activation.
    let base = sorted[(sorted.len() - 1) / 2];
    let periods: Vec<f64> =
        intervals.iter().map(|interval| (interval / base.max(1.0)).round()).collect();
    let missed: f64 = periods.iter().map(|periods| periods - 1.0).sum();
    let fits = periods.iter().all(|periods| (1.0..=MISSED_MAX).contains(periods));
    if !fits || missed * MISSED_SHARE as f64 > periods.len() as f64 {
        return None;
    }
    let single: Vec<f64> =
        intervals.iter().zip(&periods).map(|(interval, periods)| interval / periods).collect();
    let mean = single.iter().sum::<f64>() / single.len() as f64;
    let variance = single.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / single.len() as f64;
    let deviation = variance.sqrt() / mean.max(1.0);
    (deviation < DEVIATION_MAX).then_some(Period {
        every_ns: mean as u64,
        times: begins.len(),
        deviation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn times(seconds: &[f64]) -> Vec<u64> {
        seconds.iter().map(|at| (at * 1e9) as u64).collect()
    }

    #[test]
    fn a_period_has_figures_and_a_text() {
        let found =
            period(&times(&[1.0, 6.0, 11.02, 16.0, 21.0, 26.0, 31.0])).expect("it is regular");
        assert_eq!(found.text(), "every 5.0 s (7 times, deviation 0.2%)");
        assert!((found.seconds() - 5.0).abs() < 1e-6, "{}", found.seconds());
        let fast = Period { every_ns: 33_300_000, times: 9, deviation: 0.0 };
        assert_eq!(fast.text(), "every 33.3 ms (9 times, deviation 0.0%)");
    }

    #[test]
    fn irregular_or_few_times_have_no_period() {
        assert_eq!(period(&times(&[1.0, 2.0, 3.0])), None);
        assert_eq!(period(&times(&[1.0, 2.0, 4.5, 4.9, 9.0, 9.3])), None);
        assert_eq!(period(&times(&[1.0, 1.0, 1.0, 1.0, 1.0])), None);
        assert_eq!(period(&times(&[0.0, 1.0, 3.0, 4.0, 6.0, 7.0, 9.0, 10.0])), None);
    }

    fn jittered(every: u64, jitter: &[f64]) -> Vec<u64> {
        (0..)
            .zip(jitter)
            .map(|(index, jitter)| SECOND + index * every + (jitter * every as f64) as u64)
            .collect()
    }

    /// Returns the relative error of a period; 1 without one.
    fn error(found: Option<Period>, every: u64) -> f64 {
        found.map_or(1.0, |found| (found.every_ns as f64 / every as f64 - 1.0).abs())
    }

    proptest! {
        #[test]
        fn jitter_up_to_a_twentieth_keeps_the_period(
            every in 10_000_000..20 * SECOND,
            jitter in proptest::collection::vec(0.0..0.05_f64, 4..40),
        ) {
            let found = period(&jittered(every, &jitter));
            prop_assert!(error(found, every) < 0.05, "{:?}", found);
        }

        #[test]
        fn a_missed_one_keeps_the_period(
            every in 10_000_000..20 * SECOND,
            jitter in proptest::collection::vec(0.0..0.05_f64, 6..40),
            missed in 1..5_usize,
        ) {
            let mut begins = jittered(every, &jitter);
            begins.remove(missed);
            let found = period(&begins);
            prop_assert!(found.is_some_and(|found| found.times == begins.len()));
            prop_assert!(error(found, every) < 0.05, "{:?}", found);
        }

        #[test]
        fn any_times_are_answered(
            mut begins in proptest::collection::vec(any::<u64>(), 0..30),
            sorted in any::<bool>(),
        ) {
            if sorted {
                begins.sort_unstable();
            }
            prop_assert!(period(&begins).is_none_or(|found| found.deviation < DEVIATION_MAX));
        }
    }
}
