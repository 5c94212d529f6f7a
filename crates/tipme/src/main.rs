// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Interactive Performance Monitoring Environment for Linux: the command.

/// As in the standard library, but a reader that is gone is no reason to panic.
macro_rules! print {
    ($($words:tt)*) => { crate::output::write(&std::format!($($words)*)) };
}

/// The same with the end of a line.
macro_rules! println {
    () => { crate::output::write("\n") };
    ($($words:tt)*) => { crate::output::write(&(std::format!($($words)*) + "\n")) };
}

mod agent;
mod arguments;
mod bench;
mod compare;
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
mod scrub;
mod selftest;
mod setup;
mod status;
mod why;

use anyhow::Result;
use arguments::{Arguments, Verb};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(Arguments::parse().verb).unwrap_or_else(|error| {
        eprintln!("tipme: {error:#}");
        ExitCode::from(2)
    })
}

fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Record(arguments) => record::run(arguments),
        Verb::Mark(arguments) => mark::run(arguments),
        Verb::Agent(arguments) => agent::run(arguments),
        Verb::Diagnose(arguments) => diagnose::run(&arguments),
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
        Verb::Completions { shell } => pages::completions(shell),
        Verb::Man { dir } => pages::man(&dir),
        Verb::Helper(arguments) => demo::helper(arguments),
    }
}
