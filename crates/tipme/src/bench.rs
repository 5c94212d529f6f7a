// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench`.

mod fork;
mod intervals;
mod memory;
mod timer;

use crate::arguments::Bench;
use anyhow::Result;
use std::process::ExitCode;

pub fn run(bench: Bench) -> Result<ExitCode> {
    match bench {
        Bench::Timer(arguments) => timer::run(arguments),
        Bench::Memory(arguments) => memory::run(arguments),
        Bench::Fork(arguments) => fork::run(arguments),
    }
}
