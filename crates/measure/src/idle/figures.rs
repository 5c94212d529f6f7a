// SPDX-License-Identifier: MIT OR Apache-2.0
//! Document of `tipme idle`, besides the gaps themselves.

use super::exclusion::Exclusion;
use super::naming::Resident;
use super::observed::{ClassicLoop, Observed, longest};
use super::validation::Validation;
use crate::document::{Events, Run};
use crate::percentile::Share as Percentile;
use crate::summary::Summary;
use crate::units::{ms, us};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Class of the events: times in which the loop did not run.
pub const GAP: &str = "gap";
/// Maximum number of gaps per CPU in a document; the longest are kept, and the others counted as
/// lost.
const GAPS_KEPT: usize = 200_000;

/// Figures of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct IdleDetails {
    /// `gaps`, or `classic` for the loop of fixed length.
    #[schemars(extend("enum" = ["gaps", "classic"]))]
    pub method: String,
    /// CPU time of the loop in one record.
    pub resolution_ns: u64,
    /// Minimum length of a visible gap: over a microsecond if the clock is slow to read. `None` for
    /// the classic loop, which sees no gaps.
    pub gap_min_ns: Option<u64>,
    /// Over all CPUs, from 0 to 1.
    pub stolen_share: f64,
    /// The same share by the kernel's account of the loops' CPU time.
    pub check_share: f64,
    pub cpus: Vec<CpuFigures>,
    /// Named shares of the stolen time, by evidence; `None` without the recorder.
    pub named: Option<StolenShares>,
    /// Reason for missing names.
    pub no_names_because: Option<String>,
    /// Holders of the stolen time, largest first.
    pub residents: Vec<Resident>,
    /// Longest gaps of all CPUs.
    pub largest: Vec<NamedGap>,
    pub validation: Option<Validation>,
    /// All that the loops saw, of which the figures are made.
    #[serde(skip)]
    pub observed: Vec<Observed>,
}

/// Shares of the stolen time by evidence, from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Share")]
pub struct StolenShares {
    /// Everything with a name.
    pub named: f64,
    /// Named by a record.
    pub recorded: f64,
    /// Adjacent to recorded work in the same gap.
    pub beside: f64,
    /// Begins when the timer tick is due.
    pub tick: f64,
    /// Cannot have been taken by anything in the kernel.
    pub outside: f64,
    /// The recorder's own part, included in the others.
    pub recorder: f64,
}

/// One CPU.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuFigures {
    pub cpu: usize,
    pub stolen_share: f64,
    pub check_share: f64,
    /// Difference of the two in percentage points.
    pub difference_points: f64,
    /// Percentage points of stolen time that the kernel may charge to the loop: interrupts, the
    /// tick, and time outside the kernel; left out without records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charged_points: Option<f64>,
    pub records: u64,
    /// Number of records without room.
    pub records_lost: u64,
    pub longest_record_ms: f64,
    pub gaps: GapFigures,
    pub classic: Option<ClassicLoop>,
    /// `true` if the buffers were locked in memory.
    pub locked: bool,
    /// Interrupts counted by the kernel, by kind.
    pub counted: Vec<InterruptCount>,
    /// Proof that unnamed time lies outside the kernel; `None` without the recorder.
    pub exclusion: Option<Exclusion>,
    /// Timer ticks per second that appeared as gaps.
    pub ticks_per_s: Option<f64>,
}

/// Figures of the gaps of a CPU.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GapFigures {
    pub count: u64,
    /// Number of gaps without room; their time is counted.
    pub lost: u64,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub longest_ms: f64,
}

/// Number of interrupts of a kind.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Counted")]
pub struct InterruptCount {
    pub name: String,
    pub count: u64,
}

/// A long gap.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NamedGap {
    pub cpu: usize,
    /// Time since the begin of the measurement.
    pub start_s: f64,
    pub length_ms: f64,
    /// Holders of the gap, largest first; empty without the recorder.
    pub by: Vec<NamedTime>,
}

/// A part of a gap.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NamedTime {
    pub name: String,
    pub ms: f64,
}

/// Profile of a CPU in columns, each with the maximum of its bins, from 0 to 1.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CpuProfile {
    pub cpu: usize,
    pub column_ms: f64,
    pub bins_1ms: Vec<f64>,
    pub bins_10ms: Vec<f64>,
}

