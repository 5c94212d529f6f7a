// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Interactive Performance Monitoring Environment for Linux: the command.

#[macro_use]
extern crate tipme_command;

mod agent;
mod arguments;
mod confined;
mod day;
mod desktop_keys;
mod diagnose;
mod doctor;
mod incidents;
mod judge;
mod lab;
mod manage;
mod mark;
mod pause;
mod record;
mod report;
mod schema;
mod scrub;
mod setup;
mod status;
mod suggestion;
mod why;

use anyhow::Result;
use arguments::{Arguments, Verb};
use clap::FromArgMatches;
use std::path::Path;
use std::process::ExitCode;
use tipme_command::output::{finish, layout};
use tipme_command::verbs::NAMES;
use tipme_command::{completions, pages};
use tipme_control::journal;

fn main() -> ExitCode {
    act().unwrap_or_else(|error| {
        journal::error(format!("{error:#}")).tell();
        ExitCode::from(2)
    })
}

fn act() -> Result<ExitCode> {
    if lab::is_asked_for() {
        lab::become_lab()?;
    }
    let arguments = arguments();
    arguments.colours.choose();
    run(arguments.verb).and_then(finish)
}

/// Parses the arguments; exits with help or a usage error.
fn arguments() -> Arguments {
    let matches = arguments::groups::command(&layout()).get_matches();
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Record(arguments) => record::run(arguments),
        Verb::Mark(arguments) => mark::run(arguments),
        Verb::Pause(arguments) => pause::pause(&arguments),
        Verb::Resume(arguments) => pause::resume(&arguments),
        Verb::Agent(arguments) => agent::run(arguments),
        Verb::Diagnose(arguments) => diagnose::run(&arguments),
        Verb::Report(arguments) => report::run(&arguments),
        Verb::Incidents(arguments) => incidents::run(&arguments),
        Verb::Day(arguments) => day::run(&arguments),
        Verb::Scrub(arguments) => scrub::run(&arguments),
        Verb::Setup(arguments) => setup::run(&arguments),
        Verb::Status(arguments) => status::run(&arguments),
        Verb::Doctor(arguments) => doctor::run(&arguments),
        Verb::Manage(arguments) => manage::run(arguments),
        Verb::ManageHelper(arguments) => manage::help(arguments),
        Verb::Why(arguments) => why::run(&arguments),
        Verb::Schema(arguments) => schema::run(&arguments),
        Verb::Completions { shell } => complete(shell),
        Verb::Man { dir } => describe(&dir),
        Verb::Judge(arguments) => confined::judge(&arguments),
        Verb::Seal(arguments) => confined::seal(&arguments),
        Verb::Name(arguments) => confined::name(&arguments),
        Verb::Count(arguments) => confined::count(&arguments),
    }
}

fn complete(shell: clap_complete::Shell) -> Result<ExitCode> {
    print!("{}", completions::with_lab(arguments::groups::whole(), shell));
    Ok(ExitCode::SUCCESS)
}

fn describe(folder: &Path) -> Result<ExitCode> {
    pages::man(arguments::groups::whole(), |verb| !NAMES.contains(&verb), folder)?;
    Ok(ExitCode::SUCCESS)
}
