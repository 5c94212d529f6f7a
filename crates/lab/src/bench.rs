// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench`.

mod beside;
mod fork;
mod intervals;
mod memory;
mod pagein;
mod scroll;
mod system;
mod timer;
mod typing;
mod warmstart;

use crate::arguments::Bench;
use anyhow::Result;
use std::process::ExitCode;

pub fn run(bench: Bench) -> Result<ExitCode> {
    match bench {
        Bench::Timer(arguments) => timer::run(arguments),
        Bench::Memory(arguments) => memory::run(arguments),
        Bench::Fork(arguments) => fork::run(arguments),
        Bench::Typing(arguments) => typing::run(arguments),
        Bench::Scroll(arguments) => scroll::run(arguments),
        Bench::System(arguments) => system::run(arguments),
        Bench::Warmstart(arguments) => warmstart::run(arguments),
        Bench::Pagein(arguments) => pagein::run(arguments),
    }
}