impl CpuFigures {
    /// Computes the figures of a loop's observations.
    pub fn of(observed: &Observed) -> CpuFigures {
        let (stolen, check) = (observed.stolen_share(), observed.check_share());
        let lengths = Summary::new(observed.gaps.iter().map(|gap| gap.length_ns).collect());
        CpuFigures {
            cpu: observed.cpu,
            stolen_share: stolen,
            check_share: check,
            difference_points: 100.0 * (stolen - check),
            records: observed.records(),
            records_lost: observed.records_lost,
            longest_record_ms: ms(observed.longest_record_ns()),
            gaps: GapFigures {
                count: observed.gaps.len() as u64 + observed.gaps_lost,
                lost: observed.gaps_lost,
                p50_us: lengths.shown(Percentile::P50).map(us),
                p99_us: lengths.shown(Percentile::P99).map(us),
                longest_ms: ms(lengths.max().unwrap_or_default()),
            },
            classic: observed.classic,
            locked: observed.locked,
            ..CpuFigures::default()
        }
    }

    /// Returns `true` if the two accounts differ by more than `most` points plus the time that may
    /// be charged to the loop.
    pub fn is_apart(&self, most: f64) -> bool {
        let charged = self.charged_points.unwrap_or_default();
        self.difference_points < -most || self.difference_points > most + charged
    }
}

impl CpuProfile {
    /// Computes the profile of a loop's observations with this number of columns.
    pub fn of(observed: &Observed, columns: usize) -> CpuProfile {
        let column_ms = ms(observed.wall_ns()) / columns.max(1) as f64;
        let [bins_1ms, bins_10ms] = [1_000_000, 10_000_000].map(|width_ns| {
            let mut peaks = vec![0.0_f64; columns];
            for bin in observed.bins(width_ns) {
                let at = ms(bin.start_ns - observed.begin_ns) / column_ms.max(f64::MIN_POSITIVE);
                if let Some(peak) = peaks.get_mut(at as usize) {
                    *peak = peak.max(bin.utilisation());
                }
            }
            peaks
        });
        CpuProfile { cpu: observed.cpu, column_ms, bins_1ms, bins_10ms }
    }
}

/// Converts the gaps of a CPU to events of one class, only the longest if there are too many.
pub fn run(observed: &Observed) -> Run {
    let kept = longest(&observed.gaps, GAPS_KEPT);
    let left_out = (observed.gaps.len() - kept.len()) as u64;
    let mut events = Events::of(GAP, None);
    kept.iter().for_each(|gap| events.push(gap.start_ns, gap.length_ns));
    Run {
        name: format!("cpu {}", observed.cpu),
        duration_ns: observed.wall_ns(),
        interactive_ns: None,
        lost: observed.gaps_lost + left_out,
        classes: vec![events],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::Gap;

    fn observed() -> Observed {
        let gaps: Vec<Gap> =
            (10..20).map(|ms| Gap { start_ns: 1_000_000 * ms, length_ns: 500_000 }).collect();
        Observed {
            cpu: 3,
            end_ns: 100_000_000,
            gaps,
            cpu_time_ns: 96_000_000,
            locked: true,
            ..Observed::default()
        }
    }

    #[test]
    fn accounts_may_differ_by_the_time_charged_to_the_loop() {
        for (difference_points, charged_points, is_apart) in [
            (2.1, None, true),
            (3.1, Some(1.0), true),
            (-2.1, Some(1.0), true),
            (2.9, Some(1.0), false),
            (1.9, None, false),
            (-1.9, Some(1.0), false),
        ] {
            let figures = CpuFigures { difference_points, charged_points, ..CpuFigures::default() };
            assert_eq!(figures.is_apart(2.0), is_apart, "{difference_points}");
        }
    }

    #[test]
    fn figures_follow_from_the_gaps() {
        let figures = CpuFigures::of(&observed());
        assert_eq!((figures.cpu, figures.gaps.count, figures.locked), (3, 10, true));
        assert!(
            (figures.stolen_share - 0.05).abs() < 1e-12
                && (figures.difference_points - 1.0).abs() < 1e-9
        );
        assert_eq!((figures.gaps.p50_us, figures.gaps.p99_us), (Some(500.0), None));
    }

    #[test]
    fn a_column_shows_its_highest_bin() {
        let profile = CpuProfile::of(&observed(), 10);
        assert_eq!(profile.column_ms, 10.0);
        assert_eq!(profile.bins_10ms, [0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(profile.bins_1ms[1], 0.5);
        assert_eq!(CpuProfile::of(&Observed::default(), 3).bins_1ms, [0.0; 3]);
    }

    #[test]
    fn gaps_become_events() {
        let run = run(&observed());
        assert_eq!((run.name.as_str(), run.duration_ns, run.lost), ("cpu 3", 100_000_000, 0));
        assert_eq!((run.classes[0].class.as_str(), run.classes[0].latencies_ns.len()), ("gap", 10));
    }
}
