// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats of one side, and the figures of any mixture of them.

use super::bootstrap::RepeatSample;
use crate::document::{Events, Run};
use crate::excess::{Rate, excess_ns, rate, tenth};
use crate::percentile::{Share, nearest_rank, percentile};
use crate::summary::Summary;
use crate::units::ms;

/// Tenths of the threshold above which the excess is summed.
const TENTHS: [u64; 3] = [9, 10, 11];

/// Classes by name with their thresholds.
pub(super) type Thresholds<'a> = [(&'a str, Option<u64>)];

/// One repeat, of one or several classes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Repeat {
    /// Ascending, in nanoseconds.
    pub latencies: Vec<u64>,
    /// Excess above 9, 10 and 11 tenths of the threshold; `None` if a class has no threshold.
    pub excess: Option<[u128; 3]>,
    /// `None` without interaction.
    pub interactive: Option<u64>,
    pub censored: u64,
    pub lost: u64,
}

/// Repeats of one side.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Repeats(pub Vec<Repeat>);

impl Repeat {
    /// Collects the events of these classes in a run. Without any, it is a repeat in which no such
    /// event happened.
    pub(super) fn of(run: &Run, classes: &Thresholds<'_>) -> Repeat {
        let mut repeat = Repeat {
            excess: classes.iter().all(|(_, threshold)| threshold.is_some()).then_some([0; 3]),
            interactive: run.interactive_ns.filter(|time| *time > 0),
            lost: run.lost,
            ..Repeat::default()
        };
        for events in &run.classes {
            if let Some((_, threshold)) = classes.iter().find(|(class, _)| *class == events.class) {
                repeat.add(events, *threshold);
            }
        }
        repeat.latencies.sort_unstable();
        repeat
    }

    fn add(&mut self, events: &Events, threshold: Option<u64>) {
        self.latencies.extend_from_slice(&events.latencies_ns);
        self.censored = self.censored.saturating_add(events.censored);
        if let Some((sums, threshold)) = self.excess.as_mut().zip(threshold) {
            let above =
                TENTHS.map(|tenths| excess_ns(&events.latencies_ns, tenth(threshold, tenths)));
            sums.iter_mut().zip(above).for_each(|(sum, above)| *sum += above);
        }
    }

    /// Returns the sum of all latencies, in milliseconds.
    pub(super) fn cumulative_ms(&self) -> f64 {
        self.latencies.iter().map(|latency| u128::from(*latency)).sum::<u128>() as f64 / 1e6
    }
}

impl Repeats {
    /// Returns the number of events.
    pub(super) fn n(&self) -> usize {
        self.0.iter().map(|repeat| repeat.latencies.len()).sum()
    }

    /// Returns the summary of all events.
    pub(super) fn summary(&self) -> Summary {
        Summary::new(self.0.iter().flat_map(|repeat| repeat.latencies.iter().copied()).collect())
    }

    /// Returns the excess latency rate of all repeats together.
    pub(super) fn rate(&self) -> Option<Rate> {
        let times: Option<Vec<u64>> = self.0.iter().map(|repeat| repeat.interactive).collect();
        let sums: Option<Vec<[u128; 3]>> = self.0.iter().map(|repeat| repeat.excess).collect();
        let (times, sums) = times.zip(sums)?;
        let total = times.iter().fold(0u64, |total, time| total.saturating_add(*time));
        rate(|tenths| sums.iter().map(|sum| sum[(tenths - TENTHS[0]) as usize]).sum(), total)
    }

    /// Returns the rate at the threshold, for any mixture of the repeats.
    pub(super) fn rates(&self) -> RepeatSample<'_> {
        RepeatSample { repeats: self.0.len(), figure: Box::new(|drawn| self.mixed_rate(drawn)) }
    }

    fn mixed_rate(&self, drawn: &[u32]) -> Option<f64> {
        let (mut excess, mut minutes) = (0.0, 0.0);
        for (repeat, times) in self.0.iter().zip(drawn) {
            excess += f64::from(*times) * repeat.excess?[1] as f64 / 1e6;
            minutes += f64::from(*times) * repeat.interactive? as f64 / 60e9;
        }
        (minutes > 0.0).then(|| excess / minutes)
    }

    /// Returns a percentile of the events in milliseconds, for any mixture of the repeats.
    pub(super) fn percentiles(&self, share: Share) -> RepeatSample<'_> {
        let mixture = Mixture::new(&self.0, share);
        RepeatSample {
            repeats: self.0.len(),
            figure: Box::new(move |drawn| mixture.percentile(drawn).map(ms)),
        }
    }
}

/// Range for a percentile of any mixture of repeats: between the smallest and the largest of their
/// own percentiles.
struct Mixture<'a> {
    share: Share,
    low: u64,
    high: u64,
    windows: Vec<RepeatWindow<'a>>,
}

