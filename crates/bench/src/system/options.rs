// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench system`, its duration, and its requirements.

use super::applications::{self, RUN_MAX};
use crate::arms::{Arm, ArmComparison, ArmTurn, ManagerOptions, SESSION_USUAL, usual_words};
use crate::driver::Programs;
use crate::load::{LEVEL_MAX, LoadKind, default_memory};
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use tipme_command::size;

/// Observation time of the job beside the script, as a multiple of the script's duration on a fast
/// machine.
const OBSERVED: f64 = 1.5;

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench system --managed
  sudo tipme bench system --beside nothing,build --rounds 4 --managed --json system.json

A script cycles through terminals with vi, less and a shell and, if installed, mousepad, on a
private display: it clicks into a window, waits for the focus, types, and waits for the answer to
each key. It measures the time of the whole script: alone, beside a build (make with cc on
generated files, repeatedly; without a compiler, xargs with gzip), and beside a heavy synthetic
load (tipme load big). The paper's table 1 is printed alongside.

Exit codes: 0 measured, 2 nothing could be measured.")]
pub struct System {
    /// Loads to run beside the script
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        default_value = "nothing,build,synthetic",
        value_enum
    )]
    pub beside: Vec<Beside>,
    /// Number of rounds of the script through the applications
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub rounds: u16,
    /// Runnable processes of the synthetic load, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(LEVEL_MAX)))]
    pub load: u32,
    /// Memory of the synthetic load: bytes, or with K, M or G [default: that of tipme load]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Spread the synthetic load over this many sessions; 0 leaves the load and the build in the
    /// session of the display's programs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=i64::from(LEVEL_MAX)))]
    pub sessions: u32,
    /// Also measure with the manager, in alternating turns
    #[arg(long)]
    pub managed: bool,
    /// Runs per load and arm
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub blocks: u8,
    #[command(flatten)]
    pub manager: ManagerOptions,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Job beside the script.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    /// Nothing
    Nothing,
    /// A real build
    Build,
    /// A heavy synthetic load
    Synthetic,
}

impl System {
    /// Returns each job once, in order.
    fn beside(&self) -> Vec<Beside> {
        let mut beside = self.beside.clone();
        beside.sort_unstable();
        beside.dedup();
        beside
    }

    /// Returns the comparison, with the synthetic load.
    pub(super) fn comparison(&self, programs: &Programs) -> ArmComparison {
        let loads = self.beside.contains(&Beside::Synthetic);
        ArmComparison {
            levels: vec![if loads { self.load } else { 0 }],
            managed: self.managed,
            against: Vec::new(),
            blocks: self.blocks.into(),
            kind: LoadKind::Big,
            pages: LoadKind::Big.pages(),
            memory: self.memory.unwrap_or_else(default_memory),
            sessions: self.sessions,
            units: false,
            manager: self.manager.program(programs),
            launcher: programs.launcher.clone(),
        }
    }

    /// Returns the turns of one block.
    pub(super) fn turns(&self, block: usize) -> Vec<(Beside, Arm)> {
        let arms =
            if self.managed { &[Arm::Unmanaged, Arm::Managed][..] } else { &[Arm::Unmanaged] };
        let beside = self.beside().into_iter();
        let turns = beside.flat_map(|beside| arms.iter().map(move |arm| (beside, *arm)));
        let mut turns: Vec<(Beside, Arm)> = turns.collect();
        if block % 2 == 1 {
            turns.reverse();
        }
        turns
    }

    /// Returns the number of runs of the script.
    fn runs(&self) -> usize {
        self.turns(0).len() * usize::from(self.blocks)
    }

    /// Minimum observation time of the job beside the script. If arms are compared, it is longer
    /// than the script usually takes, so that the script's own work is the same share of it.
    /// Otherwise an arm that completes the same work sooner would be charged for that.
    pub(super) fn observed(&self, beside: Beside) -> Duration {
        let compared = self.managed && beside != Beside::Nothing;
        if compared {
            applications::about(self.rounds).mul_f64(OBSERVED).min(RUN_MAX)
        } else {
            Duration::ZERO
        }
    }

    /// Describes the expected duration, for output before the start.
    pub(super) fn plan(&self) -> String {
        format!("{} runs; {}", self.runs(), usual_words(self.usual()))
    }

    /// Usual duration of everything, on a fast machine.
    fn usual(&self) -> Duration {
        let turns = self.turns(0).into_iter().map(|(beside, arm)| {
            let level = if beside == Beside::Synthetic { self.load } else { 0 };
            applications::about(self.rounds).max(self.observed(beside))
                + ArmTurn { level, arm }.overhead()
        });
        let first = SESSION_USUAL + applications::OPEN_USUAL + applications::about(1);
        first + turns.sum::<Duration>() * u32::from(self.blocks)
    }

    pub(super) fn check(&self, comparison: &ArmComparison) -> Result<()> {
        ensure!(!self.beside.is_empty(), "nothing to measure beside; choose a job with --beside");
        comparison.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parsed;

    #[test]
    fn each_second_block_goes_backwards() {
        let options: System = parsed("--beside nothing,build --managed --blocks 2");
        let mut backwards = options.turns(1);
        backwards.reverse();
        assert_eq!((options.turns(0), options.runs()), (backwards, 8));
    }

    #[test]
    fn only_what_is_run_takes_time() {
        let [nothing, synthetic, build] = ["nothing", "synthetic", "build"]
            .map(|beside| parsed::<System>(&format!("--beside {beside} --managed")).usual());
        assert!(nothing < synthetic && nothing < build);
    }

    #[test]
    fn compared_jobs_are_observed_longer_than_the_script_takes() {
        let options: System = parsed("--beside nothing,build --managed");
        assert!(options.observed(Beside::Build) > applications::about(options.rounds));
        assert_eq!(options.observed(Beside::Nothing), Duration::ZERO);
        assert_eq!(parsed::<System>("--beside build").observed(Beside::Build), Duration::ZERO);
    }
}
