// SPDX-License-Identifier: MIT OR Apache-2.0
//! Confidence interval of the difference between two sets of repeats.
//!
//! *Repeats* are resampled, not events: the events of one repeat share its caches, its neighbours
//! and its moment, so ten thousand events of one unlucky run are one piece of evidence and not ten
//! thousand. An interval from resampled events would shrink with the length of a run while the next
//! run lies outside of it.
//!
//! With few repeats the plain bootstrap is too confident: the variance of each side is too small by
//! (k - 1) / k, and its tails are those of a normal distribution. Two corrections apply: deviations
//! are scaled by the root of k / (k - 1), and the interval by the ratio of Student's to the normal
//! quantile, with the degrees of freedom by Welch and Satterthwaite.

use fastrand::Rng;

/// Number of bootstrap draws.
pub(crate) const RESAMPLES: usize = 4_000;

/// Fixed seed, so that the same files give the same figures.
const SEED: u64 = 0x7469_706d_6520_3938;

/// Quantile of the normal distribution with 2.5% above it.
const NORMAL: f64 = 1.959_964;

/// Difference with an interval that covers the true one in 95 of 100 cases.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Estimate {
    pub difference: f64,
    pub low: f64,
    pub high: f64,
}

/// Figure of a bootstrap sample of the repeats, from the number of times each repeat was drawn;
/// `None` if the sample has no such figure.
pub(crate) type Figure<'a> = Box<dyn Fn(&[u32]) -> Option<f64> + 'a>;

/// Figure of one side, and the number of its repeats.
pub(crate) struct RepeatSample<'a> {
    pub repeats: usize,
    pub figure: Figure<'a>,
}

impl RepeatSample<'_> {
    /// Returns the figure of all repeats, each counted once.
    pub(super) fn observed(&self) -> Option<f64> {
        (self.figure)(&vec![1; self.repeats])
    }

    /// Returns the deviations of the figures of resampled repeats from the observed one. Draws
    /// without a figure are left out.
    fn deviations(&self, observed: f64, stream: u64) -> Vec<f64> {
        let mut random = Rng::with_seed(SEED ^ stream);
        let spread = (self.repeats as f64 / (self.repeats as f64 - 1.0)).sqrt();
        (0..RESAMPLES)
            .filter_map(|_| (self.figure)(&draw(&mut random, self.repeats)))
            .map(|figure| (figure - observed) * spread)
            .collect()
    }
}

/// Draws `count` times with replacement; returns the number of times each item is drawn.
fn draw(random: &mut Rng, count: usize) -> Vec<u32> {
    let mut drawn = vec![0; count];
    (0..count).for_each(|_| drawn[random.usize(..count)] += 1);
    drawn
}

/// Returns the other side's figure minus that of the base. Returns `None` if a side has no figure,
/// fewer than two repeats, or too few draws with a figure to determine the tails.
pub(crate) fn estimate(base: &RepeatSample<'_>, other: &RepeatSample<'_>) -> Option<Estimate> {
    let (base_is, other_is) = (base.observed()?, other.observed()?);
    if base.repeats.min(other.repeats) < 2 {
        return None;
    }
    let (of_base, of_other) = (base.deviations(base_is, 0), other.deviations(other_is, 1));
    let mut sums: Vec<f64> =
        of_base.iter().zip(&of_other).map(|(base, other)| other - base).collect();
    if sums.len() < RESAMPLES / 2 {
        return None;
    }
    sums.sort_by(f64::total_cmp);
    let tail = sums.len() / 40;
    let freedom = freedom((variance(&of_base), base.repeats), (variance(&of_other), other.repeats));
    let (difference, wide) = (other_is - base_is, student(freedom) / NORMAL);
    let low = difference + wide * sums[tail - 1].min(0.0);
    let high = difference + wide * sums[sums.len() - tail].max(0.0);
    Some(Estimate { difference, low, high })
}

fn variance(deviations: &[f64]) -> f64 {
    deviations.iter().map(|deviation| deviation * deviation).sum::<f64>()
        / deviations.len().max(1) as f64
}

/// Returns the degrees of freedom of the difference of two means with these variances and numbers
/// of repeats.
fn freedom((base, bases): (f64, usize), (other, others): (f64, usize)) -> f64 {
    let sum = base * base / (bases as f64 - 1.0) + other * other / (others as f64 - 1.0);
    let freedom = (base + other).powi(2) / sum;
    // Without any spread the value does not matter.
    if freedom.is_finite() { freedom.max(1.0) } else { 1.0 }
}

