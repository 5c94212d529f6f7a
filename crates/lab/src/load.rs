// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme load`.

use crate::lines::Lines;
use crate::programs;
use anyhow::Result;
use std::process::ExitCode;
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::live::LiveDriver;
use tipme_bench::load::{LoadArguments, text};

/// Runs the load. Ctrl-C ends it like its timeout does, with its results printed.
pub fn run(arguments: &LoadArguments) -> Result<ExitCode> {
    let (interrupt, programs) = (InterruptFlag::install()?, programs::all()?);
    let outcome =
        arguments.run(&mut LiveDriver { programs, interrupt, progress: Lines("load") })?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        print!("{}", text(&outcome));
    }
    Ok(ExitCode::SUCCESS)
}
