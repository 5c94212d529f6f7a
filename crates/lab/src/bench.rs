// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench`, and the execution of all measurements of the lab.

mod repeats;

use crate::arguments::Bench;
use crate::files::{self, write_json, write_plots};
use crate::lines::Lines;
use crate::programs;
use anyhow::Result;
use repeats::BenchRepeats;
use std::process::ExitCode;
use tipme_bench::driver::BenchDriver;
use tipme_bench::experiment::{BenchFigures, Experiment};
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::live::LiveDriver;
use tipme_bench::machine::Survey;
use tipme_measure::{Document, SCHEMA};

pub fn run(bench: Bench) -> Result<ExitCode> {
    match bench {
        Bench::Timer(options) => measure(&options),
        Bench::Memory(options) => measure(&options),
        Bench::Fork(options) => measure(&options),
        Bench::Typing(options) => measure(&options),
        Bench::Scroll(options) => measure(&options),
        Bench::System(options) => measure(&options),
        Bench::Warmstart(options) => measure(&options),
        Bench::Pagein(options) => measure(&options),
    }
}

/// Runs the measurement on this machine, prints the results and writes their files.
pub fn measure<E: Experiment>(options: &E) -> Result<ExitCode> {
    let (interrupt, programs) = (InterruptFlag::install()?, programs::all()?);
    let mut driver = LiveDriver { programs, interrupt, progress: Lines(E::NAME) };
    let (json, svg) = options.files();
    let repeats = BenchRepeats::new(options.repeats(), json, svg)?;
    repeats
        .all()
        .try_for_each(|repeat| files::check(repeat.json.as_deref(), repeat.svg.as_deref()))?;
    let mut code = 0;
    for repeat in repeats.all() {
        let document = once(options, &mut driver)?;
        print!("{}{}", repeat.heading, E::Figures::text(&document));
        repeat
            .svg
            .iter()
            .try_for_each(|folder| write_plots(folder, E::Figures::plots(&document)))?;
        repeat.json.iter().try_for_each(|path| write_json(path, &document, E::INDENTED))?;
        code = code.max(E::Figures::exit_code(&document));
    }
    Ok(ExitCode::from(code))
}

fn once<E: Experiment>(options: &E, driver: &mut dyn BenchDriver) -> Result<Document<E::Figures>> {
    let survey = Survey::begin();
    let measured = options.run(driver)?;
    Ok(Document {
        schema: SCHEMA,
        kind: E::NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: survey.end(),
        runs: measured.runs,
        details: measured.figures,
    })
}
