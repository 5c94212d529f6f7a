// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accuracy of the instrument against known events.

use super::observed::{Gap, Observed, share};
use crate::percentile::Share;
use crate::summary::Summary;
use crate::units::{ms, us};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Event created by an own program, with its own account of it. Times are CLOCK_MONOTONIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Injection {
    /// Due time: the sleep expired, or the character was sent.
    pub due_ns: u64,
    /// The program's own time stamps, right after its return from the wait, and after the work.
    pub began_ns: u64,
    pub ended_ns: u64,
    /// CPU time that the kernel charged to the program from one wait to the next.
    pub cpu_ns: u64,
}

/// Errors of all events of one kind, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    pub n: usize,
    /// Median of the absolute difference.
    pub p50_us: f64,
    pub p90_us: f64,
    pub max_us: f64,
    /// Median of the signed difference: positive if the instrument saw more.
    pub bias_us: f64,
}

/// Injected CPU time against stolen time, event by event.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// `gaps`, `gaps with names`, or `classic`.
    pub method: String,
    pub injected_ms_min: f64,
    pub injected_ms_max: f64,
    pub errors: Errors,
    /// Limits for an undisturbed CPU; `None` without a limit.
    pub p50_us_max: Option<f64>,
    pub p90_us_max: Option<f64>,
    /// CPU time of others; `None` if not known.
    #[serde(default)]
    pub taken: Option<Taken>,
}

/// CPU time of others during a trial, as shares of its time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// Neither the loop nor the program, by the kernel's account.
    pub others_share: f64,
    /// Hypervisor, as far as it reports steal time.
    pub steal_share: f64,
}

/// Share above which a trial measures mostly others.
const DISTURBED_SHARE: f64 = 0.05;

impl Taken {
    /// Returns the sum of both.
    pub fn share(&self) -> f64 {
        self.others_share + self.steal_share
    }

    /// Returns `true` if the share is too large for a judgement.
    pub fn is_disturbing(&self) -> bool {
        self.share() > DISTURBED_SHARE
    }
}

/// A program that reads a character, computes and echoes it, timed by itself and by the instrument.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Echo {
    pub method: String,
    pub n: usize,
    /// Median time between the program's two time stamps.
    pub conventional_ms: f64,
    /// Median time seen by the instrument.
    pub stolen_ms: f64,
    /// Median difference: the part that the program's own time stamps miss.
    pub missed_us: f64,
}

/// Comparison of the stolen share with the kernel's account.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    pub method: String,
    /// `quiet`, or `loaded` with a process of normal priority on each CPU.
    #[schemars(extend("enum" = ["quiet", "loaded"]))]
    pub load: String,
    pub stolen_share: f64,
    pub check_share: f64,
    /// Difference of the CPU with the largest one, in percentage points.
    pub difference_points: f64,
    pub difference_points_max: Option<f64>,
    /// Largest share of a CPU that the hypervisor reported as taken meanwhile.
    #[serde(default)]
    pub steal_share: f64,
    pub records: u64,
    pub longest_record_ms: f64,
}

/// Results of `--validate`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    pub trials: Vec<Trial>,
    pub echoes: Vec<Echo>,
    pub checks: Vec<Check>,
}

impl Trial {
    /// Returns `true` if the errors are within the limits, enlarged by the share of others in an
    /// event.
    pub fn is_good(&self) -> bool {
        let (p50, p90) = self.allowed_us();
        self.errors.n > 0
            && self.p50_us_max.is_none_or(|most| self.errors.p50_us <= most + p50)
            && self.p90_us_max.is_none_or(|most| self.errors.p90_us <= most + p90)
    }

    /// Returns the allowance for others and a hypervisor: their share of an event of mean length,
    /// for the median, and of the longest one, for the 90th percentile.
    pub fn allowed_us(&self) -> (f64, f64) {
        let share = self.taken.map_or(0.0, |taken| taken.share());
        let mean_ms = (self.injected_ms_min + self.injected_ms_max) / 2.0;
        (1e3 * mean_ms * share, 1e3 * self.injected_ms_max * share)
    }

    /// Returns `true` if a limit cannot be judged, since others had too much of the CPU.
    pub fn is_disturbed(&self) -> bool {
        self.p50_us_max.is_some() && self.taken.is_some_and(|taken| taken.is_disturbing())
    }
}

impl Check {
    /// Compares all stolen time of several CPUs with the kernel's account: the shares are over all
    /// CPUs, the difference is that of the worst.
    pub fn of(method: &str, load: &str, observed: &[Observed], most: Option<f64>) -> Check {
        let stolen: Vec<u64> = observed.iter().map(Observed::stolen_ns).collect();
        Check::of_part(method, load, observed, &stolen, most)
    }

