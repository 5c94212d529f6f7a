// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Interactive Performance Monitoring Environment for Linux: the command.

/// As in the standard library, but a reader that is gone is no reason to panic.
macro_rules! print {
    ($($words:tt)*) => { crate::output::write(&std::format!($($words)*)) };
}

/// The same with the end of a line.
macro_rules! println {
    ($($words:tt)*) => { crate::output::write(&(std::format!($($words)*) + "\n")) };
}

mod agent;
mod arguments;
mod bench;
mod compare;
mod confined;
mod demo;
mod diagnose;
mod doctor;
mod idle;
mod incidents;
mod judge;
mod load;
mod manage;
mod mark;
mod measure;
mod output;
mod pages;
mod record;
mod report;
mod schema;
mod scrub;
mod selftest;
mod setup;
mod status;
mod why;

use anyhow::Result;
use arguments::{Arguments, Verb};
use clap::FromArgMatches;
use std::process::ExitCode;
use tipme_control::journal;

fn main() -> ExitCode {
    let arguments = arguments();
    output::choose_colour(arguments.color);
    run(arguments.verb).unwrap_or_else(|error| {
        journal::error(format!("{error:#}")).tell();
        ExitCode::from(2)
    })
}

/// The arguments; ends the program with help, or with what is wrong with them.
fn arguments() -> Arguments {
    let matches = arguments::command(&output::layout()).get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Record(arguments) => record::run(arguments),
        Verb::Mark(arguments) => mark::run(arguments),
        Verb::Agent(arguments) => agent::run(arguments),
        Verb::Diagnose(arguments) => diagnose::run(&arguments),
        Verb::Report(arguments) => report::run(&arguments),
        Verb::Incidents(arguments) => incidents::run(&arguments),
        Verb::Scrub(arguments) => scrub::run(&arguments),
        Verb::Setup(arguments) => setup::run(&arguments),
        Verb::Status(arguments) => status::run(&arguments),
        Verb::Doctor(arguments) => doctor::run(&arguments),
        Verb::Demo(arguments) => demo::run(arguments),
        Verb::Selftest(arguments) => selftest::run(arguments),
        Verb::Idle(arguments) => idle::run(arguments),
        Verb::Bench(arguments) => bench::run(arguments),
        Verb::Measure(arguments) => measure::run(arguments),
        Verb::Load(arguments) => load::run(arguments),
        Verb::Manage(arguments) => manage::run(arguments),
        Verb::ManageHelper(arguments) => manage::help(arguments),
        Verb::Why(arguments) => why::run(&arguments),
        Verb::Compare(arguments) => compare::run(arguments),
        Verb::Schema(arguments) => schema::run(&arguments),
        Verb::Completions { shell } => pages::completions(shell),
        Verb::Man { dir } => pages::man(&dir),
        Verb::Helper(arguments) => demo::helper(arguments),
        Verb::Judge(arguments) => confined::judge(&arguments),
        Verb::Seal(arguments) => confined::seal(&arguments),
        Verb::Name(arguments) => confined::name(&arguments),
        Verb::Count(arguments) => confined::count(&arguments),
    }
}
