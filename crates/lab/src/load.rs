// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme load`.

use crate::arguments::Load as Arguments;
use crate::lines::Lines;
use crate::programs;
use anyhow::Result;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tipme_bench::Progress;
use tipme_bench::interrupt::Interrupt;
use tipme_bench::load::{Achieved, Kind, Load, Options, Pages, Speed, default_memory};
use tipme_bench::machine::Survey;
use tipme_measure::SCHEMA;
use tipme_report::LoadOutcome;

/// Between two lines of progress.
const NEWS: Duration = Duration::from_secs(5);

/// Ctrl-C ends the load as its time does: what it achieved is printed.
pub fn run(arguments: Arguments) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let options = options(&arguments)?;
    options.check()?;
    let mut lines = Lines("load");
    lines.line(&plan(&options));
    let outcome = outcome(&options, run_for(&options, &interrupt, &mut lines)?);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        print!("{}", tipme_report::load(&outcome));
    }
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &Arguments) -> Result<Options> {
    let kind = Kind::from(arguments.kind);
    let usual = kind.pages();
    let launcher = programs::launcher()?;
    Ok(Options {
        pages: Pages {
            demand: arguments.demand.unwrap_or(usual.demand),
            reuse: arguments.reuse.unwrap_or(usual.reuse),
        },
        memory: arguments.memory.unwrap_or_else(default_memory),
        sessions: arguments.sessions,
        folder: arguments.folder.clone(),
        ..Options::usual(kind, arguments.level, arguments.duration, Speed::try_out()?, &launcher)
    })
}

/// What it will take, told before it begins.
fn plan(options: &Options) -> String {
    format!(
        "{} processes {}, {} MiB of memory together, {:.0} s",
        options.level,
        options.place(),
        (options.bytes_each() * u64::from(options.level)) >> 20,
        options.time.as_secs_f64()
    )
}

fn run_for(options: &Options, interrupt: &Interrupt, lines: &mut Lines) -> Result<Achieved> {
    let mut load = Load::start(options)?;
    let (begun, before, sampler) = (Instant::now(), load.reading(), load.sample_rounds()?);
    lines.line("running");
    while begun.elapsed() < options.time && interrupt.check().is_ok() {
        let left = options.time.saturating_sub(begun.elapsed());
        match load.run(NEWS.min(left), interrupt) {
            Err(error) if interrupt.check().is_ok() => return Err(error),
            _ => lines.line(&news(Achieved::between(before, load.reading()))),
        }
    }
    let achieved = Achieved::between(before, load.reading());
    Ok(Achieved { window_rounds_min: sampler.finish()?, ..achieved })
}

fn news(achieved: Achieved) -> String {
    let casualties = match achieved.casualties {
        0 => String::new(),
        many => format!(", {many} processes ended early"),
    };
    format!(
        "{:.0} s, {:.1} runnable, {:.0} rounds a second{casualties}",
        achieved.seconds, achieved.runnable_mean, achieved.rounds_per_s
    )
}

fn outcome(options: &Options, achieved: Achieved) -> LoadOutcome {
    LoadOutcome {
        schema: SCHEMA,
        load: options.kind.name().to_owned(),
        place: options.place(),
        level: options.level,
        runnable_mean: achieved.runnable_mean,
        load_average_1min: Survey::begin().end().load_average.map(|averages| averages[0]),
        memory_bytes: options.bytes_each() * u64::from(options.level),
        seconds: achieved.seconds,
        cpu_s: achieved.cpu_s,
        demand_pages_per_ms: options.pages.demand,
        pages_per_ms: achieved.pages_per_ms,
        reuse: options.pages.reuse,
        pages: achieved.pages,
        rounds: achieved.rounds,
        rounds_per_s: achieved.rounds_per_s,
        forks: achieved.forks,
        casualties: achieved.casualties,
        window_rounds_min: achieved.window_rounds_min,
    }
}
