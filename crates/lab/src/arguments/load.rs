// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme load`, and what the benchmarks beside a load have in common with it.

use super::choice::choice;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tipme_bench::load::{DEMAND_MAX, Kind, LEVEL_MAX};
use tipme_command::{duration, size};

#[derive(Args)]
#[command(after_help = "Examples:
  tipme load cpu
  tipme load big --level 8 --memory 512M -d 5min
  tipme load stream --level 4 --folder /var/tmp
  tipme load cpu --demand 50 --reuse 0.8 --json

A process of the load works in rounds of about a millisecond of CPU time, in each of which it
touches DEMAND different pages; REUSE is the share of them that the round before touched too. The
four types are those of Evans et al. (1993): cpu (2 pages per ms, reuse 0.95), forks (4, 0.1, in
children that live for 5 to 65 rounds), big (200, 0.95), stream (200, 0).

The processes end with tipme load, with Ctrl-C, which prints what was achieved until then, and a
minute after their time at the latest; they are the first to go where memory runs out.

Exit codes: 0 it ran, 2 it could not.")]
pub struct Load {
    /// What the processes do
    #[arg(value_name = "TYPE", value_parser = choice(&Kind::ALL, Kind::name, Kind::about))]
    pub kind: Kind,
    /// Processes that are runnable at any time: the load average aimed at, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(LEVEL_MAX)))]
    pub level: u32,
    /// How long it runs
    #[arg(short, long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub duration: Duration,
    /// Different pages that a process touches in a millisecond of CPU time [default: as is usual for the type]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(1..=i64::from(DEMAND_MAX)))]
    pub demand: Option<u32>,
    /// The share of them that the millisecond before touched too, 0 to 1 [default: as is usual for the type]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub reuse: Option<f64>,
    /// Memory of big and stream together: bytes, or with K, M or G [default: a quarter of what is available, at most 1G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Spread the processes over so many sessions, as over terminals; 0 leaves them in the caller's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=i64::from(LEVEL_MAX)))]
    pub sessions: u32,
    /// Let stream write files in this folder, one for each process, which nobody else sees [default: memory]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// One JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_bounds() {
        assert_eq!(share("0.5"), Ok(0.5));
        assert!(share("1.1").is_err() && share("NaN").is_err() && share("half").is_err());
    }
}
