// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme selftest`.

use crate::arguments::{self, PrivateDisplayChoice};
use crate::lines::Lines;
use crate::programs;
use anyhow::Result;
use std::process::ExitCode;
use tipme_bench::faults::FAULTS;
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::screen::Place;
use tipme_bench::selftest::{self, SelftestOptions, SelftestOutcome};

/// Exit code where nothing could be measured.
const NOT_MEASURED: u8 = 2;

/// Exit code 0 where enough causes are named and nothing is found where nothing is wrong, else 1.
pub fn run(arguments: arguments::Selftest) -> Result<ExitCode> {
    if arguments.list {
        FAULTS.iter().for_each(|fault| println!("{:<12} {}", fault.name, fault.about));
        return Ok(ExitCode::SUCCESS);
    }
    let place = match arguments.display {
        PrivateDisplayChoice::X11 => Place::X11,
        PrivateDisplayChoice::Wayland => Place::Wayland,
    };
    let options = SelftestOptions {
        names: arguments.names,
        repeat: arguments.repeat,
        place,
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
