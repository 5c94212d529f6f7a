// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench system`.

use super::beside::ManagerOptions;
use super::choice::choice;
use clap::Args;
use std::path::PathBuf;
use tipme_bench::load::LEVEL_MAX;
use tipme_bench::system::Beside;
use tipme_command::size;

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench system --managed
  sudo tipme bench system --beside nothing,build --rounds 4 --managed --json system.json

A script goes round a terminal with vi, one with less, one with a shell and, where it is
installed, mousepad, on a private display: it clicks into a window, waits until that has the
focus, types, and lets each key be answered. Measured is the time of the whole script, beside
nothing, beside a build (make with cc of made-up files, again and again; where there is no
compiler, xargs with gzip), and beside a heavy synthetic load (tipme load big). Printed with the
paper's table 1.

Exit codes: 0 measured, 2 could not measure.")]
pub struct System {
    /// What runs beside the script
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "nothing,build,synthetic",
        value_parser = choice(&Beside::ALL, Beside::name, Beside::about))]
    pub beside: Vec<Beside>,
    /// How often the script goes round the applications
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub rounds: u16,
    /// Runnable processes of the synthetic load, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(LEVEL_MAX)))]
    pub load: u32,
    /// Memory of the synthetic load: bytes, or with K, M or G [default: as in tipme load]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Spread the synthetic load over so many sessions; 0 leaves it, and the build, in that of the display's programs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=i64::from(LEVEL_MAX)))]
    pub sessions: u32,
    /// Measure with the manager as well, in turns
    #[arg(long)]
    pub managed: bool,
    /// Runs beside each with each arm
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub blocks: u8,
    #[command(flatten)]
    pub manager: ManagerOptions,
    /// Write the result as one JSON document
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
