// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench memory`.

use super::intervals::Results;
use crate::arguments::{BackingChoice, Memory};
use crate::lines::Lines;
use crate::programs::Programs;
use anyhow::Result;
use std::process::ExitCode;
use tipme_bench::Progress;
use tipme_bench::interrupt::Interrupt;
use tipme_bench::intervals::Bounds;
use tipme_bench::machine::Survey;
use tipme_bench::memory::{self, BACKINGS, Backing, Conditions, Options};
use tipme_measure::Class;

const TITLE: &str = "A word of a page every 100 ms, beside children that write theirs";
/// Who made pages dirty and who took memory is recorded, since the kernel's own threads write and read for others.
const DETAILS: [&str; 2] = ["writers", "memory"];
/// Making and removing what it takes, for each number of children.
const AROUND_S: u64 = 10;

/// Exit code 1 where a person would have noticed an interval.
pub fn run(arguments: Memory) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let programs = Programs::find()?;
    let options = options(&arguments, &programs);
    let mut lines = Lines("memory");
    lines.line(&plan(&options));
    options.check()?;
    let sidecar = programs.sidecar(arguments.no_trace, &DETAILS, &interrupt)?;
    let survey = Survey::begin();
    let outcome = memory::run(&options, sidecar.as_ref().ok(), &interrupt, &mut lines)?;
    let results = Results {
        kind: "memory",
        title: TITLE,
        bounds: &bounds(&options, &outcome.conditions),
        conditions: serde_json::to_value(&outcome.conditions)?,
        class: Class::Key,
        sleep: memory::SLEEP,
        machine: survey.end(),
        loads: &outcome.loads,
        blind: sidecar.as_ref().err().cloned(),
    };
    results.publish(arguments.json.as_deref(), arguments.svg.as_deref())
}

fn options(arguments: &Memory, programs: &Programs) -> Options {
    Options {
        children: arguments.children.iter().map(|count| usize::from(*count)).collect(),
        bounds: Bounds { intervals: arguments.samples as usize, time: arguments.duration },
        backing: backing(arguments.backing),
        limit: arguments.limit,
        requests_per_second: Some(arguments.requests).filter(|requests| *requests > 0),
        launcher: programs.launcher.clone(),
    }
}

fn backing(choice: BackingChoice) -> Backing {
    match choice {
        BackingChoice::File => Backing::File,
        BackingChoice::DiskSwap => Backing::DiskSwap,
        BackingChoice::Zram => Backing::Zram,
        BackingChoice::Anonymous => Backing::Anonymous,
    }
}

/// What it will take, told before it begins.
fn plan(options: &Options) -> String {
    let most = options.time_max().as_secs() + AROUND_S * options.children.len() as u64;
    format!(
        "{} loads, {} s each, {most} s in all at most; {} MiB of memory for {} MiB of buffers",
        options.children.len(),
        options.bounds.time.as_secs(),
        options.limit_bytes() >> 20,
        options.buffers_bytes() >> 20
    )
}

fn bounds(options: &Options, conditions: &Conditions) -> Vec<String> {
    let disk = conditions.disk.as_ref().map(|disk| format!("; {disk}")).unwrap_or_default();
    let mut lines = vec![format!(
        "backing {}; {} MiB of memory for up to {} MiB of buffers{disk}",
        options.backing.name(),
        conditions.limit_bytes >> 20,
        options.buffers_bytes() >> 20
    )];
    for backing in BACKINGS {
        let because = backing.offer().not_available_because;
        lines.extend(because.map(|because| format!("backing {}: not available, because {because}", backing.name())));
    }
    lines
}
