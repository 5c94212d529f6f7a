// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the benchmarks beside a load do alike: from the options to what is compared, and from what was measured to
//! rows, text, plot and document.

use crate::arguments::{Against, Beside, ManagerOptions};
use crate::files::{write, write_plots};
use crate::programs::Programs;
use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tipme_bench::arms::{Arm, Cell, Comparison, ManagerProgram, Turn, steadiness};
use tipme_bench::load::{Kind, Pages, default_memory};
use tipme_measure::{Document, Events, Limits, Machine, Run, SCHEMA};
use tipme_report::arms::{self, ArmFigures, ArmRow, KeyFigure, Scale, against_unloaded, fill_lost};
use tipme_report::plot::{Curve, Figure, levels};

/// An arm that this machine lacks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Lacking {
    pub arm: String,
    pub because: String,
}

pub fn comparison(beside: &Beside, programs: &Programs, usual: Kind) -> Comparison {
    let kind = beside.kind.map_or(usual, Kind::from);
    let usual = kind.pages();
    Comparison {
        levels: beside.load.clone(),
        managed: beside.managed,
        against: beside.against.iter().map(|against| arm(*against)).collect(),
        blocks: beside.blocks.into(),
        kind,
        pages: Pages { demand: beside.demand.unwrap_or(usual.demand), reuse: beside.reuse.unwrap_or(usual.reuse) },
        memory: beside.memory.unwrap_or_else(default_memory),
        sessions: beside.sessions,
        manager: manager(&beside.manager, programs),
        launcher: programs.launcher.clone(),
    }
}

pub fn manager(options: &ManagerOptions, programs: &Programs) -> ManagerProgram {
    ManagerProgram {
        strength: options.strength.clone(),
        backend: options.backend.clone(),
        cgroup: options.cgroup.clone(),
        ..ManagerProgram::new(options.manager.clone().unwrap_or_else(|| programs.tipme.clone()))
    }
}

pub fn arm(against: Against) -> Arm {
    match against {
        Against::Nice19 => Arm::Nice19,
        Against::Autogroup => Arm::Autogroup,
        Against::Weight => Arm::Weight,
    }
}

/// How many turns there are and what is missing, for the line before the begin.
pub fn turns_words(comparison: &Comparison) -> String {
    let lacking = lacking(comparison);
    let missing = lacking.iter().map(|one| format!("; {}: not available, because {}", one.arm, one.because));
    let turns = comparison.turns(0).len();
    format!("{} blocks of {turns} turns{}", comparison.blocks, missing.collect::<String>())
}

/// What the load is.
pub fn load_words(comparison: &Comparison) -> String {
    if comparison.level_max() == 0 {
        return format!("{} blocks; no load", comparison.blocks);
    }
    format!(
        "{} blocks; load {}: {} pages per ms, reuse {}, {} MiB at most",
        comparison.blocks,
        comparison.kind.name(),
        comparison.pages.demand,
        comparison.pages.reuse,
        comparison.load_bytes() >> 20
    )
}

/// Those that were asked for and cannot be measured here.
pub fn lacking(comparison: &Comparison) -> Vec<Lacking> {
    let asked = comparison.against.iter();
    asked.filter_map(|arm| Some(Lacking { arm: arm.name().to_owned(), because: arm.lacks()? })).collect()
}

/// One turn as it was measured: its times, those that were given up among them, and what the load did.
pub struct Times {
    pub row: ArmRow,
    pub blocks: Vec<Events>,
}

/// The times of one block of a turn, nanoseconds, and how many of them were given up.
pub struct BlockTimes {
    pub starts_ns: Vec<u64>,
    pub times_ns: Vec<u64>,
    pub unanswered: usize,
}

/// All turns, with what of the load's work is missing.
pub fn all<T>(cells: &[Cell<T>], class: &str, limits: Option<Limits>, times: impl Fn(&T) -> BlockTimes) -> Vec<Times> {
    let mut all: Vec<Times> = cells.iter().map(|cell| one(cell, class, limits, &times)).collect();
    let mut rows: Vec<ArmRow> = all.iter().map(|times| times.row.clone()).collect();
    fill_lost(&mut rows);
    all.iter_mut().zip(rows).for_each(|(times, row)| times.row = row);
    all
}

fn one<T>(cell: &Cell<T>, class: &str, limits: Option<Limits>, times: impl Fn(&T) -> BlockTimes) -> Times {
    let blocks: Vec<BlockTimes> = cell.blocks.iter().map(times).collect();
    let unanswered = blocks.iter().map(|block| block.unanswered).sum();
    let row = ArmRow {
        turn: cell.turn.name(),
        arm: cell.turn.arm.name().to_owned(),
        level: cell.turn.level,
        figures: ArmFigures::of(blocks.iter().flat_map(|block| block.times_ns.clone()).collect(), unanswered),
        runnable_mean: cell.load.map(|load| load.runnable_mean),
        rounds_per_s: cell.load.map(|load| load.rounds_per_s),
        throughput_lost_percent: None,
        window_rounds_min: cell.load.and_then(|load| load.window_rounds_min),
    };
    let columns = |block: BlockTimes| Events {
        starts_ns: block.starts_ns,
        latencies_ns: block.times_ns,
        censored: block.unanswered as u64,
        ..Events::of(class, limits)
    };
    Times { row, blocks: blocks.into_iter().map(columns).collect() }
}

