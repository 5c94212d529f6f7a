// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a comparison beside a load.

use super::turns::{Block, TurnResults};
use super::{Arm, ArmComparison, ArmTurn, is_steady};
use crate::experiment::MeasuredRepeats;
use crate::load::{Achieved, LoadKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use tipme_measure::{Events, Run, Share, Summary, ms};

const P95: Share = Share(9_500);

/// Results of a comparison, with those of one kind of measurement.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Compared<M> {
    /// Description of the measurement.
    pub title: &'static str,
    /// The highest level of the load.
    pub load: u32,
    pub unloaded: Option<ArmFigures>,
    /// Figures of each arm at the highest level; `null` if not measured.
    pub unmanaged: Option<ArmFigures>,
    pub managed: Option<ArmFigures>,
    pub against: Against,
    /// Requested arms that this machine lacks.
    pub not_available: Vec<Lacking>,
    pub arms: Vec<ArmRow>,
    pub conditions: ArmConditions,
    #[serde(flatten)]
    pub more: M,
}

/// Usual alternatives to a manager, at the highest level; `null` if not measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Against {
    pub nice19: Option<ArmFigures>,
    pub autogroup: Option<ArmFigures>,
    pub weight: Option<ArmFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_io: Option<ArmFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<ArmFigures>,
}

/// An arm that this machine lacks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Lacking {
    pub arm: Arm,
    pub because: String,
}

/// Times of one turn, over all blocks, by nearest rank.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct ArmFigures {
    /// `null` where there is no value.
    pub p50_ms: Option<f64>,
    /// `null` with fewer than 100 values: there are not five above it.
    pub p95_ms: Option<f64>,
    /// `null` with fewer than 500 values.
    pub p99_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub n: usize,
    /// Number that had not ended at the timeout, which counts as their time.
    pub unanswered: usize,
}

/// One turn of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ArmRow {
    /// Name, such as `load 20, managed`.
    pub turn: String,
    pub arm: Arm,
    /// Runnable processes aimed at.
    pub level: u32,
    pub figures: ArmFigures,
    /// Run-queue delay of server, terminal and its program for each time; missing if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_queue_delay_ms: Option<f64>,
    /// Runnable processes of the load on average; `null` without a load.
    pub runnable_mean: Option<f64>,
    /// Work of the load.
    pub rounds_per_s: Option<f64>,
    /// Loss relative to the same load unmanaged; negative if more was done.
    pub throughput_lost_percent: Option<f64>,
    /// The same in each block; their spread is the uncertainty of the loss.
    pub throughput_lost_by_block_percent: Vec<f64>,
    /// Parts of the loss, over all blocks; missing if CPU time is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_parts: Option<LostParts>,
    #[serde(skip)]
    pub rates: Vec<f64>,
    #[serde(skip)]
    pub load: Option<Achieved>,
    /// Fewest rounds of a process of the load in any ten seconds; 0 is starvation, `null` unknown.
    pub window_rounds_min: Option<u64>,
}

/// Loss of a load relative to the same load unmanaged: less CPU time, and slower work.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LostParts {
    /// Of its CPU time; negative if it had more.
    pub cpu_time_percent: f64,
    /// Less work in the same CPU time, because of caches and clock rates, not of scheduling.
    pub slower_percent: f64,
    /// CPU time of the manager, of that of the load; `null` without a manager.
    pub manager_percent: Option<f64>,
}

/// Conditions of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Conditions")]
pub struct ArmConditions {
    #[serde(rename = "type")]
    pub kind: LoadKind,
    pub demand_pages_per_ms: u32,
    pub reuse: f64,
    /// Of the load at its highest level.
    pub memory_bytes: u64,
    pub sessions: u32,
    /// Description of where the load's processes run.
    pub place: String,
    pub blocks: usize,
    /// `true` if the typing and watching threads had real-time priority.
    pub realtime: bool,
    /// Options of the manager; `null` if left to it.
    pub strength: Option<String>,
    pub backend: Option<String>,
    pub cgroup: Option<PathBuf>,
}

impl ArmFigures {
    /// Summarizes times in nanoseconds, in any order.
    pub fn new(times_ns: Vec<u64>, unanswered: usize) -> ArmFigures {
        let summary = Summary::new(times_ns);
        ArmFigures {
            p50_ms: summary.value(Share::P50).map(ms),
            p95_ms: summary.shown(P95).map(ms),
            p99_ms: summary.shown(Share::P99).map(ms),
            max_ms: summary.max().map(ms),
            n: summary.n(),
            unanswered,
        }
    }
}

