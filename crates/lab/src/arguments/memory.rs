// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench memory`.

use super::choice::choice;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tipme_bench::memory::{BACKINGS, Backing};
use tipme_command::{duration, size};

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench memory
  sudo tipme bench memory --children 8 -d 60s --json memory.json --svg plots
  sudo tipme bench memory --backing zram --children 4

A process sleeps 100 ms, reads a word of the next page of its 4 MiB, and notes the time; each
child writes a word of page after page of 12 MiB, all the time. All of them are in a control
group of their own, whose memory is too small for them, so the machine does not run short; pages
go to a private disk, whose data are kept in memory. Disk, group and processes are gone
afterwards, however it ends.

Exit codes: 0 fine, 1 an interval was more than 100 ms late, 2 could not measure.")]
pub struct Memory {
    /// Measure beside so many children, 0 to 32; several numbers one after the other
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0,1,4,8", value_parser = clap::value_parser!(u8).range(0..=32))]
    pub children: Vec<u8>,
    /// Intervals for each number of children, at most; the paper took 10000
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
    /// How long to measure for each number of children, at most
    #[arg(short, long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub duration: Duration,
    /// Where pages go that memory does not hold
    #[arg(long, value_name = "WHERE", value_parser = choice(&BACKINGS, Backing::name, Backing::about),
        default_value = Backing::File.name())]
    pub backing: Backing,
    /// Memory of all processes together: bytes, or with K, M or G [default: a third of the buffers, at least 12M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub limit: Option<u64>,
    /// Requests a second that the private disk takes; 0 for as many as it can
    #[arg(long, value_name = "N", default_value_t = tipme_bench::memory::REQUESTS_PER_SECOND)]
    pub requests: u32,
    /// Do not record meanwhile, and so do not explain the longest intervals
    #[arg(long)]
    pub no_trace: bool,
    /// Write the result as one JSON document
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the histograms as memory.svg below this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}
