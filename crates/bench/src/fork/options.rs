// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench fork`.

use crate::arms::ManagerOptions;
use crate::choice::{ResultFiles, name, one_or_all};
use clap::{Args, ValueEnum};
use std::time::Duration;
use tipme_command::duration;

#[derive(Args)]
#[command(after_help = "Examples:
  tipme bench fork
  sudo tipme bench fork --load wide --managed
  tipme bench fork --load fork --every 500ms -d 60s --json fork.json --svg plots

A process sleeps 50 ms, computes for 10 ms of CPU time, and notes the time, alone and beside a
load on the same CPU. Crowd and wide want the CPU with as many processes, old ones and newborn
ones: what differs between them is due to their age. It needs no right; without root, loads that
take one are left out, and the longest intervals are not explained. All processes end with it.

With --managed there is a private display, whose window in focus names the measuring process as
one that works for it (_TIPME_PROCESS_SET). The back end autogroup weighs sessions below this
process only: start it as setsid -w tipme bench fork --managed --backend autogroup, if that is to
be measured.

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
    /// Measure under each load once more with the manager, to which the measuring process belongs to a window in focus
    #[arg(long)]
    pub managed: bool,
    /// The CPU of all processes [default: the last one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
    /// Do not record meanwhile, and so do not explain the longest intervals
    #[arg(long)]
    pub no_trace: bool,
    #[command(flatten)]
    pub manager: ManagerOptions,
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
    /// Sixteen processes that compute for ever: as many as in a wide storm, but old
    Crowd,
    /// A wide storm: sixteen short lives at a time
    Wide,
    /// A wide storm, each process of it in a session of its own
    Sessions,
    /// A wide storm in a control group of eight times the usual weight, as a container that asks for eight CPUs has it
    Container,
    /// A wide storm at nice -10
    Nice,
    /// A storm of four real-time processes at a time
    Realtime,
}

/// A load, with or without the manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ForkArm {
    pub load: ForkLoad,
    pub managed: bool,
}

impl ForkArm {
    /// Name in tables and results.
    pub(super) fn name(self) -> String {
        name(&self.load) + if self.managed { ", managed" } else { "" }
    }
}

impl ForkLoad {
    /// Returns `true` if the load needs root.
    pub(super) fn takes_root(self) -> bool {
        matches!(self, ForkLoad::Container | ForkLoad::Nice | ForkLoad::Realtime)
    }
}

impl Fork {
    /// Returns the loads in order. The calm comes first, as the baseline for the others.
    pub(super) fn loads(&self) -> Vec<ForkLoad> {
        let others = self.load.iter().filter(|load| **load != ForkLoad::None);
        std::iter::once(ForkLoad::None).chain(others.copied()).collect()
    }

    /// Returns each load, also with the manager if requested; loads that need root only with
    /// `root`.
    pub(super) fn arms(&self, root: bool) -> Vec<ForkArm> {
        let loads = self.loads().into_iter().filter(|load| root || !load.takes_root());
        loads.flat_map(|load| self.arms_of(load)).collect()
    }

    fn arms_of(&self, load: ForkLoad) -> impl Iterator<Item = ForkArm> {
        let managed = (self.managed && load != ForkLoad::None).then_some(ForkArm { load, managed: true });
        std::iter::once(ForkArm { load, managed: false }).chain(managed)
    }
}
