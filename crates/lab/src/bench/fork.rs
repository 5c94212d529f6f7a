// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench fork`.

use super::intervals::Results;
use crate::arguments::{Fork, LoadChoice};
use crate::lines::Lines;
use crate::programs::Programs;
use anyhow::Result;
use std::process::ExitCode;
use tipme_bench::Progress;
use tipme_bench::fork::{self, Conditions, LOADS, Load, Options};
use tipme_bench::interrupt::Interrupt;
use tipme_bench::intervals::Bounds;
use tipme_bench::machine::Survey;
use tipme_measure::Class;

const TITLE: &str = "10 ms of work every 60 ms, beside others on the same CPU";

/// Exit code 1 where a person would have noticed an interval.
pub fn run(arguments: Fork) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let programs = Programs::find()?;
    let options = options(&arguments, &programs);
    let mut lines = Lines("fork");
    lines.line(&plan(&options));
    let sidecar = programs.sidecar(arguments.no_trace, &[], &interrupt)?;
    let survey = Survey::begin();
    let outcome = fork::run(&options, sidecar.as_ref().ok(), &interrupt, &mut lines)?;
    let results = Results {
        kind: "fork",
        title: TITLE,
        bounds: &bounds(&outcome.conditions),
        conditions: serde_json::to_value(&outcome.conditions)?,
        class: Class::Motion,
        sleep: fork::SLEEP,
        machine: survey.end(),
        loads: &outcome.loads,
        blind: sidecar.as_ref().err().cloned(),
    };
    results.publish(arguments.json.as_deref(), arguments.svg.as_deref())
}

fn options(arguments: &Fork, programs: &Programs) -> Options {
    Options {
        loads: loads(arguments.load),
        bounds: Bounds { intervals: arguments.samples as usize, time: arguments.duration },
        every: arguments.every,
        cpu: arguments.cpu,
        launcher: programs.launcher.clone(),
    }
}

/// The calm comes first, to hold the others against.
fn loads(choice: LoadChoice) -> Vec<Load> {
    match choice {
        LoadChoice::None => vec![Load::None],
        LoadChoice::Hog => vec![Load::None, Load::Hog],
        LoadChoice::Fork => vec![Load::None, Load::Fork],
        LoadChoice::Storm => vec![Load::None, Load::Storm],
        LoadChoice::All => LOADS.to_vec(),
    }
}

/// What it will take, told before it begins.
fn plan(options: &Options) -> String {
    format!(
        "{} loads, {:.0} s each, {} s in all at most; one CPU",
        options.loads.len(),
        options.bounds.time.as_secs_f64(),
        options.time_max().as_secs()
    )
}

fn bounds(conditions: &Conditions) -> Vec<String> {
    let every = conditions.every_ms as f64 / 1e3;
    vec![format!(
        "all on CPU {}, in one session; fork: a fork every {every} s; storm: four lives of 5 to 65 ms at a time",
        conditions.cpu
    )]
}
