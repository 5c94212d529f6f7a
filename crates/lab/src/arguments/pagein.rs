// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench pagein`.

use super::beside::ManagerOptions;
use super::choice::choice;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tipme_bench::arms::Arm;
use tipme_bench::load::{Kind, LEVEL_MAX};
use tipme_command::{duration, size};

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench pagein --managed
  sudo tipme bench pagein --managed --cgroup /sys/fs/cgroup/tipme --keys 200 --json pagein.json
  tipme bench pagein --without-shortage --keys 10 --every 200ms

A program with a window and a working set of its own goes on through that after each key, a part
at a time; measured is what it waits for its pages (neither running nor waiting for a CPU), beside
nothing and beside a hog that has more memory than is left. Also told are the page faults that
waited for a disk, the time from the key to the drawing, and the fewest rounds that a process of
the hog did in any ten seconds: 0 would be starvation. The first lap of a turn does not count.

Everything on the machine is slow meanwhile. It takes swap, and at most 4 GiB of memory: nothing
is measured where the kernel would have to end programs. --without-shortage tries it with a hog
that leaves memory free.

Exit codes: 0 measured, 2 could not measure.")]
pub struct Pagein {
    /// Bytes that the program goes through, 1M to 1G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub working_set: u64,
    /// Keys in which it goes once through all of them, 1 to 200
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=200))]
    pub keys_per_lap: u8,
    /// Between an answer and the next key
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub every: Duration,
    /// Keys of each arm that count, over all blocks
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=2_000))]
    pub keys: u16,
    /// Memory of the hog: bytes, or with K, M or G [default: what memory and swap hold with a quarter to spare]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub hog: Option<u64>,
    /// Processes of the hog [default: one for each GiB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(LEVEL_MAX)))]
    pub hogs: Option<u32>,
    /// What the hog does; see tipme load
    #[arg(long = "type", value_name = "TYPE", value_parser = choice(&Kind::LARGE, Kind::name, about_hog),
        default_value = Kind::Big.name())]
    pub kind: Kind,
    /// Spread the hog over so many sessions; 0 leaves it in that of the display's programs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=i64::from(LEVEL_MAX)))]
    pub sessions: u32,
    /// Let the hog leave memory free: tries everything, and disturbs nobody
    #[arg(long)]
    pub without_shortage: bool,
    /// Measure with the manager as well, in turns
    #[arg(long)]
    pub managed: bool,
    /// Measure this instead of the manager as well, in turns; may be given several times
    #[arg(long, value_name = "WHAT", value_delimiter = ',',
        value_parser = choice(&Arm::ALTERNATIVES, Arm::name, Arm::about))]
    pub against: Vec<Arm>,
    /// Turns of each arm
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub blocks: u8,
    #[command(flatten)]
    pub manager: ManagerOptions,
    /// Write the result as one JSON document
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write plots into this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

/// What a hog of a type does.
fn about_hog(kind: Kind) -> &'static str {
    match kind {
        Kind::Stream => "Takes new memory all the time, and gives back all of it after each lap",
        _ => "Goes through all of its memory again and again",
    }
}
