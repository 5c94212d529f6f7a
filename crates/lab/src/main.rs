// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab of tipme: benchmarks, loads and known faults. `tipme` executes this program for its
//! verbs.

#[macro_use]
extern crate tipme_command;

mod arguments;
mod bench;
mod compare;
mod demo;
mod files;
mod lines;
mod load;
mod measure;
mod programs;
mod selftest;
mod worker;

use anyhow::Result;
use arguments::{DocumentChoice, LabArguments, LabVerb};
use clap::FromArgMatches;
use std::path::Path;
use std::process::ExitCode;
use tipme_bench::experiment;
use tipme_bench::fork::Fork;
use tipme_bench::idle::Idle;
use tipme_bench::load::LoadOutcome;
use tipme_bench::memory::Memory;
use tipme_bench::pagein::Pagein;
use tipme_bench::scroll::Scroll;
use tipme_bench::system::System;
use tipme_bench::timer::Timer;
use tipme_bench::typing::Typing;
use tipme_bench::warmstart::Warmstart;
use tipme_command::output::{finish, layout};
use tipme_command::{completions, pages, schema};
use tipme_control::journal;
use tipme_measure::InputClass;
use tipme_report::measure::MeasureDetails;

fn main() -> ExitCode {
    let arguments = arguments();
    arguments.colours.choose();
    run(arguments.verb).and_then(finish).unwrap_or_else(|error| {
        journal::error(format!("{error:#}")).tell();
        ExitCode::from(2)
    })
}

/// Parses the arguments; exits with help or a usage error.
fn arguments() -> LabArguments {
    let matches = arguments::command(&layout()).get_matches();
    LabArguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn run(verb: LabVerb) -> Result<ExitCode> {
    match verb {
        LabVerb::Demo(arguments) => demo::run(arguments),
        LabVerb::Selftest(arguments) => selftest::run(arguments),
        LabVerb::Measure(arguments) => measure::run(arguments),
        LabVerb::Idle(options) => bench::measure(&options),
        LabVerb::Compare(arguments) => compare::run(arguments),
        LabVerb::Bench(arguments) => bench::run(arguments),
        LabVerb::Load(arguments) => load::run(&arguments),
        LabVerb::Schema(arguments) => print_schema(arguments.document),
        LabVerb::Completions { shell } => complete(shell),
        LabVerb::Man { dir } => describe(&dir),
        LabVerb::Worker(arguments) => worker::run(arguments),
    }
}

fn print_schema(document: DocumentChoice) -> Result<ExitCode> {
    let schema = match document {
        DocumentChoice::Demo => schema::<tipme_bench::demo::DemoOutcome>(),
        DocumentChoice::Selftest => schema::<tipme_bench::selftest::SelftestOutcome>(),
        DocumentChoice::Fork => experiment::schema::<Fork>(),
        DocumentChoice::Memory => experiment::schema::<Memory>(),
        DocumentChoice::Typing => experiment::schema::<Typing>(),
        DocumentChoice::Scroll => experiment::schema::<Scroll>(),
        DocumentChoice::System => experiment::schema::<System>(),
        DocumentChoice::Warmstart => experiment::schema::<Warmstart>(),
        DocumentChoice::Pagein => experiment::schema::<Pagein>(),
        DocumentChoice::Timer => experiment::schema::<Timer>(),
        DocumentChoice::Idle => experiment::schema::<Idle>(),
        DocumentChoice::Load => schema::<LoadOutcome>(),
        DocumentChoice::Measure => experiment::result_schema::<MeasureDetails>(
            "measure",
            &InputClass::ALL.map(InputClass::name),
        ),
        DocumentChoice::Compare => schema::<compare::WrittenComparison<'_>>(),
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(ExitCode::SUCCESS)
}

fn complete(shell: clap_complete::Shell) -> Result<ExitCode> {
    print!("{}", completions::completions(arguments::whole(), shell));
    Ok(ExitCode::SUCCESS)
}

fn describe(folder: &Path) -> Result<ExitCode> {
    pages::man(arguments::whole(), |_| true, folder)?;
    Ok(ExitCode::SUCCESS)
}