    /// Does the same with the part of each CPU's stolen time that must agree with the kernel's
    /// account.
    pub fn of_part(
        method: &str,
        load: &str,
        observed: &[Observed],
        stolen: &[u64],
        most: Option<f64>,
    ) -> Check {
        let wall: u64 = observed.iter().map(Observed::wall_ns).sum();
        let had: u64 = observed.iter().map(|one| one.cpu_time_ns).sum();
        let pairs = observed.iter().zip(stolen);
        let differences =
            pairs.map(|(one, stolen)| 100.0 * (share(*stolen, one.wall_ns()) - one.check_share()));
        let worst = differences.max_by(|one, other| one.abs().total_cmp(&other.abs()));
        Check {
            method: method.to_owned(),
            load: load.to_owned(),
            stolen_share: share(stolen.iter().sum(), wall),
            check_share: 1.0 - share(had, wall),
            difference_points: worst.unwrap_or_default(),
            difference_points_max: most,
            steal_share: 0.0,
            records: observed.iter().map(Observed::records).sum(),
            longest_record_ms: ms(observed
                .iter()
                .map(Observed::longest_record_ns)
                .max()
                .unwrap_or_default()),
        }
    }

    /// Returns `true` if the difference is within the limit, plus the time of a hypervisor, which
    /// only one of the accounts may include.
    pub fn is_good(&self) -> bool {
        self.difference_points_max
            .is_none_or(|most| self.difference_points.abs() <= most + self.steal_points())
    }

    /// Returns the hypervisor's time in percentage points.
    pub fn steal_points(&self) -> f64 {
        100.0 * self.steal_share
    }
}

impl Validation {
    /// Returns `true` if everything could be judged and is within its limits.
    pub fn is_good(&self) -> bool {
        !self.is_disturbed()
            && self.trials.iter().all(Trial::is_good)
            && self.checks.iter().all(Check::is_good)
    }

    /// Returns `true` if others had too much of the CPU for a judgement.
    pub fn is_disturbed(&self) -> bool {
        self.trials.iter().any(Trial::is_disturbed)
    }
}

/// Sums up the stolen time of the gaps that overlap an event; `counted` returns the part of each
/// gap that counts.
pub fn stolen_by_gaps(gaps: &[Gap], event: &Injection, counted: impl Fn(&Gap) -> u64) -> u64 {
    let first = gaps.partition_point(|gap| gap.end_ns() <= event.due_ns);
    gaps[first..].iter().take_while(|gap| gap.start_ns < event.ended_ns).map(counted).sum()
}

/// Sums up the stolen time of the records that overlap an event. The first record begins with the
/// run.
pub fn stolen_by_records(observed: &Observed, event: &Injection, record_ns: u64) -> u64 {
    let ends = &observed.records_ns;
    let first = ends.partition_point(|end| *end <= event.due_ns);
    let begin = first.checked_sub(1).map_or(observed.begin_ns, |before| ends[before]);
    let mut last = begin;
    let mut stolen = 0;
    for end in &ends[first..] {
        if last >= event.ended_ns {
            break;
        }
        stolen += (end - last).saturating_sub(record_ns);
        last = *end;
    }
    stolen
}

