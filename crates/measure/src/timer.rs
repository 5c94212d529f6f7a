// SPDX-License-Identifier: MIT OR Apache-2.0
//! A periodic thread: its deadlines, its wakeups, and figures of both.
//!
//! Deadline i of a thread is its start plus i periods. A wakeup answers one deadline; deadlines
//! that had passed by then without a wakeup of their own are *overruns*, so wakeups, overruns and
//! losses sum to the deadlines of the run. *Lateness* is wakeup minus deadline. An *interval* is
//! the time between two wakeups: tables 1 to 3 of the paper show intervals, and they look best if
//! deadlines are missed.

mod clocks;
mod mechanism;
mod outliers;

use crate::percentile::{median, percentile};
use crate::units::us;
use crate::{Events, Run, Share};
pub use clocks::{Clocks, ClocksApart, OfferedClock};
pub use mechanism::TimerMechanism;
pub use outliers::{
    LatenessCause, LatenessPortion, OUTLIERS_MAX, Outlier, OutlierCulprit, at_once, budget,
    culprits, outlier_threshold,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Width of a bin of intervals, as in the paper, in nanoseconds.
pub const BIN_NS: u64 = 100_000;

/// Class of a run's events: starts are deadlines, latencies are lateness.
pub const LATENESS: &str = "lateness";

/// Divisor for the first and the last part of a run, which determine the drift.
const DRIFT_PART: usize = 10;

/// Wakeups of one thread with its deadlines.
#[derive(Clone, Copy, Debug)]
pub struct WakeUpSeries<'a> {
    period_ns: u64,
    expected: u64,
    lost: u64,
    events: &'a Events,
}

impl<'a> WakeUpSeries<'a> {
    /// Creates the series; returns `None` if the run contains no lateness, or the period is zero.
    pub fn new(run: &'a Run, period_ns: u64) -> Option<WakeUpSeries<'a>> {
        let events = run.classes.iter().find(|events| events.class == LATENESS)?;
        let expected = run.duration_ns.checked_div(period_ns)?;
        Some(WakeUpSeries { period_ns, expected, lost: run.lost, events })
    }

    /// Returns the number of wakeups.
    pub fn n(&self) -> u64 {
        self.events.starts_ns.len().min(self.events.latencies_ns.len()) as u64
    }

    /// Returns the number of deadlines of the run.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Returns the number of deadlines without a wakeup of their own.
    pub fn overruns(&self) -> u64 {
        self.expected.saturating_sub(self.n()).saturating_sub(self.lost)
    }

    /// Returns the lateness of each wakeup. A wakeup before its deadline, which no mechanism should
    /// cause, counts as on time.
    pub fn lateness(&self) -> &'a [u64] {
        &self.events.latencies_ns
    }

