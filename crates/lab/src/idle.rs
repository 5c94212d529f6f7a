// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme idle`.

mod names;
mod result;
mod validate;

use crate::files::write_plots;
use crate::{arguments, programs};
use anyhow::Result;
use names::Named;
use result::{wrap, write};
use std::process::ExitCode;
use tipme_analysis::Recording;
use tipme_bench::idle::{self, GAP_MIN, Options, Outcome, Tracer};
use tipme_bench::interrupt::Interrupt;
use tipme_bench::machine::Survey;
use tipme_measure::idle::{Check, CpuFigures, IdleDetails, Profile};
use tipme_measure::{Document, Machine};
use tipme_report::idle as report;

/// Columns of a profile in a terminal.
const COLUMNS: usize = 64;

/// The figures must agree with the kernel's account to so many points.
const POINTS_MAX: f64 = 2.0;

/// Exit code 0 where it was measured, 1 where the figures cannot be trusted.
pub fn run(arguments: arguments::Idle) -> Result<ExitCode> {
    let options = options(&arguments)?;
    options.check()?;
    let interrupt = Interrupt::install()?;
    if arguments.validate {
        return validate::run(&arguments, &options, &interrupt);
    }
    let survey = Survey::begin();
    let (outcome, recording) = watch(&arguments, &options, &interrupt)?;
    let machine = survey.end();
    let document = document(&options, &outcome, recording, machine);
    let profiles: Vec<Profile> = outcome.observed.iter().map(|one| Profile::of(one, COLUMNS)).collect();
    print!("{}", report::text(&document, &profiles));
    if let Some(path) = &arguments.json {
        write(path, &document)?;
    }
    if let Some(folder) = &arguments.svg {
        write_plots(folder, report::plots(&document, &outcome.observed))?;
    }
    let apart = document.details.cpus.iter().any(|cpu| cpu.difference_points.abs() > POINTS_MAX);
    Ok(ExitCode::from(u8::from(apart && !options.classic)))
}

fn options(arguments: &arguments::Idle) -> Result<Options> {
    let cpus = match &arguments.cpus {
        Some(list) => list.0.clone(),
        None => idle::allowed_cpus()?,
    };
    let (duration, resolution) = (arguments.duration, arguments.resolution);
    Ok(Options { duration, resolution, classic: arguments.classic, cpus })
}

/// What was recorded meanwhile, or why nothing was.
type Recorded = Result<Box<Recording>, String>;

/// Measures, with the recorder beside it where that is possible.
fn watch(arguments: &arguments::Idle, options: &Options, interrupt: &Interrupt) -> Result<(Outcome, Recorded)> {
    let tracer = match why_not(arguments) {
        Some(why) => Err(why.to_owned()),
        None => {
            let started = Tracer::start(&programs::tipme()?, options.duration, interrupt);
            interrupt.check()?;
            started.map_err(|error| format!("{error:#}"))
        }
    };
    let outcome = idle::measure(options, interrupt)?;
    let recorded = tracer.and_then(|tracer| read(tracer, interrupt).map_err(|error| format!("{error:#}")));
    interrupt.check()?;
    Ok((outcome, recorded))
}

/// Why gaps have no names.
fn why_not(arguments: &arguments::Idle) -> Option<&'static str> {
    if arguments.no_trace {
        Some("--no-trace was given")
    } else if arguments.classic {
        Some("the loop of fixed length does not know when in a record its time was taken")
    } else if !idle::may_record() {
        Some("only root may record; run it with sudo")
    } else {
        None
    }
}

fn read(tracer: Tracer, interrupt: &Interrupt) -> Result<Box<Recording>> {
    let incident = tracer.mark(interrupt)?;
    Ok(Box::new(Recording::read(&tipme_command::incident::read(&incident.path)?)?))
}

fn document(options: &Options, outcome: &Outcome, recorded: Recorded, machine: Machine) -> Document<IdleDetails> {
    let observed = &outcome.observed;
    let named = names::name(recorded.as_deref().ok(), outcome, &machine);
    let cpus = observed.iter().zip(&outcome.counted).zip(&named.cpus).map(|((one, counted), name)| CpuFigures {
        counted: counted.clone(),
        ticks_per_s: name.ticks_per_s,
        exclusion: name.exclusion,
        ..CpuFigures::of(one)
    });
    let cpus = cpus.collect();
    let all = Check::of("", "", observed, None);
    let details = IdleDetails {
        stolen_share: all.stolen_share,
        check_share: all.check_share,
        cpus,
        no_names_because: recorded.err(),
        ..details(options, named)
    };
    wrap(machine, observed.iter().map(tipme_measure::idle::run).collect(), details)
}

fn details(options: &Options, named: Named) -> IdleDetails {
    IdleDetails {
        method: if options.classic { "classic" } else { "gaps" }.to_owned(),
        resolution_ns: options.resolution.as_nanos() as u64,
        gap_min_ns: (!options.classic).then_some(GAP_MIN.as_nanos() as u64),
        named: named.share,
        residents: named.residents,
        largest: named.largest,
        ..IdleDetails::default()
    }
}
