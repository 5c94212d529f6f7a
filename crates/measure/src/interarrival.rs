// SPDX-License-Identifier: MIT OR Apache-2.0
//! Distances between long events: random, or regular as caused by a timer.

use crate::document::Events;
use crate::periodicity::{Period, period};

/// Times between events above a threshold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interarrival {
    pub threshold_ns: u64,
    /// Number of events above the threshold; there is one interval less.
    pub n: usize,
    /// `None` with fewer than two events.
    pub mean_ns: Option<f64>,
    /// Sample standard deviation of the intervals; `None` with fewer than three events.
    pub deviation_ns: Option<f64>,
    /// Deviation as a share of the mean: about 1 for random events, far below for regular ones.
    pub variation: Option<f64>,
    /// Period of regular events.
    pub period: Option<Period>,
}

/// Analyses the starts of the events of a class that are longer than a threshold.
///
/// A start without a latency, or the reverse, is ignored; in a complete file they come in pairs.
pub fn interarrival(events: &Events, threshold_ns: u64) -> Interarrival {
    let pairs = events.starts_ns.iter().zip(&events.latencies_ns);
    let mut begins: Vec<u64> =
        pairs.filter(|(_, latency)| **latency > threshold_ns).map(|(start, _)| *start).collect();
    begins.sort_unstable();
    let intervals: Vec<f64> = begins.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean_ns = mean(&intervals);
    let deviation_ns = sample_deviation(&intervals);
    let variation = deviation_ns
        .zip(mean_ns)
        .filter(|(_, mean)| *mean > 0.0)
        .map(|(deviation, mean)| deviation / mean);
    Interarrival {
        threshold_ns,
        n: begins.len(),
        mean_ns,
        deviation_ns,
        variation,
        period: period(&begins),
    }
}

/// Returns the mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the sample standard deviation, by n - 1; `None` for fewer than two values.
pub(crate) fn sample_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Returns the standard deviation of a sample in percent of its mean, which is positive; `None` for
/// fewer than two values.
pub fn deviation_percent(values: &[f64]) -> Option<f64> {
    let (deviation, mean) = sample_deviation(values).zip(mean(values))?;
    Some(if deviation > 0.0 { 100.0 * deviation / mean } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn events(of: &[(u64, u64)]) -> Events {
        let mut events = Events::of("key", None);
        of.iter().for_each(|(start, latency)| events.push(*start, *latency));
        events
    }

    #[test]
    fn only_events_above_the_threshold_count() {
        let events =
            events(&[(SECOND, 110), (2 * SECOND, 100), (3 * SECOND, 101), (7 * SECOND, 200)]);
        let found = interarrival(&events, 100);
        assert_eq!((found.n, found.mean_ns), (3, Some(3e9)));
        let deviation = found.deviation_ns.expect("there are two intervals");
        assert!((deviation - 2f64.sqrt() * 1e9).abs() < 1.0, "{deviation}");
        assert!(
            (found.variation.expect("there are two intervals") - 2f64.sqrt() / 3.0).abs() < 1e-9
        );
        assert_eq!(found.period, None);
    }

    #[test]
    fn few_events_have_no_deviation() {
        let all = events(&[(SECOND, 110), (2 * SECOND, 120), (3 * SECOND, 130)]);
        for (threshold, n, mean_ns) in [(119, 2, Some(1e9)), (129, 1, None), (130, 0, None)] {
            let found = interarrival(&all, threshold);
            assert_eq!((found.n, found.mean_ns), (n, mean_ns));
            assert_eq!((found.deviation_ns, found.variation), (None, None));
        }
        assert_eq!(interarrival(&events(&[(5, 1), (5, 1), (5, 1)]), 0).variation, None);
    }

    #[test]
    fn regular_events_have_a_period() {
        let regular: Vec<(u64, u64)> =
            (1..8).map(|turn| (turn * 5 * SECOND + turn % 2 * 1_000_000, 30)).collect();
        let found = interarrival(&events(&regular), 20);
        assert!(found.variation.is_some_and(|variation| variation < 0.01), "{found:?}");
        assert_eq!(
            found.period.map(|period| (period.every_ns / 10_000_000, period.times)),
            Some((500, 7))
        );
    }

    #[test]
    fn wild_times_are_answered() {
        let wild =
            events(&[(u64::MAX, u64::MAX), (0, u64::MAX), (7, 0), (u64::MAX / 2, u64::MAX - 1)]);
        assert_eq!(interarrival(&wild, u64::MAX).n, 0);
        assert_eq!(interarrival(&wild, 0).n, 3);
    }
}