    /// Returns the times of the wakeups.
    pub fn wakes(&self) -> impl Iterator<Item = u64> + 'a {
        let pairs = self.events.starts_ns.iter().zip(&self.events.latencies_ns);
        pairs.map(|(deadline, lateness)| deadline.saturating_add(*lateness))
    }

    /// Returns the times between wakeups.
    pub fn intervals(&self) -> Vec<u64> {
        self.wakes()
            .zip(self.wakes().skip(1))
            .map(|(before, wake)| wake.saturating_sub(before))
            .collect()
    }

    /// Returns the lateness of every deadline, including missed ones.
    ///
    /// A late thread does not observe the further deadlines that it misses meanwhile (coordinated
    /// omission). A wakeup late by l therefore also counts as l - P, l - 2P and so on, as far as
    /// deadlines were missed.
    pub(crate) fn corrected(&self) -> Vec<u64> {
        let mut all = Vec::new();
        for (index, lateness) in self.lateness().iter().enumerate().take(self.n() as usize) {
            let late = (0..=self.missed_after(index))
                .map(|periods| lateness.saturating_sub(periods.saturating_mul(self.period_ns)));
            all.extend(
                late.enumerate()
                    .take_while(|(periods, late)| *periods == 0 || *late > 0)
                    .map(|(_, late)| late),
            );
        }
        all
    }

    /// Returns the number of deadlines between that of a wakeup and that of the next one, or the
    /// end of the run.
    fn missed_after(&self, index: usize) -> u64 {
        let starts = &self.events.starts_ns;
        let (Some(first), Some(this)) = (starts.first(), starts.get(index)) else { return 0 };
        let end = first.saturating_add(self.expected.saturating_mul(self.period_ns));
        let next = starts.get(index + 1).copied().unwrap_or(end);
        (next.saturating_sub(*this) / self.period_ns.max(1)).saturating_sub(1).min(self.expected)
    }

    /// Returns for each wakeup the time that the thread itself requested, and the time of the
    /// wakeup.
    ///
    /// The requested time is the deadline, except for naive relative sleeping: there it is a period
    /// after the previous wakeup.
    pub fn asked(&self, mechanism: TimerMechanism) -> Vec<(u64, u64)> {
        if mechanism != TimerMechanism::Relative {
            return self.events.starts_ns.iter().copied().zip(self.wakes()).collect();
        }
        let first = self.events.starts_ns.first().copied();
        let after = self.wakes().map(|wake| wake.saturating_add(self.period_ns));
        first.into_iter().chain(after).zip(self.wakes()).collect()
    }

    /// Returns the growth of lateness in microseconds per second, from the medians of the first and
    /// the last tenth of the wakeups. Returns `None` for fewer than twenty.
    pub fn drift_us_per_s(&self) -> Option<f64> {
        let late = self.lateness();
        let part = late.len() / DRIFT_PART;
        let (first, last) = (late.get(..part)?, late.get(late.len() - part..)?);
        let apart = (late.len() - part) as f64 * self.period_ns as f64 / 1e9;
        let (before, after) = (median(first)?, median(last)?);
        (part >= 2).then_some((after as f64 - before as f64) / 1e3 / apart)
    }
}

/// Distribution of times in microseconds. A percentile with fewer than five values above is `None`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    pub n: u64,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    /// Standard deviation of all values.
    pub sd: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
}

/// 99.9th percentile.
const P999: Share = Share(9_990);

impl Spread {
    /// Computes the spread of times in nanoseconds.
    pub fn of(mut values: Vec<u64>) -> Spread {
        values.sort_unstable();
        let [p50, p99, p999] = [Share::P50, Share::P99, P999].map(|share| {
            percentile(&values, share).filter(|_| share.is_shown(values.len())).map(us)
        });
        let count = values.len() as f64;
        let mean = values.iter().map(|value| us(*value)).sum::<f64>() / count;
        let variance = values.iter().map(|value| (us(*value) - mean).powi(2)).sum::<f64>() / count;
        Spread {
            n: values.len() as u64,
            min: values.first().copied().map(us),
            max: values.last().copied().map(us),
            mean: Some(mean).filter(|mean| mean.is_finite()),
            sd: Some(variance.sqrt()).filter(|sd| sd.is_finite()),
            p50,
            p99,
            p999,
        }
    }
}

/// Counts intervals in bins of [`BIN_NS`]: start of the bin in microseconds, and count. Empty bins
/// are left out.
pub fn bins(intervals: &[u64]) -> Vec<(u64, u64)> {
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    for interval in intervals {
        *bins.entry(interval / BIN_NS).or_default() += 1;
    }
    bins.into_iter().map(|(bin, count)| (bin * BIN_NS / 1_000, count)).collect()
}

/// Figures of one mechanism, over all its threads.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TimerFigures {
    pub interval_us: Spread,
    pub lateness_us: Spread,
    /// Lateness including the deadlines missed by late wakeups.
    pub lateness_corrected_us: Spread,
    pub expected: u64,
    pub overruns: u64,
    pub lost: u64,
    /// Overruns per second and thread.
    pub overruns_per_s: f64,
    pub drift_us_per_s: Option<f64>,
    /// Begin of the bin in microseconds, and count; empty bins are left out.
    pub histogram_100us: Vec<(u64, u64)>,
}

