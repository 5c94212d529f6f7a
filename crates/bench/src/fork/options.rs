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

A process sleeps 50 ms, computes for 10 ms of CPU time, and records the time, alone and beside a
load on the same CPU. The loads crowd and wide have the same number of processes, long-lived in
crowd and newly forked in wide. Root is not needed; without it, loads that need root are skipped,
and the longest intervals are not explained. All processes end with the benchmark.

--managed starts a private display, whose focused window declares the measuring process as part
of its set (_TIPME_PROCESS_SET). The backend autogroup affects only sessions below this process;
to measure it, run setsid -w tipme bench fork --managed --backend autogroup.

Exit codes: 0 measured, 1 an interval was more than 50 ms late, 2 nothing could be measured.")]
pub struct Fork {
    /// Loads on the same CPU, each compared with none
    #[arg(long, value_name = "LOAD", default_value = "all",
        value_parser = one_or_all(ForkLoad::value_variants(), ForkLoad::to_possible_value))]
    pub load: &'static [ForkLoad],
    /// Maximum number of intervals per load; the paper used 10000
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
    /// Maximum time per load
    #[arg(short, long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub duration: Duration,
    /// Time between two forks of the load "fork"
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub every: Duration,
    /// Measure each load again under the manager, with the measuring process in the focused
    /// window's set
    #[arg(long)]
    pub managed: bool,
    /// CPU on which all processes run [default: the last one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
    /// Do not record, so the longest intervals are not explained
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
    /// One process that computes forever
    Hog,
    /// A CPU-bound process that is killed and forked again and again, as in the paper
    Fork,
    /// Four short-lived processes at a time, as in a build
    Storm,
    /// Sixteen long-lived computing processes, as many as in a wide storm
    Crowd,
    /// A wide storm: sixteen short-lived processes at a time
    Wide,
    /// A wide storm, each process in its own session
    Sessions,
    /// A wide storm in a control group with eight times the default weight, as a container for
    /// eight CPUs
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
        let managed =
            (self.managed && load != ForkLoad::None).then_some(ForkArm { load, managed: true });
        std::iter::once(ForkArm { load, managed: false }).chain(managed)
    }
}
