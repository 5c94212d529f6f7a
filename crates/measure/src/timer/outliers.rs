// SPDX-License-Identifier: MIT OR Apache-2.0
//! Very late wakeups: their causes, and periodic culprits.

use super::mechanism::TimerMechanism;
use crate::percentile::median;
use crate::periodicity::{Period, period};
use crate::units::us;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of explained outliers per mechanism, the latest ones; the others are only
/// counted.
pub const OUTLIERS_MAX: usize = 100;

/// Default minimum lateness of an outlier, in nanoseconds.
const LEAST_NS: u64 = 1_000_000;

/// Minimum ratio of an outlier to the median.
const TIMES_MEDIAN: u64 = 10;

/// Maximum distance between starts of one culprit that count as one: several threads suffered from
/// it.
const MERGE_NS: u64 = 5_000_000;

/// Maximum distance in nanoseconds between wakeups on two CPUs that count as simultaneous.
const MOMENT_NS: u64 = 100_000;

/// Returns the lateness from which a wakeup is an outlier: a millisecond, or ten times the median
/// if that is more.
pub fn outlier_threshold(lateness: &[u64]) -> u64 {
    median(lateness).unwrap_or(0).saturating_mul(TIMES_MEDIAN).max(LEAST_NS)
}

/// Cause of time between a deadline and the wakeup.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Cause")]
pub enum LatenessCause {
    /// The timer's interrupt came late, so the thread was not ready yet.
    Timer,
    /// The hypervisor had the CPU: it reports so, or a virtual machine did not wait for a device.
    Hypervisor,
    /// The firmware had all CPUs of a machine without a hypervisor.
    Firmware,
    /// One CPU waited for a device, in kernel code that accesses one.
    Device,
    /// Firmware, hypervisor or device; which one is not known.
    Outside,
    /// Another thread had the CPU with interrupts disabled, which delayed the timer's.
    HeldOff,
    /// The handler of another interrupt.
    Interrupt,
    Softirq,
    /// Another thread had the CPU.
    Thread,
    /// The thread was ready and the CPU still idle.
    IdleExit,
    /// The thread ran already, returning from the kernel.
    Own,
    /// Many small shares together.
    Rest,
    /// The records show no cause.
    Unexplained,
}

impl LatenessCause {
    /// Returns the name in files.
    pub fn name(self) -> &'static str {
        match self {
            LatenessCause::Timer => "timer",
            LatenessCause::Hypervisor => "hypervisor",
            LatenessCause::Firmware => "firmware",
            LatenessCause::Device => "device",
            LatenessCause::Outside => "outside",
            LatenessCause::HeldOff => "held-off",
            LatenessCause::Interrupt => "interrupt",
            LatenessCause::Softirq => "softirq",
            LatenessCause::Thread => "thread",
            LatenessCause::IdleExit => "idle-exit",
            LatenessCause::Own => "own",
            LatenessCause::Rest => "rest",
            LatenessCause::Unexplained => "unexplained",
        }
    }
}

/// Part of the time between a deadline and the wakeup.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Portion")]
pub struct LatenessPortion {
    pub cause: LatenessCause,
    /// Name of the culprit, if there is one.
    pub name: String,
    pub us: f64,
    pub percent: f64,
}

/// A very late wakeup.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    pub mechanism: TimerMechanism,
    pub cpu: u32,
    /// Time requested by the thread, CLOCK_MONOTONIC.
    pub deadline_ns: u64,
    pub lateness_us: f64,
    /// Portions that sum to the lateness, largest first; `None` without records.
    pub budget: Option<Vec<LatenessPortion>>,
    /// Begin of the largest portion's activity, which may be before the deadline.
    pub culprit_begin_ns: Option<u64>,
}

/// Maximum number of portions per outlier; the smallest are merged.
const PORTIONS_MAX: usize = 16;

/// Creates the budget of `whole` nanoseconds from causes, names and nanoseconds, the largest first.
pub fn budget(times: &[(LatenessCause, String, u64)], whole: u64) -> Vec<LatenessPortion> {
    let single = if times.len() > PORTIONS_MAX { PORTIONS_MAX - 1 } else { times.len() };
    let (large, small) = times.split_at(single);
    let mut times = large.to_vec();
    if !small.is_empty() {
        let rest = small.iter().map(|(_, _, ns)| ns).sum();
        times.push((LatenessCause::Rest, String::new(), rest));
    }
    let portions = times.into_iter().map(|(cause, name, ns)| {
        let percent = 100.0 * ns as f64 / whole.max(1) as f64;
        LatenessPortion { cause, name, us: us(ns), percent }
    });
    portions.collect()
}

/// Main cause of one or several outliers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Culprit")]
pub struct OutlierCulprit {
    pub cause: LatenessCause,
    pub name: String,
    pub outliers: u64,
    pub total_us: f64,
    /// Period, if it is regular.
    pub period_s: Option<f64>,
    /// Standard deviation of the period as a share of it.
    pub period_deviation_percent: Option<f64>,
}

impl Outlier {
    fn wake_ns(&self) -> u64 {
        self.deadline_ns.saturating_add((self.lateness_us * 1e3) as u64)
    }
}