impl TimerFigures {
    /// Computes the figures of any number of threads.
    pub fn of(series: &[WakeUpSeries<'_>]) -> TimerFigures {
        let intervals: Vec<u64> = series.iter().flat_map(WakeUpSeries::intervals).collect();
        let times = series.iter().map(|one| one.expected.saturating_mul(one.period_ns));
        let seconds = times.sum::<u64>() as f64 / 1e9;
        let drifts: Vec<f64> = series.iter().filter_map(WakeUpSeries::drift_us_per_s).collect();
        let overruns = series.iter().map(WakeUpSeries::overruns).sum::<u64>();
        TimerFigures {
            histogram_100us: bins(&intervals),
            interval_us: Spread::of(intervals),
            lateness_us: Spread::of(
                series.iter().flat_map(|one| one.lateness()).copied().collect(),
            ),
            lateness_corrected_us: Spread::of(
                series.iter().flat_map(WakeUpSeries::corrected).collect(),
            ),
            expected: series.iter().map(WakeUpSeries::expected).sum(),
            overruns,
            lost: series.iter().map(|one| one.lost).sum(),
            overruns_per_s: if seconds > 0.0 { overruns as f64 / seconds } else { 0.0 },
            drift_us_per_s: (!drifts.is_empty())
                .then(|| drifts.iter().sum::<f64>() / drifts.len() as f64),
        }
    }
}

/// Figures specific to `tipme bench timer`; those at the top are of the first mechanism.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TimerDetails {
    pub mechanism: TimerMechanism,
    pub period_ns: u64,
    /// `other`, `fifo:80`.
    pub policy: String,
    #[serde(flatten)]
    pub figures: TimerFigures,
    pub mechanisms: Vec<Measured>,
    /// One for each run of the document, in the same order.
    pub threads: Vec<MeasuredThread>,
    pub clocks: Clocks,
    /// Differences of clocks during the measurement; left out if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_apart: Option<ClocksApart>,
    pub outliers: Vec<Outlier>,
    pub culprits: Vec<OutlierCulprit>,
    /// Problems, in full sentences.
    pub notes: Vec<String>,
}

/// One mechanism.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    pub mechanism: TimerMechanism,
    #[serde(flatten)]
    pub figures: TimerFigures,
    /// Lateness above which a wakeup is an outlier.
    pub outlier_threshold_us: f64,
    pub outliers_over: u64,
}

/// One measuring thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Thread")]
pub struct MeasuredThread {
    pub mechanism: TimerMechanism,
    pub cpu: u32,
    pub tid: u32,
    /// `true` if the memory for its samples was locked.
    pub locked: bool,
    /// Timer slack: maximum delay of its timers, so that the kernel handles several at once.
    pub slack_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const PERIOD: u64 = 1_000_000;

    /// Returns the run of a thread that begins at 0, from the numbers of the answered deadlines and
    /// their lateness.
    fn run(expected: u64, wakes: &[(u64, u64)]) -> Run {
        let mut events = Events::of(LATENESS, None);
        wakes.iter().for_each(|(number, late)| events.push(number * PERIOD, *late));
        Run { duration_ns: expected * PERIOD, classes: vec![events], ..Run::default() }
    }