/// Returns the errors of stolen times against injected times; without events, everything including
/// `n` is 0.
pub fn errors(pairs: &[(u64, u64)]) -> Errors {
    let off =
        Summary::new(pairs.iter().map(|(stolen, injected)| stolen.abs_diff(*injected)).collect());
    let mut signed: Vec<i64> =
        pairs.iter().map(|(stolen, injected)| *stolen as i64 - *injected as i64).collect();
    signed.sort_unstable();
    Errors {
        n: pairs.len(),
        p50_us: us(off.value(Share::P50).unwrap_or_default()),
        p90_us: us(off.value(Share(9_000)).unwrap_or_default()),
        max_us: us(off.max().unwrap_or_default()),
        bias_us: crate::percentile::nearest_rank(signed.len(), Share::P50)
            .map_or(0.0, |at| signed[at] as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const EVENT: Injection =
        Injection { due_ns: 10 * MS, began_ns: 10 * MS + 20, ended_ns: 14 * MS, cpu_ns: 4 * MS };

    #[test]
    fn gaps_that_reach_into_an_event_count_whole() {
        let gaps = [(9 * MS, MS), (10 * MS - 5, 2 * MS), (13 * MS, 2 * MS), (15 * MS, MS)]
            .map(|(start_ns, length_ns)| Gap { start_ns, length_ns });
        assert_eq!(stolen_by_gaps(&gaps, &EVENT, |gap| gap.length_ns), 4 * MS);
        assert_eq!(stolen_by_gaps(&gaps, &EVENT, |gap| gap.length_ns - 10), 4 * MS - 20);
        assert_eq!(stolen_by_gaps(&[], &EVENT, |gap| gap.length_ns), 0);
    }

    #[test]
    fn the_papers_record_of_ten_milliseconds_holds_nine() {
        let records_ns = vec![9 * MS, 9 * MS + MS / 2, 20 * MS + MS / 4, 21 * MS + MS / 4];
        let observed =
            Observed { begin_ns: 8 * MS, end_ns: 22 * MS, records_ns, ..Observed::default() };
        assert_eq!(stolen_by_records(&observed, &EVENT, MS), 9 * MS + 3 * MS / 4);
        let before = Injection { due_ns: 8 * MS, ended_ns: 9 * MS, ..EVENT };
        assert_eq!(stolen_by_records(&observed, &before, MS), 0);
    }

    #[test]
    fn errors_are_by_nearest_rank() {
        let pairs: Vec<(u64, u64)> =
            (1..=10).map(|at| (5_000 + 1_000 * at, 5_000)).chain([(4_000, 5_000)]).collect();
        let errors = errors(&pairs);
        assert_eq!(
            (errors.n, errors.p50_us, errors.p90_us, errors.max_us, errors.bias_us),
            (11, 5.0, 9.0, 10.0, 5.0)
        );
        assert_eq!(super::errors(&[]), Errors::default());
    }

    #[test]
    fn limits_of_errors_are_checked() {
        let errors = Errors { n: 3, p50_us: 20.0, p90_us: 90.0, ..Errors::default() };
        let trial =
            Trial { errors, p50_us_max: Some(20.0), p90_us_max: Some(90.0), ..Trial::default() };
        assert!(trial.is_good());
        assert!(!Trial { p50_us_max: Some(19.9), ..trial.clone() }.is_good());
        assert!(!Trial { errors: Errors::default(), ..trial }.is_good());
    }

    fn beside(limits: &Trial, others_share: f64, steal_share: f64) -> Trial {
        Trial { taken: Some(Taken { others_share, steal_share }), ..limits.clone() }
    }

    #[test]
    fn time_of_others_is_allowed_for_up_to_a_limit() {
        let errors = Errors { n: 3, p50_us: 40.0, p90_us: 150.0, ..Errors::default() };
        let limits = Trial {
            errors,
            injected_ms_max: 10.0,
            p50_us_max: Some(35.0),
            p90_us_max: Some(100.0),
            ..Trial::default()
        };
        for bad in [limits.clone(), beside(&limits, 0.0, 0.0009), beside(&limits, 0.004, 0.0)] {
            assert!(!bad.is_good(), "{bad:?}");
        }
        let good = beside(&limits, 0.002, 0.003);
        assert!(good.is_good() && !good.is_disturbed());
        let disturbed = beside(&limits, 0.0, 0.06);
        let unlimited = Trial { p50_us_max: None, ..beside(&limits, 0.06, 0.0) };
        assert!(disturbed.is_good() && disturbed.is_disturbed() && !unlimited.is_disturbed());
        assert!(!Validation { trials: vec![disturbed], ..Validation::default() }.is_good());
        let stolen =
            Check { difference_points: -2.4, difference_points_max: Some(2.0), ..Check::default() };
        assert!(!stolen.is_good() && Check { steal_share: 0.005, ..stolen }.is_good());
    }

    #[test]
    fn shares_are_compared_with_the_kernels_account() {
        let busy = Observed {
            end_ns: 100,
            gaps: vec![Gap { start_ns: 0, length_ns: 97 }],
            ..Observed::default()
        };
        let calm = Observed { end_ns: 100, cpu_time_ns: 100, ..Observed::default() };
        let check = Check::of("gaps", "loaded", &[calm, busy], Some(2.0));
        assert!((check.difference_points + 3.0).abs() < 1e-9 && !check.is_good());
        let idle = Observed { end_ns: 100, cpu_time_ns: 98, ..Observed::default() };
        let part = Check::of_part("gaps with names", "quiet", &[idle], &[1], Some(1.0));
        assert!(
            (part.difference_points + 1.0).abs() < 1e-9 && (part.stolen_share - 0.01).abs() < 1e-9
        );
        assert!(!Validation { checks: vec![check], ..Validation::default() }.is_good());
    }
}
