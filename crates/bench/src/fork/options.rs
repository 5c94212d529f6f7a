// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench fork`.

use crate::choice::{ResultFiles, one_or_all};
use clap::{Args, ValueEnum};
use std::time::Duration;
use tipme_command::duration;

#[derive(Args)]
#[command(after_help = "Examples:
  tipme bench fork
  tipme bench fork --load fork --every 500ms -d 60s --json fork.json --svg plots

A process sleeps 50 ms, computes for 10 ms of CPU time, and notes the time, alone and beside a
load on the same CPU. It needs no right; with root, the longest intervals are explained. All
processes end with it.

Exit codes: 0 fine, 1 an interval was more than 50 ms late, 2 could not measure.")]
pub struct Fork {
    /// What else that CPU has to do; each is held against none
    #[arg(long, value_name = "LOAD", default_value = "all",
        value_parser = one_or_all(ForkLoad::value_variants(), ForkLoad::to_possible_value))]
    pub load: &'static [ForkLoad],
    /// Intervals for each load, at most; the paper took 10000
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
    /// How long to measure each load, at most
    #[arg(short, long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub duration: Duration,
    /// Between two forks of the load "fork"
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub every: Duration,
    /// The CPU of all processes [default: the last one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
    /// Do not record meanwhile, and so do not explain the longest intervals
    #[arg(long)]
    pub no_trace: bool,
    #[command(flatten)]
    pub files: ResultFiles,
}

/// What else the CPU has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ForkLoad {
    /// Nothing
    None,
    /// One process that computes for ever
    Hog,
    /// A process that computes for ever, ended and forked again and again, as in the paper
    Fork,
    /// Four short lives at a time, as in a build
    Storm,
}

impl Fork {
    /// The loads, one after the other. The calm comes first, to hold the others against.
    pub(super) fn loads(&self) -> Vec<ForkLoad> {
        let others = self.load.iter().filter(|load| **load != ForkLoad::None);
        std::iter::once(ForkLoad::None).chain(others.copied()).collect()
    }
}