    fn series(run: &Run) -> WakeUpSeries<'_> {
        WakeUpSeries::new(run, PERIOD).expect("there is lateness")
    }

    #[test]
    fn unanswered_deadlines_are_overruns() {
        let run = run(10, &[(1, 50), (2, 2_500_000), (5, 100), (6, 0)]);
        assert_eq!(series(&run).overruns(), 6);
        assert_eq!(series(&run).intervals(), [3_499_950, 500_100, 999_900]);
        assert!(
            WakeUpSeries::new(&run, 0).is_none()
                && WakeUpSeries::new(&Run::default(), PERIOD).is_none()
        );
    }

    #[test]
    fn a_late_wake_up_stands_for_the_deadlines_that_it_missed() {
        let run = run(6, &[(1, 50), (2, 2_500_000), (5, 100), (6, 1_200_000)]);
        assert_eq!(series(&run).corrected(), [50, 2_500_000, 1_500_000, 500_000, 100, 1_200_000]);
    }

    #[test]
    fn naive_sleeping_asks_for_a_period_after_each_wake_up() {
        let run = run(10, &[(1, 60), (2, 130), (3, 220)]);
        assert_eq!(
            series(&run).asked(TimerMechanism::Absolute),
            [(PERIOD, PERIOD + 60), (2 * PERIOD, 2 * PERIOD + 130), (3 * PERIOD, 3 * PERIOD + 220)]
        );
        let own: Vec<u64> = series(&run)
            .asked(TimerMechanism::Relative)
            .iter()
            .map(|(asked, wake)| wake - asked)
            .collect();
        assert_eq!(own, [60, 70, 90]);
    }

    #[test]
    fn drift_follows_from_growing_lateness() {
        let drifting: Vec<(u64, u64)> =
            (1..=1_000).map(|number| (number, number * 60_000)).collect();
        let drift = series(&run(1_000, &drifting)).drift_us_per_s().expect("there are enough");
        assert!((drift - 60_000.0).abs() < 1.0, "{drift}");
        let steady: Vec<(u64, u64)> = (1..=1_000).map(|number| (number, 60_000)).collect();
        assert_eq!(series(&run(1_000, &steady)).drift_us_per_s(), Some(0.0));
        assert_eq!(series(&run(10, &steady[..10])).drift_us_per_s(), None);
    }

    #[test]
    fn bins_are_left_closed_and_empty_ones_left_out() {
        assert_eq!(
            bins(&[0, 99_999, 100_000, 1_000_000, 1_000_001]),
            [(0, 2), (100, 1), (1_000, 2)]
        );
    }

    #[test]
    fn percentiles_of_too_few_values_are_withheld() {
        let spread = Spread::of(vec![4_000, 2_000]);
        assert_eq!(
            (spread.min, spread.max, spread.mean, spread.sd),
            (Some(2.0), Some(4.0), Some(3.0), Some(1.0))
        );
        assert_eq!((spread.p50, spread.p99), (None, None));
        assert_eq!(Spread::of((1..=500).map(|us| us * 1_000).collect()).p99, Some(495.0));
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }

    proptest! {
        /// A thread that skips exactly those deadlines that have passed at its wakeup.
        #[test]
        fn every_deadline_has_its_lateness_once_corrected(lateness in vec(0..5 * PERIOD, 1..50)) {
            let mut number = 1;
            let mut wakes = Vec::new();
            for late in lateness {
                wakes.push((number, late));
                number += 1 + late.saturating_sub(1) / PERIOD;
            }
            let expected = number - 1;
            let run = run(expected, &wakes);
            let corrected = series(&run).corrected();
            prop_assert_eq!(corrected.len() as u64, expected);
            prop_assert_eq!(corrected.len() as u64, series(&run).n() + series(&run).overruns());
        }

        #[test]
        fn any_run_is_answered(
            starts_ns in vec(any::<u64>(), 0..20),
            latencies_ns in vec(0..10 * PERIOD, 0..20),
            duration in 0..100 * PERIOD,
            period in 1_000..u64::MAX,
        ) {
            let events = Events { starts_ns, latencies_ns, ..Events::of(LATENESS, None) };
            let run = Run { duration_ns: duration, classes: vec![events], ..Run::default() };
            let series = WakeUpSeries::new(&run, period).expect("there is lateness");
            let figures = TimerFigures::of(&[series]);
            prop_assert!(figures.interval_us.n <= 20);
            TimerMechanism::ALL.iter().for_each(|mechanism| drop(series.asked(*mechanism)));
        }
    }
}
