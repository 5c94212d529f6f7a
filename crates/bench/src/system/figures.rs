// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a scripted run over several applications.

use super::applications::PlayedRun;
use super::options::{Beside, System};
use crate::arms::{Arm, ArmComparison, Block, is_steady};
use crate::choice::name;
use crate::load::Achieved;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use tipme_measure::{Share, Summary};

const TITLE: &str = "A script that goes round several applications";
/// Table 1 of the paper.
pub(super) const PAPER: [PaperRow; 2] = [
    PaperRow { arm: Arm::Unmanaged, seconds: [50.0, 89.0, 789.0] },
    PaperRow { arm: Arm::Managed, seconds: [49.0, 56.0, 96.0] },
];
/// The nearest rank of a zero share is the first one.
const LEAST: Share = Share(0);

/// All runs of the script.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SystemFigures {
    /// Description of the measurement.
    pub title: &'static str,
    /// Their names.
    pub applications: Vec<&'static str>,
    /// Description of the build; `null` without one.
    pub build: Option<String>,
    /// Processes of the synthetic load; 0 without one.
    pub load: u32,
    /// Description of that load and of its placement; `null` without one.
    pub synthetic: Option<String>,
    pub place: Option<String>,
    pub blocks: usize,
    /// Options of the manager; `null` if left to it.
    pub strength: Option<String>,
    pub backend: Option<String>,
    pub cgroup: Option<PathBuf>,
    /// `true` if the typing and watching threads had real-time priority.
    pub realtime: bool,
    /// Rounds of the script through the applications.
    pub rounds: u16,
    pub rows: Vec<SystemRow>,
    pub paper_s: [PaperRow; 2],
    /// Changes of the focus, and keys, in a run.
    #[serde(skip)]
    pub changes: usize,
    #[serde(skip)]
    pub keys: usize,
}

/// Seconds of the paper with one arm: beside nothing, `make`, and a heavy synthetic load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PaperRow {
    pub arm: Arm,
    pub seconds: [f64; 3],
}

/// Runs of the script beside one job with one arm.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SystemRow {
    pub beside: Beside,
    pub arm: Arm,
    pub median_s: f64,
    pub min_s: f64,
    pub max_s: f64,
    pub n: usize,
    /// The median as a multiple of that of the same arm beside nothing; `null` if not measured.
    pub times_unloaded: Option<f64>,
    /// Keys that were not answered in time.
    pub unanswered: usize,
    /// Files of the build, or rounds of the load, in all; `null` beside nothing.
    pub done: Option<u64>,
    /// The same per second.
    pub done_per_s: Option<f64>,
    /// Loss relative to the same load unmanaged.
    pub throughput_lost_percent: Option<f64>,
    /// Fewest rounds of a process of the load in any ten seconds; `null` for nothing and a build.
    pub window_rounds_min: Option<u64>,
}

/// All runs beside one job with one arm.
pub(super) struct Runs {
    pub beside: Beside,
    pub arm: Arm,
    pub blocks: Vec<Block<PlayedRun>>,
    /// Work of the synthetic load in all runs, or the number of files that the build completed (as
    /// rounds).
    pub load: Option<Achieved>,
}

impl Runs {
    fn row(&self) -> Option<SystemRow> {
        let times: Vec<u64> =
            self.blocks.iter().flat_map(|block| block.events.latencies_ns.clone()).collect();
        Some(SystemRow {
            unanswered: self.blocks.iter().map(|block| block.more.unanswered).sum(),
            done: self.load.map(|load| load.rounds),
            done_per_s: self.load.map(|load| load.rounds_per_s),
            window_rounds_min: self.load.and_then(|load| load.window_rounds_min),
            ..SystemRow::new(self.beside, self.arm, &times)?
        })
    }

    /// Name in the runs of the document.
    pub(super) fn name(&self) -> String {
        format!("beside {}, {}", name(&self.beside), name(&self.arm))
    }
}

impl SystemRow {
    /// Summarizes times in nanoseconds; `None` if there are none.
    pub(super) fn new(beside: Beside, arm: Arm, times_ns: &[u64]) -> Option<SystemRow> {
        let times = Summary::new(times_ns.to_vec());
        let (median, min, max) = (times.value(Share::P50)?, times.value(LEAST)?, times.max()?);
        let [median_s, min_s, max_s] = [median, min, max].map(|ns| ns as f64 / 1e9);
        Some(SystemRow {
            beside,
            arm,
            median_s,
            min_s,
            max_s,
            n: times.n(),
            times_unloaded: None,
            unanswered: 0,
            done: None,
            done_per_s: None,
            throughput_lost_percent: None,
            window_rounds_min: None,
        })
    }
}

impl SystemFigures {
    pub(super) fn new(
        options: &System,
        comparison: &ArmComparison,
        applications: Vec<&'static str>,
        build: Option<String>,
        runs: &[Runs],
    ) -> SystemFigures {
        let mut rows: Vec<SystemRow> = runs.iter().filter_map(Runs::row).collect();
        fill(&mut rows);
        let synthetic = options.beside.contains(&Beside::Synthetic);
        let played = runs
            .iter()
            .flat_map(|runs| &runs.blocks)
            .next()
            .map(|block| block.more)
            .unwrap_or_default();
        SystemFigures {
            title: TITLE,
            applications,
            build,
            load: comparison.level_max(),
            synthetic: synthetic.then(|| load_words(comparison)),
            place: synthetic.then(|| comparison.place()),
            blocks: comparison.blocks,
            strength: comparison.manager.strength.clone(),
            backend: comparison.manager.backend.clone(),
            cgroup: comparison.manager.cgroup.clone(),
            realtime: is_steady(),
            rounds: options.rounds,
            rows,
            paper_s: PAPER,
            changes: played.changes,
            keys: played.keys,
        }
    }
}

/// Describes the synthetic load.
fn load_words(comparison: &ArmComparison) -> String {
    format!(
        "load {}, level {}, {} pages per ms, reuse {}, {} MiB at most",
        name(&comparison.kind),
        comparison.level_max(),
        comparison.pages.demand,
        comparison.pages.reuse,
        comparison.load_bytes() >> 20
    )
}

/// Fills in the comparisons between the rows.
pub(super) fn fill(rows: &mut [SystemRow]) {
    let before = rows.to_vec();
    for row in rows {
        let mut others = before.iter();
        let calm = others.find(|other| (other.beside, other.arm) == (Beside::Nothing, row.arm));
        let calm = calm.filter(|calm| calm.median_s > 0.0);
        row.times_unloaded = calm.map(|calm| row.median_s / calm.median_s);
        let mut others = before.iter().filter(|_| row.arm != Arm::Unmanaged);
        let same = others.find(|other| (other.beside, other.arm) == (row.beside, Arm::Unmanaged));
        let rates =
            same.and_then(|same| same.done_per_s).filter(|rate| *rate > 0.0).zip(row.done_per_s);
        row.throughput_lost_percent = rates.map(|(before, now)| 100.0 * (1.0 - now / before));
    }
}