/// A benchmark that has ended.
pub struct Results<'a> {
    /// `typing`, `scroll`, `warmstart` or `pagein`: also the names of the files.
    pub kind: &'static str,
    /// What was done, for the first lines and the plot.
    pub title: &'a str,
    /// What stands above the first column.
    pub of: &'static str,
    /// What the times are, as in "p95 of the delay".
    pub times_of: &'static str,
    pub scale: Scale,
    /// With which bounds, a line each.
    pub bounds: Vec<String>,
    /// What the paper found, a line each.
    pub paper: &'a [&'a str],
    /// The time at which the plot has its line, and only where the paper's scale is ours.
    pub line_ms: Option<f64>,
    pub comparison: &'a Comparison,
    pub machine: Machine,
    pub times: Vec<Times>,
    /// What only this kind has.
    pub more: Value,
}

impl Results<'_> {
    /// Prints the result and writes its files.
    pub fn publish(self, json: Option<&Path>, svg: Option<&Path>) -> Result<ExitCode> {
        print!("{}", self.text());
        if let Some(folder) = svg {
            self.draw(folder)?;
        }
        if let Some(path) = json {
            write(path, &(serde_json::to_string_pretty(&self.document())? + "\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn rows(&self) -> Vec<ArmRow> {
        self.times.iter().map(|times| times.row.clone()).collect()
    }

    fn text(&self) -> String {
        let rows = self.rows();
        let mut out = format!("{}\n", self.title);
        for line in self.notes() {
            out += &format!("  {line}\n");
        }
        out += &format!("\n{}\n", arms::arms(&rows, self.scale, self.of));
        out += &against_unloaded(&rows, self.scale);
        out += &arms::progress(&rows);
        if rows.iter().any(|row| row.level > 0) {
            out += &format!("\n{}", arms::chart(&rows, KeyFigure::of(&rows, self.scale), self.times_of));
        }
        for line in self.paper {
            out += &format!("  {line}\n");
        }
        out + &format!("{}\n", tipme_report::conditions(&self.machine))
    }

    /// Under which conditions, and what is missing.
    fn notes(&self) -> Vec<String> {
        let lacking = lacking(self.comparison);
        let lacking = lacking.iter().map(|one| format!("{}: not available, because {}", one.arm, one.because));
        let mut notes = self.bounds.clone();
        let place = (self.comparison.level_max() > 0).then(|| self.comparison.place());
        notes.extend(place.into_iter().chain(lacking).chain(steadiness().map(str::to_owned)));
        notes
    }

    fn draw(&self, folder: &Path) -> Result<()> {
        let footer = self.notes().into_iter().chain([tipme_report::conditions(&self.machine)]);
        let footer = footer.collect::<Vec<String>>().join("; ");
        let figure = Figure { title: self.title, footer: &footer, ..Figure::default() };
        let rows = self.rows();
        let key_figure = KeyFigure::of(&rows, self.scale);
        let name = format!("{} of {}, ms", key_figure.name, self.times_of);
        let plot = levels(&figure, &curves(&rows, key_figure), &name, self.line_ms);
        write_plots(folder, [(format!("{}.svg", self.kind), plot)])
    }

    /// The figures of an arm at the highest level; `null` where it was not measured.
    fn figures(&self, arm: Arm) -> Option<ArmFigures> {
        let level = self.comparison.level_max();
        let row = self.times.iter().map(|times| &times.row).find(|row| row.level == level && row.arm == arm.name());
        row.map(|row| row.figures)
    }

    fn document(&self) -> Document<Value> {
        let calm = self.times.iter().find(|times| times.row.turn == Turn::UNLOADED.name());
        let mut details = json!({
            "title": self.title,
            "load": self.comparison.level_max(),
            "unloaded": calm.map(|times| times.row.figures),
            "unmanaged": self.figures(Arm::Unmanaged),
            "managed": self.figures(Arm::Managed),
            "against": {
                "nice19": self.figures(Arm::Nice19),
                "autogroup": self.figures(Arm::Autogroup),
                "weight": self.figures(Arm::Weight),
            },
            "not_available": lacking(self.comparison),
            "arms": self.rows(),
            "conditions": self.conditions(),
        });
        if let (Some(details), Some(more)) = (details.as_object_mut(), self.more.as_object()) {
            details.extend(more.clone());
        }
        Document {
            schema: SCHEMA,
            kind: self.kind.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: self.machine.clone(),
            runs: self.times.iter().flat_map(runs).collect(),
            details,
        }
    }

    fn conditions(&self) -> Value {
        let comparison = self.comparison;
        json!({
            "type": comparison.kind,
            "demand_pages_per_ms": comparison.pages.demand,
            "reuse": comparison.pages.reuse,
            "memory_bytes": comparison.load_bytes(),
            "sessions": comparison.sessions,
            "place": comparison.place(),
            "blocks": comparison.blocks,
            "realtime": steadiness().is_none(),
            "strength": comparison.manager.strength,
            "backend": comparison.manager.backend,
            "cgroup": comparison.manager.cgroup,
        })
    }
}

/// Each block is a repeat.
fn runs(times: &Times) -> impl Iterator<Item = Run> + '_ {
    times.blocks.iter().map(|events| {
        let last = events.starts_ns.last().zip(events.latencies_ns.last()).map_or(0, |(start, time)| start + time);
        let first = events.starts_ns.first().copied().unwrap_or(last);
        let duration_ns = last.saturating_sub(first);
        let interactive_ns = Some(duration_ns);
        Run { name: times.row.turn.clone(), duration_ns, interactive_ns, lost: 0, classes: vec![events.clone()] }
    })
}

/// One for each arm; each has a point where its figure is told.
fn curves(rows: &[ArmRow], key_figure: KeyFigure) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows {
        let Some(ms) = (key_figure.of)(&row.figures) else { continue };
        let point = (f64::from(row.level), ms);
        match curves.iter_mut().find(|curve| curve.name == row.arm) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name: row.arm.clone(), points: vec![point] }),
        }
    }
    curves
}
