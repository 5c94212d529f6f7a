// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench system`.

use super::beside::manager;
use crate::arguments::{BesideChoice, System};
use crate::files::write;
use crate::lines::Lines;
use crate::programs::Programs;
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;
use tipme_bench::Progress;
use tipme_bench::arms::{Comparison, steadiness};
use tipme_bench::interrupt::Interrupt;
use tipme_bench::load::{Kind, default_memory};
use tipme_bench::machine::Survey;
use tipme_bench::system::{self, Beside, Options, Outcome, Runs, Work};
use tipme_measure::{Document, Events, Machine, Run, SCHEMA};
use tipme_report::system::{PAPER, SystemRow, fill_system};

const TITLE: &str = "A script that goes round several applications";

pub fn run(arguments: System) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let options = options(&arguments, &Programs::find()?);
    let mut lines = Lines("system");
    lines.line(&format!("{} runs; {}", options.runs(), options.estimate()));
    let survey = Survey::begin();
    let outcome = system::run(&options, &interrupt, &mut lines)?;
    let machine = survey.end();
    let rows = rows(&outcome);
    print!("{}", text(&options, &outcome, &rows, &machine));
    if let Some(path) = &arguments.json {
        let document = document(&options, &outcome, &rows, machine);
        write(path, &(serde_json::to_string_pretty(&document)? + "\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &System, programs: &Programs) -> Options {
    let mut beside: Vec<Beside> = arguments.beside.iter().map(|choice| chosen(*choice)).collect();
    beside.sort_unstable();
    beside.dedup();
    let loads = beside.contains(&Beside::Synthetic);
    let comparison = Comparison {
        levels: vec![if loads { arguments.load } else { 0 }],
        managed: arguments.managed,
        against: Vec::new(),
        blocks: arguments.blocks.into(),
        kind: Kind::Big,
        pages: Kind::Big.pages(),
        memory: arguments.memory.unwrap_or_else(default_memory),
        sessions: arguments.sessions,
        manager: manager(&arguments.manager, programs),
        launcher: programs.launcher.clone(),
    };
    Options { comparison, beside, rounds: arguments.rounds.into() }
}

fn chosen(choice: BesideChoice) -> Beside {
    match choice {
        BesideChoice::Nothing => Beside::Nothing,
        BesideChoice::Build => Beside::Build,
        BesideChoice::Synthetic => Beside::Synthetic,
    }
}

fn rows(outcome: &Outcome) -> Vec<SystemRow> {
    let mut rows: Vec<SystemRow> = outcome.runs.iter().filter_map(row).collect();
    fill_system(&mut rows);
    rows
}

fn row(runs: &Runs) -> Option<SystemRow> {
    let times: Vec<u64> = runs.runs.iter().map(|played| played.time.0).collect();
    Some(SystemRow {
        unanswered: runs.runs.iter().map(|played| played.unanswered).sum(),
        done: runs.load.map(|load| load.rounds),
        done_per_s: runs.load.map(|load| load.rounds_per_s),
        window_rounds_min: runs.load.and_then(|load| load.window_rounds_min),
        ..SystemRow::of(runs.beside.name(), runs.arm.name(), &times)?
    })
}

fn text(options: &Options, outcome: &Outcome, rows: &[SystemRow], machine: &Machine) -> String {
    let played = outcome.runs.iter().flat_map(|runs| &runs.runs).next().copied().unwrap_or_default();
    let mut out = format!("{TITLE}: {}\n", outcome.applications.join(", "));
    let blocks = options.comparison.blocks;
    let runs = format!("{blocks} runs each; {} changes of the focus and {} keys a run", played.changes, played.keys);
    let build = outcome.work.map(|work| format!("build: {}", work.name()));
    let load = synthetic(options).map(|load| format!("heavy synthetic: {load}"));
    let place = load.is_some().then(|| options.comparison.place());
    let steadiness = steadiness().map(str::to_owned);
    for line in [Some(runs), build, load, place, steadiness].into_iter().flatten() {
        out += &format!("  {line}\n");
    }
    out + &format!("\n{}{}\n", tipme_report::system::system(rows), tipme_report::conditions(machine))
}

/// What the synthetic load is; `None` where it is not run.
fn synthetic(options: &Options) -> Option<String> {
    let comparison = &options.comparison;
    options.beside.contains(&Beside::Synthetic).then(|| {
        format!(
            "load {}, level {}, {} pages per ms, reuse {}, {} MiB at most",
            comparison.kind.name(),
            comparison.level_max(),
            comparison.pages.demand,
            comparison.pages.reuse,
            comparison.load_bytes() >> 20
        )
    })
}

fn document(options: &Options, outcome: &Outcome, rows: &[SystemRow], machine: Machine) -> Document<Value> {
    let details = json!({
        "title": TITLE,
        "applications": outcome.applications,
        "build": outcome.work.map(Work::name),
        "load": options.comparison.level_max(),
        "synthetic": synthetic(options),
        "place": synthetic(options).map(|_| options.comparison.place()),
        "blocks": options.comparison.blocks,
        "strength": options.comparison.manager.strength,
        "backend": options.comparison.manager.backend,
        "cgroup": options.comparison.manager.cgroup,
        "realtime": steadiness().is_none(),
        "rounds": options.rounds,
        "rows": rows,
        "paper_s": PAPER.iter().map(|(arm, seconds)| json!({ "arm": arm, "seconds": seconds })).collect::<Vec<Value>>(),
    });
    Document {
        schema: SCHEMA,
        kind: "system".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine,
        runs: outcome.runs.iter().flat_map(runs).collect(),
        details,
    }
}

/// Each run of the script is a repeat.
fn runs(runs: &Runs) -> impl Iterator<Item = Run> + '_ {
    runs.runs.iter().map(|played| {
        let mut events = Events::of("script", None);
        events.push(played.begun.0, played.time.0);
        let name = format!("beside {}, {}", runs.beside.name(), runs.arm.name());
        Run { name, duration_ns: played.time.0, interactive_ns: Some(played.time.0), lost: 0, classes: vec![events] }
    })
}