/// One repeat: the number of its latencies, the number below the range, and those in the range.
struct RepeatWindow<'a> {
    n: u64,
    below: u64,
    within: &'a [u64],
}

impl<'a> Mixture<'a> {
    fn new(repeats: &'a [Repeat], share: Share) -> Mixture<'a> {
        let own: Vec<u64> =
            repeats.iter().filter_map(|repeat| percentile(&repeat.latencies, share)).collect();
        let low = own.iter().copied().min().unwrap_or_default();
        let high = own.iter().copied().max().unwrap_or_default();
        let windows = repeats.iter().map(|repeat| {
            let below = repeat.latencies.partition_point(|latency| *latency < low);
            let end = repeat.latencies.partition_point(|latency| *latency <= high);
            let within = repeat.latencies.get(below..end).unwrap_or_default();
            RepeatWindow { n: repeat.latencies.len() as u64, below: below as u64, within }
        });
        Mixture { share, low, high, windows: windows.collect() }
    }

    /// Returns the nearest-rank percentile without expanding the events; `None` if there are none.
    fn percentile(&self, drawn: &[u32]) -> Option<u64> {
        let n = usize::try_from(self.sum(drawn, |window| window.n)).ok()?;
        let rank = nearest_rank(n, self.share)? as u64;
        let (mut low, mut high) = (self.low, self.high);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.sum(drawn, |window| window.to(middle)) > rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }

    /// Sums a count of each repeat, as often as it is drawn.
    fn sum(&self, drawn: &[u32], count: impl Fn(&RepeatWindow<'_>) -> u64) -> u64 {
        let weighed = self.windows.iter().zip(drawn).filter(|(_, times)| **times > 0);
        weighed.fold(0, |sum, (window, times)| {
            sum.saturating_add(count(window).saturating_mul(u64::from(*times)))
        })
    }
}

impl RepeatWindow<'_> {
    /// Returns the number of latencies up to this one, which must not be below the range.
    fn to(&self, latency: u64) -> u64 {
        self.below + self.within.partition_point(|one| *one <= latency) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn repeats(latencies: &[Vec<u64>]) -> Repeats {
        let repeats = latencies.iter().map(|latencies| {
            let mut events = Events { threshold_ns: Some(100), ..Events::of("key", None) };
            latencies.iter().for_each(|latency| events.push(0, *latency));
            let run = Run {
                interactive_ns: Some(60_000_000_000),
                classes: vec![events],
                ..Run::default()
            };
            Repeat::of(&run, &[("key", Some(100))])
        });
        Repeats(repeats.collect())
    }

    #[test]
    fn a_repeat_gathers_its_classes() {
        let mut keys = Events { threshold_ns: Some(10), censored: 1, ..Events::of("key", None) };
        let mut windows =
            Events { threshold_ns: Some(100), censored: 2, ..Events::of("window", None) };
        [30, 10].into_iter().for_each(|latency| keys.push(0, latency));
        windows.push(0, 110);
        let run = Run {
            interactive_ns: Some(7),
            lost: 5,
            classes: vec![keys, windows],
            ..Run::default()
        };
        let all = Repeat::of(&run, &[("key", Some(10)), ("window", Some(100))]);
        let expected = Repeat {
            latencies: vec![10, 30, 110],
            excess: Some([42, 30, 19]),
            interactive: Some(7),
            censored: 3,
            lost: 5,
        };
        assert_eq!(all, expected);
        assert_eq!(Repeat::of(&run, &[("key", None)]).excess, None);
        let none = Repeat::of(&run, &[("click", Some(10))]);
        assert_eq!((none.latencies.len(), none.excess, none.censored), (0, Some([0; 3]), 0));
    }

    #[test]
    fn a_rate_needs_interaction_in_every_repeat() {
        let mut both = repeats(&[vec![1_000_100], vec![3_000_100]]);
        assert_eq!(both.rate().map(|rate| rate.at_ms_per_minute), Some(2.0));
        assert_eq!((both.rates().figure)(&[0, 2]), Some(3.0));
        both.0[1].interactive = None;
        assert_eq!((both.rate(), (both.rates().figure)(&[2, 0])), (None, None));
    }

    proptest! {
        /// Compares with the expanded events.
        #[test]
        fn mixtures_have_exact_percentiles(
            runs in vec((vec(prop_oneof![0..50_u64, any::<u64>()], 0..20), 0..4_u32), 0..6),
            share in 0..=10_000_u32,
        ) {
            let (latencies, drawn): (Vec<Vec<u64>>, Vec<u32>) = runs.into_iter().unzip();
            let mut laid_out: Vec<u64> = latencies.iter().zip(&drawn)
                .flat_map(|(run, times)| run.repeat(*times as usize))
                .collect();
            laid_out.sort_unstable();
            let repeats = repeats(&latencies);
            let found = Mixture::new(&repeats.0, Share(share)).percentile(&drawn);
            prop_assert_eq!(found, percentile(&laid_out, Share(share)));
        }
    }
}