/// Returns the quantile of Student's distribution with 2.5% above it, by the Cornish-Fisher
/// expansion: within 0.3% from 4 degrees of freedom on.
fn student(freedom: f64) -> f64 {
    let (first, second, third) = (2.372_4, 2.822_6, 2.555_8);
    NORMAL + (first + (second + third / freedom) / freedom) / freedom
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use proptest::prelude::*;

    /// Returns the mean of the drawn values as a figure.
    fn means(values: &[f64]) -> RepeatSample<'_> {
        RepeatSample {
            repeats: values.len(),
            figure: Box::new(move |drawn| {
                let parts = values.iter().zip(drawn);
                let sum: f64 = parts.map(|(value, times)| value * f64::from(*times)).sum();
                Some(sum / values.len() as f64)
            }),
        }
    }

    /// Returns a sum of twelve uniform numbers: normal except in the far tails.
    fn normal(random: &mut Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    fn normals(random: &mut Rng, count: usize) -> Vec<f64> {
        (0..count).map(|_| normal(random)).collect()
    }

    /// Returns the percentage of pairs of sets for which a difference is shown.
    fn shown_percent(count: usize, shift: f64) -> f64 {
        const PAIRS: u64 = 200;
        let shown = (0..PAIRS).filter(|pair| {
            let mut random = Rng::with_seed(*pair);
            let (base, other) = (normals(&mut random, count), normals(&mut random, count));
            let other: Vec<f64> = other.iter().map(|value| value + shift).collect();
            let estimate = estimate(&means(&base), &means(&other)).expect("every draw has a mean");
            estimate.low > 0.0 || estimate.high < 0.0
        });
        shown.count() as f64 / PAIRS as f64 * 100.0
    }

    #[test]
    fn chance_alone_shows_a_difference_in_about_five_percent() {
        let (five, ten) = (shown_percent(5, 0.0), shown_percent(10, 0.0));
        assert!((1.0..=8.0).contains(&five), "{five}%");
        assert!((2.0..=8.0).contains(&ten), "{ten}%");
    }

    #[test]
    fn differences_of_three_deviations_are_found() {
        let found = shown_percent(5, 3.0);
        assert!(found > 90.0, "{found}%");
    }

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (freedom, quantile) in
            [(4.0, 2.776), (5.0, 2.571), (8.0, 2.306), (20.0, 2.086), (1e9, 1.960)]
        {
            let ratio = student(freedom) / quantile;
            assert!((ratio - 1.0).abs() < 0.003, "{freedom}: {ratio}");
        }
    }

    #[test]
    fn every_repeat_is_drawn_as_often_as_any_other() {
        let mut random = Rng::with_seed(1);
        let mut sums = [0u32; 7];
        for _ in 0..10_000 {
            let drawn = draw(&mut random, 7);
            assert_eq!(drawn.iter().sum::<u32>(), 7);
            sums.iter_mut().zip(drawn).for_each(|(sum, times)| *sum += times);
        }
        assert!(sums.iter().all(|sum| (9_500..10_500).contains(sum)), "{sums:?}");
    }

    #[test]
    fn without_figures_there_is_no_estimate() {
        let one = [1.0];
        assert_eq!(estimate(&means(&one), &means(&one)), None);
        let none = RepeatSample { repeats: 5, figure: Box::new(|_| None) };
        assert_eq!(estimate(&none, &means(&[1.0; 5])), None);
        let seldom = RepeatSample {
            repeats: 5,
            figure: Box::new(|drawn| drawn.iter().all(|times| *times == 1).then_some(1.0)),
        };
        assert_eq!(estimate(&seldom, &means(&[1.0; 5])), None);
    }

    #[test]
    fn without_spread_the_interval_is_the_difference() {
        let estimate =
            estimate(&means(&[1.0; 5]), &means(&[3.0; 5])).expect("every draw has a mean");
        assert_eq!(estimate, Estimate { difference: 2.0, low: 2.0, high: 2.0 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn the_interval_holds_the_difference(
            base in proptest::collection::vec(-1e18..1e18_f64, 2..12),
            other in proptest::collection::vec(-1e18..1e18_f64, 2..12),
        ) {
            let estimate = estimate(&means(&base), &means(&other)).expect("every draw has a mean");
            let Estimate { difference, low, high } = estimate;
            prop_assert!(low <= difference && difference <= high, "{:?}", estimate);
        }
    }
}
