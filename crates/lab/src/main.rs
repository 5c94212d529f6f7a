// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab of tipme: benchmarks, loads and known faults. `tipme` starts this program for its verbs.

#[macro_use]
extern crate tipme_command;

mod arguments;
mod bench;
mod compare;
mod demo;
mod files;
mod idle;
mod lines;
mod load;
mod measure;
mod programs;
mod selftest;
mod worker;

use anyhow::Result;
use arguments::{Arguments, Document, Verb};
use clap::FromArgMatches;
use std::path::Path;
use std::process::ExitCode;
use tipme_command::output::{finish, layout};
use tipme_command::{completions, pages, schema};
use tipme_control::journal;

fn main() -> ExitCode {
    let arguments = arguments();
    arguments.colours.choose();
    run(arguments.verb).and_then(finish).unwrap_or_else(|error| {
        journal::error(format!("{error:#}")).tell();
        ExitCode::from(2)
    })
}

/// The arguments; ends the program with help, or with what is wrong with them.
fn arguments() -> Arguments {
    let matches = arguments::command(&layout()).get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Demo(arguments) => demo::run(arguments),
        Verb::Selftest(arguments) => selftest::run(arguments),
        Verb::Measure(arguments) => measure::run(arguments),
        Verb::Idle(arguments) => idle::run(arguments),
        Verb::Compare(arguments) => compare::run(arguments),
        Verb::Bench(arguments) => bench::run(arguments),
        Verb::Load(arguments) => load::run(arguments),
        Verb::Schema(arguments) => print_schema(arguments.document),
        Verb::Completions { shell } => complete(shell),
        Verb::Man { dir } => describe(&dir),
        Verb::Worker(arguments) => worker::run(arguments),
    }
}

fn print_schema(document: Document) -> Result<ExitCode> {
    let schema = match document {
        Document::Demo => schema::<tipme_bench::demo::Outcome>(),
        Document::Selftest => schema::<tipme_bench::selftest::Outcome>(),
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