/// Returns the number of outliers that ended at the same moment as one on another CPU.
///
/// Simultaneous outliers suggest that all CPUs were held, by a hypervisor or firmware, whatever the
/// records name meanwhile.
pub fn at_once(outliers: &[Outlier]) -> u64 {
    let together = outliers.iter().filter(|one| {
        outliers.iter().any(|other| {
            other.cpu != one.cpu && other.wake_ns().abs_diff(one.wake_ns()) < MOMENT_NS
        })
    });
    together.count() as u64
}

/// Returns the culprits of these outliers, the largest first.
pub fn culprits(outliers: &[Outlier]) -> Vec<OutlierCulprit> {
    let mut groups: BTreeMap<(LatenessCause, &str), Vec<(&Outlier, &LatenessPortion)>> =
        BTreeMap::new();
    for outlier in outliers {
        if let Some(most) = outlier.budget.iter().flatten().next() {
            // A thread that ran while no timer fired is not involved.
            let name = if most.cause == LatenessCause::Timer { "" } else { most.name.as_str() };
            groups.entry((most.cause, name)).or_default().push((outlier, most));
        }
    }
    let mut culprits: Vec<OutlierCulprit> =
        groups.into_iter().map(|((cause, name), hits)| culprit(cause, name, &hits)).collect();
    culprits.sort_by(|one, other| other.total_us.total_cmp(&one.total_us));
    culprits
}

fn culprit(
    cause: LatenessCause,
    name: &str,
    hits: &[(&Outlier, &LatenessPortion)],
) -> OutlierCulprit {
    let mut begins: Vec<u64> =
        hits.iter().filter_map(|(outlier, _)| outlier.culprit_begin_ns).collect();
    begins.sort_unstable();
    begins.dedup_by(|later, earlier| later.saturating_sub(*earlier) <= MERGE_NS);
    let period: Option<Period> = period(&begins);
    OutlierCulprit {
        cause,
        name: name.to_owned(),
        outliers: hits.len() as u64,
        total_us: hits.iter().map(|(_, portion)| portion.us).sum(),
        period_s: period.map(|period| period.every_ns as f64 / 1e9),
        period_deviation_percent: period.map(|period| 100.0 * period.deviation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlier(at_s: f64, cause: LatenessCause, name: &str) -> Outlier {
        let at = (at_s * 1e9) as u64;
        let times =
            [(cause, name.to_owned(), 6_930_000), (LatenessCause::Timer, String::new(), 70_000)];
        Outlier {
            mechanism: TimerMechanism::Absolute,
            cpu: 0,
            deadline_ns: at,
            lateness_us: 7_000.0,
            budget: Some(budget(&times, 7_000_000)),
            culprit_begin_ns: Some(at - 300_000),
        }
    }

    #[test]
    fn the_threshold_is_ten_medians_or_a_millisecond() {
        assert_eq!(outlier_threshold(&[50_000; 9]), 1_000_000);
        assert_eq!(outlier_threshold(&[200_000; 9]), 2_000_000);
        assert_eq!(outlier_threshold(&[]), 1_000_000);
    }

    #[test]
    fn a_regular_culprit_has_its_period() {
        let mut outliers: Vec<Outlier> = (1..8)
            .map(|turn| outlier(f64::from(turn) * 5.0, LatenessCause::Thread, "burner"))
            .collect();
        outliers.push(outlier(5.003, LatenessCause::Thread, "burner"));
        outliers.push(outlier(6.1, LatenessCause::Softirq, "network receive"));
        outliers.extend(
            [6.2, 6.3].map(|at| outlier(at, LatenessCause::Timer, &format!("while {at} ran"))),
        );
        let found = culprits(&outliers);
        assert_eq!((found[0].name.as_str(), found[0].outliers, found.len()), ("burner", 8, 3));
        assert_eq!((found[1].name.as_str(), found[1].outliers), ("", 2));
        let period = found[0].period_s.expect("it is regular");
        assert!((period - 5.0).abs() < 0.01, "{period}");
        assert_eq!(found[2].period_s, None);
        assert_eq!(found[2].total_us, 6_930.0);
    }

    #[test]
    fn small_shares_are_merged_and_nothing_is_lost() {
        let times: Vec<_> = (0..40)
            .map(|number| (LatenessCause::Thread, format!("worker {number}"), 100 - number))
            .collect();
        let whole = times.iter().map(|(_, _, ns)| ns).sum();
        let portions = budget(&times, whole);
        assert_eq!((portions.len(), portions[15].cause), (PORTIONS_MAX, LatenessCause::Rest));
        let percent: f64 = portions.iter().map(|portion| portion.percent).sum();
        assert!((percent - 100.0).abs() < 1e-9, "{percent}");
        assert_eq!(budget(&times[..16], whole).len(), 16);
    }

    #[test]
    fn simultaneous_outliers_of_cpus_are_counted() {
        let outliers = [(0, 1.0), (1, 1.00005), (1, 2.0), (1, 2.00001), (0, 3.0)]
            .map(|(cpu, at_s)| Outlier { cpu, ..outlier(at_s, LatenessCause::Timer, "") });
        assert_eq!(at_once(&outliers), 2);
        assert_eq!(at_once(&[]), 0);
    }

    #[test]
    fn without_records_there_is_no_culprit() {
        let unknown = Outlier { budget: None, ..outlier(5.0, LatenessCause::Timer, "") };
        assert_eq!(culprits(&[unknown]), vec![]);
    }
}
