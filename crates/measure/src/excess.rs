// SPDX-License-Identifier: MIT OR Apache-2.0
//! Excess latency rate: latency above the threshold per minute of interaction.
//!
//! It grows with the number of events that are too long and with their excess; unnoticed latency
//! does not count. Raising the threshold by 1 ns removes 1 ns per event above it, so the rate is
//! also printed at nine and eleven tenths of the threshold: this reveals a figure that depends on
//! the choice.

use crate::document::Events;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Excess latency rate at nine tenths of the threshold, at it, and at eleven tenths.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    pub below_ms_per_minute: f64,
    pub at_ms_per_minute: f64,
    pub above_ms_per_minute: f64,
}

/// Returns the milliseconds of latency over the threshold per minute of interaction, for classes
/// with their own thresholds. Classes without one do not count. `interactive` is the time of
/// interaction in nanoseconds; the result is `None` if it is zero.
pub fn excess_latency_rate<'a>(
    classes: impl Iterator<Item = &'a Events> + Clone,
    interactive: u64,
) -> Option<Rate> {
    let classes = classes.filter_map(|events| Some((events, events.threshold_ns?)));
    rate(
        |tenths| {
            let excess = classes.clone().map(|(events, threshold)| {
                excess_ns(&events.latencies_ns, tenth(threshold, tenths))
            });
            excess.sum()
        },
        interactive,
    )
}

/// Returns the class with the most excess, and its share of the total from 0 to 1; `None` without
/// any excess.
pub fn top_class<'a>(classes: impl Iterator<Item = &'a Events>) -> Option<(String, f64)> {
    top(classes.filter_map(|events| {
        Some((events.class.as_str(), excess_ns(&events.latencies_ns, events.threshold_ns?)))
    }))
}

/// Returns the name with the largest sum, and its share of the total.
pub(crate) fn top<'a>(parts: impl Iterator<Item = (&'a str, u128)>) -> Option<(String, f64)> {
    let mut sums = std::collections::BTreeMap::<&str, u128>::new();
    parts.for_each(|(name, part)| *sums.entry(name).or_default() += part);
    let all: u128 = sums.values().sum();
    let (name, most) =
        sums.into_iter().max_by_key(|(_, sum)| *sum).filter(|(_, most)| *most > 0)?;
    Some((name.to_owned(), most as f64 / all as f64))
}

/// Returns the total excess of latencies over a threshold. No file contains enough of them to
/// overflow the sum.
pub(crate) fn excess_ns(latencies: &[u64], threshold: u64) -> u128 {
    latencies.iter().map(|latency| over(*latency, threshold)).sum()
}

/// Returns this many tenths of a threshold.
pub fn tenth(threshold: u64, tenths: u64) -> u64 {
    u64::try_from(u128::from(threshold) * u128::from(tenths) / 10).unwrap_or(u64::MAX)
}

/// Returns the rate, given the excess as a function of the tenths of the threshold.
pub(crate) fn rate(excess: impl Fn(u64) -> u128, interactive: u64) -> Option<Rate> {
    if interactive == 0 {
        return None;
    }
    let minutes = interactive as f64 / 60e9;
    let [below_ms_per_minute, at_ms_per_minute, above_ms_per_minute] =
        [9, 10, 11].map(|tenths| excess(tenths) as f64 / 1e6 / minutes);
    Some(Rate { below_ms_per_minute, at_ms_per_minute, above_ms_per_minute })
}

fn over(latency: u64, threshold: u64) -> u128 {
    u128::from(latency.saturating_sub(threshold))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(class: &str, threshold: Option<u64>, latencies: &[u64]) -> Events {
        let mut events = Events { threshold_ns: threshold, ..Events::of(class, None) };
        latencies.iter().for_each(|latency| events.push(0, *latency));
        events
    }

    #[test]
    fn excess_is_counted_per_minute() {
        let keys = events("key", Some(100_000_000), &[150_000_000, 90_000_000]);
        let rate = excess_latency_rate([&keys].into_iter(), 30_000_000_000)
            .expect("there was interactive time");
        assert_eq!((rate.below_ms_per_minute, rate.at_ms_per_minute), (120.0, 100.0));
        assert_eq!(rate.above_ms_per_minute, 80.0);
    }

    #[test]
    fn classes_add_up_by_their_own_thresholds() {
        let classes = [
            events("key", Some(100_000_000), &[150_000_000, 90_000_000]),
            events("window", Some(1_000_000_000), &[1_100_000_000]),
            events("interval", None, &[u64::MAX]),
            events("key", Some(100_000_000), &[150_000_000]),
        ];
        let rate = excess_latency_rate(classes.iter(), 60_000_000_000)
            .expect("there was interactive time");
        assert_eq!((rate.at_ms_per_minute, rate.above_ms_per_minute), (200.0, 80.0));
        assert_eq!(excess_latency_rate(classes.iter(), 0), None);
        assert_eq!(top_class(classes.iter()), Some(("window".to_owned(), 0.5)));
        assert_eq!(top_class(classes[2..3].iter()), None);
    }

    #[test]
    fn no_sum_overflows() {
        assert_eq!(excess_ns(&[u64::MAX; 3], 0), 3 * u128::from(u64::MAX));
        assert_eq!((tenth(u64::MAX, 11), tenth(100, 9), tenth(1, 9)), (u64::MAX, 90, 0));
    }

    fn count_above(latencies: &[u64], limit: u64) -> u128 {
        latencies.iter().filter(|latency| **latency > limit).count() as u128
    }

    fn rate_of(latencies: &[u64], threshold_ms: u64, minutes: u64) -> f64 {
        let keys = events("key", Some(threshold_ms * 1_000_000), latencies);
        let rate = excess_latency_rate([&keys].into_iter(), minutes * 60_000_000_000);
        rate.expect("there was interactive time").at_ms_per_minute
    }

    proptest! {
        /// The derivative of the excess by the threshold is minus the number of events above it.
        #[test]
        fn excess_falls_by_the_number_of_events_above(
            latencies in proptest::collection::vec(prop_oneof![0..1_000_u64, any::<u64>()], 0..50),
            threshold in prop_oneof![0..1_000_u64, 0..u64::MAX],
        ) {
            let fall = excess_ns(&latencies, threshold) - excess_ns(&latencies, threshold + 1);
            prop_assert_eq!(fall, count_above(&latencies, threshold));
        }

        /// Over a step, the mean slope lies between the numbers of events above both ends.
        #[test]
        fn excess_is_convex(
            latencies in proptest::collection::vec(0..1_000_u64, 0..50),
            threshold in 0..1_000_u64,
            step in 1..500_u64,
        ) {
            let fall = excess_ns(&latencies, threshold) - excess_ns(&latencies, threshold + step);
            prop_assert!(fall <= count_above(&latencies, threshold) * u128::from(step));
            prop_assert!(fall >= count_above(&latencies, threshold + step) * u128::from(step));
        }

        /// The same in the printed unit: milliseconds per minute for each millisecond of threshold.
        #[test]
        fn the_rate_falls_by_the_number_of_events_above(
            latencies in proptest::collection::vec(0..3_000_u64, 1..50),
            threshold in 1..200_u64,
            minutes in 1..10_u64,
        ) {
            let nanos: Vec<u64> = latencies.iter().map(|latency| latency * 1_000_000).collect();
            let slope =
                rate_of(&nanos, threshold + 1, minutes) - rate_of(&nanos, threshold, minutes);
            let above = count_above(&latencies, threshold) as f64 / minutes as f64;
            prop_assert!((slope + above).abs() < 1e-6, "{} {}", slope, above);
        }
    }
}
