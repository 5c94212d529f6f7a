// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme selftest`.

use crate::arguments::{self, PrivateDisplayChoice};
use crate::lines::Lines;
use crate::programs;
use anyhow::Result;
use std::process::ExitCode;
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::selftest::{self, App, Fault, SelftestOptions, SelftestOutcome, faults};

/// Clean runs of each kind in each repeat.
const CLEAN_RUNS: usize = 2;
/// Exit code where nothing could be measured.
const NOT_MEASURED: u8 = 2;

/// Exit code 0 where enough causes are named and nothing is found in clean runs, else 1.
pub fn run(arguments: arguments::Selftest) -> Result<ExitCode> {
    if arguments.list {
        faults::all().for_each(list);
        return Ok(ExitCode::SUCCESS);
    }
    let options = SelftestOptions {
        names: arguments.names,
        repeat: arguments.repeat,
        apps: apps(arguments.app, arguments.display),
        clean: CLEAN_RUNS,
        keep: arguments.keep,
        launcher: programs::launcher()?,
        tipme: programs::tipme()?,
    };
    let outcome = selftest::run(&options, &InterruptFlag::install()?, &mut Lines("selftest"))?;
    match (arguments.json, arguments.markdown) {
        (true, _) => println!("{}", serde_json::to_string_pretty(&outcome)?),
        (_, true) => print!("{}", selftest::markdown(&outcome)),
        _ => print!("{}", selftest::text(&outcome)),
    }
    Ok(exit_code(&outcome))
}

fn exit_code(outcome: &SelftestOutcome) -> ExitCode {
    ExitCode::from(if outcome.is_empty() { NOT_MEASURED } else { u8::from(!outcome.is_good()) })
}

/// Those that were named, else those of the display that need little installed.
fn apps(named: Vec<App>, display: PrivateDisplayChoice) -> Vec<App> {
    match display {
        _ if !named.is_empty() => named,
        PrivateDisplayChoice::X11 => vec![App::Patient, App::Xterm],
        PrivateDisplayChoice::Wayland => vec![App::Foot],
    }
}

/// One line: name, what it is, and the applications that it can be done to.
fn list(fault: &'static Fault) {
    let apps: Vec<&str> = fault.apps.iter().map(|app| app.name()).collect();
    println!("{:<24} {} [{}]", fault.name, fault.about, apps.join(", "));
}