impl ArmRow {
    fn summarize<T>(cell: &TurnResults<T>) -> ArmRow {
        let events = cell.blocks.iter().map(|block| &block.events);
        let unanswered = events.clone().map(|events| events.censored as usize).sum();
        let figures =
            ArmFigures::new(events.flat_map(|one| one.latencies_ns.clone()).collect(), unanswered);
        let waited: Option<Duration> = cell.blocks.iter().map(|block| block.waited).sum();
        let run_queue_delay_ms = waited
            .filter(|_| figures.n > 0)
            .map(|waited| 1e3 * waited.as_secs_f64() / figures.n as f64);
        let row = ArmRow::new(cell.turn, figures, cell.load);
        ArmRow { rates: cell.rates.clone(), run_queue_delay_ms, ..row }
    }

    /// Returns the smallest and the largest loss of throughput among the blocks.
    pub(super) fn lost_between(&self) -> Option<(f64, f64)> {
        let lost = self.throughput_lost_by_block_percent.iter().copied();
        Some((lost.clone().reduce(f64::min)?, lost.reduce(f64::max)?))
    }

    pub(crate) fn new(turn: ArmTurn, figures: ArmFigures, load: Option<Achieved>) -> ArmRow {
        ArmRow {
            turn: turn.name(),
            arm: turn.arm,
            level: turn.level,
            figures,
            run_queue_delay_ms: None,
            runnable_mean: load.map(|load| load.runnable_mean),
            rounds_per_s: load.map(|load| load.rounds_per_s),
            throughput_lost_percent: None,
            throughput_lost_by_block_percent: Vec::new(),
            lost_parts: None,
            rates: Vec::new(),
            load,
            window_rounds_min: load.and_then(|load| load.window_rounds_min),
        }
    }
}

impl<M> Compared<M> {
    /// Collects the figures of all turns; each block is a run of the document.
    pub(crate) fn measured<T>(
        title: &'static str,
        comparison: &ArmComparison,
        cells: Vec<TurnResults<T>>,
        more: M,
    ) -> MeasuredRepeats<Compared<M>> {
        let mut arms: Vec<ArmRow> = cells.iter().map(ArmRow::summarize).collect();
        fill_lost(&mut arms);
        let load = comparison.level_max();
        let figures = Compared {
            title,
            load,
            unloaded: figures_of(&arms, 0, Arm::Unmanaged),
            unmanaged: figures_of(&arms, load, Arm::Unmanaged),
            managed: figures_of(&arms, load, Arm::Managed),
            against: Against {
                nice19: figures_of(&arms, load, Arm::Nice19),
                autogroup: figures_of(&arms, load, Arm::Autogroup),
                weight: figures_of(&arms, load, Arm::Weight),
                idle_io: figures_of(&arms, load, Arm::IdleIo),
                limit: figures_of(&arms, load, Arm::Limit),
            },
            not_available: lacking(comparison),
            conditions: ArmConditions::new(comparison),
            more,
            arms,
        };
        MeasuredRepeats { runs: cells.into_iter().flat_map(runs).collect(), figures }
    }
}

fn figures_of(rows: &[ArmRow], level: u32, arm: Arm) -> Option<ArmFigures> {
    rows.iter().find(|row| (row.level, row.arm) == (level, arm)).map(|row| row.figures)
}

impl ArmConditions {
    fn new(comparison: &ArmComparison) -> ArmConditions {
        ArmConditions {
            kind: comparison.kind,
            demand_pages_per_ms: comparison.pages.demand,
            reuse: comparison.pages.reuse,
            memory_bytes: comparison.load_bytes(),
            sessions: comparison.sessions,
            place: comparison.place(),
            blocks: comparison.blocks,
            realtime: is_steady(),
            strength: comparison.manager.strength.clone(),
            backend: comparison.manager.backend.clone(),
            cgroup: comparison.manager.cgroup.clone(),
        }
    }
}

/// Returns the requested arms that cannot be measured here.
pub(super) fn lacking(comparison: &ArmComparison) -> Vec<Lacking> {
    let asked = comparison.against.iter();
    asked.filter_map(|arm| Some(Lacking { arm: *arm, because: arm.lacks()? })).collect()
}

/// Returns the blocks of a turn as runs.
fn runs<T>(cell: TurnResults<T>) -> impl Iterator<Item = Run> {
    cell.blocks.into_iter().map(move |block| run(cell.turn.name(), block))
}

/// Makes a run that lasts from the start of the first event to the end of the last one.
pub(crate) fn run<T>(name: String, block: Block<T>) -> Run {
    let Events { starts_ns, latencies_ns, .. } = &block.events;
    let last = starts_ns.last().zip(latencies_ns.last()).map_or(0, |(start, time)| start + time);
    let first = starts_ns.first().copied().unwrap_or(last);
    let duration_ns = last.saturating_sub(first);
    Run {
        name,
        duration_ns,
        interactive_ns: Some(duration_ns),
        lost: 0,
        classes: vec![block.events],
    }
}

/// Fills in the throughput lost relative to the same load unmanaged.
pub(super) fn fill_lost(rows: &mut [ArmRow]) {
    let unmanaged: Vec<ArmRow> =
        rows.iter().filter(|row| row.arm == Arm::Unmanaged).cloned().collect();
    for row in rows.iter_mut().filter(|row| row.arm != Arm::Unmanaged) {
        let Some(same) = unmanaged.iter().find(|same| same.level == row.level) else { continue };
        row.throughput_lost_percent =
            same.rounds_per_s.zip(row.rounds_per_s).and_then(lost_percent);
        let blocks = same.rates.iter().copied().zip(row.rates.iter().copied());
        row.throughput_lost_by_block_percent = blocks.filter_map(lost_percent).collect();
        row.lost_parts =
            same.load.zip(row.load).and_then(|(before, now)| LostParts::new(before, now));
    }
}

impl LostParts {
    fn new(before: Achieved, now: Achieved) -> Option<LostParts> {
        if before.cpu_s <= 0.0 || now.cpu_s <= 0.0 {
            return None;
        }
        let [share_before, share] = [before, now].map(|load| load.cpu_s / load.seconds);
        let [speed_before, speed] = [before, now].map(|load| load.rounds as f64 / load.cpu_s);
        Some(LostParts {
            cpu_time_percent: lost_percent((share_before, share))?,
            slower_percent: lost_percent((speed_before, speed))?,
            manager_percent: now.manager_cpu_s.map(|manager| 100.0 * manager / now.cpu_s),
        })
    }
}

/// Returns the loss from one rate to another, in percent.
fn lost_percent((before, now): (f64, f64)) -> Option<f64> {
    (before > 0.0).then(|| 100.0 * (1.0 - now / before))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn row(arm: Arm, load: Option<Achieved>) -> ArmRow {
        ArmRow::new(ArmTurn { arm, level: 20 }, ArmFigures::default(), load)
    }

    #[test]
    fn a_loss_has_a_figure_for_each_block() {
        let mut rows =
            [(Arm::Unmanaged, [100.0, 50.0]), (Arm::Managed, [90.0, 52.5])].map(|(arm, rates)| {
                ArmRow {
                    rates: rates.to_vec(),
                    rounds_per_s: Some((rates[0] + rates[1]) / 2.0),
                    ..row(arm, None)
                }
            });
        fill_lost(&mut rows);
        assert_eq!(rows[1].throughput_lost_percent.map(f64::round), Some(5.0));
        assert_eq!(
            rows[1].lost_between().map(|(least, most)| (least.round(), most.round())),
            Some((-5.0, 10.0))
        );
        assert_eq!((rows[0].lost_between(), rows[0].throughput_lost_percent), (None, None));
    }

    #[test]
    fn a_loss_is_less_cpu_time_and_slower_work() {
        let before = Achieved {
            seconds: 10.0,
            cpu_s: 20.0,
            rounds: 1_000,
            rounds_per_s: 100.0,
            ..Achieved::default()
        };
        let now = Achieved {
            cpu_s: 16.0,
            rounds: 600,
            rounds_per_s: 60.0,
            manager_cpu_s: Some(0.4),
            ..before
        };
        let mut rows = [row(Arm::Unmanaged, Some(before)), row(Arm::Managed, Some(now))];
        fill_lost(&mut rows);
        let parts = rows[1].lost_parts.expect("CPU time is known");
        assert_eq!((parts.cpu_time_percent.round(), parts.slower_percent.round()), (20.0, 25.0));
        assert_eq!((parts.manager_percent.map(f64::round), rows[0].lost_parts), (Some(3.0), None));
        assert_eq!(LostParts::new(before, Achieved { cpu_s: 0.0, ..now }), None);
    }

    #[test]
    fn percentiles_need_enough_values_above_them() {
        let [few, many, more, most] =
            [99, 100, 499, 500].map(|n| ArmFigures::new((0..n).map(|ms| ms * MS).collect(), 0));
        assert_eq!((few.p95_ms, few.p50_ms, few.max_ms), (None, Some(49.0), Some(98.0)));
        assert_eq!((many.p95_ms, more.p99_ms, most.p99_ms), (Some(94.0), None, Some(494.0)));
        assert_eq!(ArmFigures::new(Vec::new(), 0), ArmFigures::default());
    }
}
