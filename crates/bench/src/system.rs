// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a scripted run over several applications takes, with many changes of the focus, beside nothing, a real
//! build, and a heavy synthetic load: the system test of Evans et al. (1993, table 1).
//!
//! Three terminals (an editor, a pager, a shell) and, where it is installed, a GTK editor are open on a private
//! display. The script goes round them: it clicks into one, waits until that has the focus, and types some keys, each of which it
//! lets be answered. The time that all of it takes is measured.

mod applications;
mod build;

pub use build::Work;
pub(crate) use build::{Build, run as run_build};

use crate::alone::Alone;
use crate::arms::{Arm, Background, Comparison, Turn, TurnRunner};
use crate::estimate::Estimate;
use crate::interrupt::Interrupt;
use crate::intervals::Cleanup;
use crate::load::{Achieved, Load, Speed};
use crate::progress::Progress;
use crate::session::{self, Session};
use anyhow::{Context, Result, ensure};
use applications::OpenApplications;
pub use applications::{Played, RUN_MAX};
use build::Tree;
use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::time::Duration;

/// Rounds of the script, at most.
pub const ROUNDS_MAX: usize = 1_000;

/// What runs beside the script is observed for so many times what the script takes where nothing is slow.
const OBSERVED: f64 = 1.5;

/// What runs beside the script.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    Nothing,
    /// A real job.
    Build,
    /// Many processes that compute and go through memory.
    Synthetic,
}

impl Beside {
    /// As in the results.
    pub fn name(self) -> &'static str {
        match self {
            Beside::Nothing => "nothing",
            Beside::Build => "build",
            Beside::Synthetic => "synthetic",
        }
    }
}

/// What is measured. Of the comparison, the highest level is that of the synthetic load.
#[derive(Clone, Debug)]
pub struct Options {
    pub comparison: Comparison,
    pub beside: Vec<Beside>,
    /// How often the script goes round the applications.
    pub rounds: usize,
}

/// All runs beside one thing with one arm.
#[derive(Clone, PartialEq, Debug)]
pub struct Runs {
    pub beside: Beside,
    pub arm: Arm,
    pub runs: Vec<Played>,
    /// What the synthetic load did in all of them, or how many files the build had done (its rounds).
    pub load: Option<Achieved>,
}

/// What came of it all.
pub struct Outcome {
    pub runs: Vec<Runs>,
    /// Names of the applications.
    pub applications: Vec<&'static str>,
    /// What the build was; `None` where there was none.
    pub work: Option<Work>,
}

impl Options {
    /// The turns of one block.
    fn turns(&self, block: usize) -> Vec<(Beside, Arm)> {
        let arms: Vec<Arm> =
            if self.comparison.managed { vec![Arm::Unmanaged, Arm::Managed] } else { vec![Arm::Unmanaged] };
        let mut turns: Vec<(Beside, Arm)> =
            self.beside.iter().flat_map(|beside| arms.iter().map(|arm| (*beside, *arm))).collect();
        if block % 2 == 1 {
            turns.reverse();
        }
        turns
    }

    /// How many runs of the script there are.
    pub fn runs(&self) -> usize {
        self.turns(0).len() * self.comparison.blocks
    }

    /// How long what runs beside the script is observed, at least. Where arms are compared it is longer than the script
    /// mostly takes, so that the script's own work is the same part of it: else who is done sooner, with the same
    /// work in less time, would be charged for it.
    fn observed(&self, beside: Beside) -> Duration {
        let compared = self.comparison.managed && beside != Beside::Nothing;
        if compared { applications::about(self.rounds).mul_f64(OBSERVED).min(RUN_MAX) } else { Duration::ZERO }
    }

    /// How long all of it takes; about that where nothing is slow.
    pub fn estimate(&self) -> Estimate {
        let turns = self.turns(0).into_iter().map(|(beside, arm)| {
            // The script fails where it takes longer.
            let most = RUN_MAX + applications::VISIT_MAX;
            let script = Estimate::new(applications::about(self.rounds).max(self.observed(beside)).min(most), most);
            let level = if beside == Beside::Synthetic { self.comparison.level_max() } else { 0 };
            let build = if beside == Beside::Build { Build::ESTIMATE } else { Estimate::default() };
            script + build + Turn { level, arm }.around()
        });
        let first = Estimate::new(applications::about(1), RUN_MAX + applications::VISIT_MAX);
        Session::ESTIMATE
            + applications::ESTIMATE
            + first
            + turns.fold(Estimate::default(), Estimate::add) * self.comparison.blocks
    }

    fn check(&self) -> Result<()> {
        ensure!((1..=ROUNDS_MAX).contains(&self.rounds), "choose 1 to {ROUNDS_MAX} rounds");
        ensure!(!self.beside.is_empty(), "nothing to measure beside");
        let level = self.comparison.level_max();
        ensure!(
            level > 0 || !self.beside.contains(&Beside::Synthetic),
            "the synthetic load has no process; see --load"
        );
        self.comparison.check()
    }
}

/// Plays the script in every turn. Everything that was started has ended when it returns.
pub fn run(options: &Options, interrupt: &Interrupt, progress: &mut dyn Progress) -> Result<Outcome> {
    options.check()?;
    session::require(&["Xvfb", "openbox", "xterm", "vi", "less", "sh"])?;
    let mut cleanup = Cleanup::start(&options.comparison.launcher)?;
    let builds = options.beside.contains(&Beside::Build);
    let tree = builds.then(|| Tree::make(&mut cleanup)).transpose()?;
    let runner = TurnRunner::begin(&options.comparison, interrupt, progress)?;
    let session = Session::start(session::Options::default())?;
    let mut applications = OpenApplications::set(&session, interrupt)?;
    progress.line("once round the applications, which does not count: they come from the disk");
    applications.play(1, interrupt)?;
    let mut all: Vec<Runs> = Vec::new();
    for block in 0..options.comparison.blocks {
        for (beside, arm) in options.turns(block) {
            let _alone = Alone::wait_in_turn(interrupt, progress)?;
            progress.line(&format!(
                "block {} of {}: beside {}, {}",
                block + 1,
                options.comparison.blocks,
                beside.name(),
                arm.name()
            ));
            let start = |speed| background(options, beside, tree.as_ref(), speed);
            let measured = runner.turn_beside(arm, &session, start, || {
                let played = applications.play(options.rounds, interrupt)?;
                interrupt.sleep(options.observed(beside).saturating_sub(Duration::from_nanos(played.time.0)))?;
                Ok(played)
            })?;
            take(&mut all, beside, arm, measured.value, measured.load);
        }
    }
    all.sort_by_key(|runs| (runs.arm, runs.beside));
    Ok(Outcome { runs: all, applications: applications.names(), work: tree.as_ref().map(Tree::work) })
}

fn background(options: &Options, beside: Beside, tree: Option<&Tree>, speed: Speed) -> Result<Option<Background>> {
    let comparison = &options.comparison;
    match beside {
        Beside::Nothing => Ok(None),
        Beside::Build => {
            let tree = tree.context("there is nothing to build")?;
            let build = Build::start(tree, comparison.sessions > 0, &comparison.launcher)?;
            Ok(Some(Background::Build(build)))
        }
        Beside::Synthetic => {
            let turn = Turn { level: comparison.level_max(), arm: Arm::Unmanaged };
            Ok(Some(Background::Load(Load::start(&comparison.load(turn, RUN_MAX, speed))?)))
        }
    }
}

fn take(all: &mut Vec<Runs>, beside: Beside, arm: Arm, played: Played, load: Option<Achieved>) {
    match all.iter_mut().find(|runs| runs.beside == beside && runs.arm == arm) {
        Some(runs) => {
            runs.runs.push(played);
            runs.load = runs.load.zip(load).map(|(before, more)| before.and(more));
        }
        None => all.push(Runs { beside, arm, runs: vec![played], load }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::ManagerProgram;
    use crate::load::Kind;
    use crate::worker::WorkerLauncher;

    fn options(beside: &[Beside], level: u32) -> Options {
        let comparison = Comparison {
            levels: vec![level],
            managed: true,
            against: Vec::new(),
            blocks: 2,
            kind: Kind::Big,
            pages: Kind::Big.pages(),
            memory: 64 << 20,
            sessions: 1,
            manager: ManagerProgram::new("tipme".into()),
            launcher: WorkerLauncher(Vec::new()),
        };
        Options { comparison, beside: beside.to_vec(), rounds: 1 }
    }

    #[test]
    fn each_second_block_goes_backwards() {
        let options = options(&[Beside::Nothing, Beside::Build], 0);
        let mut backwards = options.turns(1);
        backwards.reverse();
        assert_eq!((options.turns(0), options.runs()), (backwards, 8));
    }

    #[test]
    fn only_what_is_run_is_asked_for_and_takes_time() {
        assert!(options(&[Beside::Nothing], 0).check().is_ok());
        assert!(options(&[Beside::Synthetic], 0).check().is_err() && options(&[], 0).check().is_err());
        let about = |beside| options(beside, 4).estimate().about;
        assert!(about(&[Beside::Nothing]) < about(&[Beside::Synthetic]));
        assert!(about(&[Beside::Nothing]) < about(&[Beside::Build]));
        let alone = |rounds| Options { rounds, ..options(&[Beside::Build], 0) }.estimate();
        assert!((1..=ROUNDS_MAX).map(alone).all(|estimate| estimate.about <= estimate.most));
    }

    #[test]
    fn what_is_compared_is_observed_for_longer_than_the_script_takes() {
        let mut options = options(&[Beside::Nothing, Beside::Build], 0);
        assert!(options.observed(Beside::Build) > applications::about(options.rounds));
        assert_eq!(options.observed(Beside::Nothing), Duration::ZERO);
        options.comparison.managed = false;
        assert_eq!(options.observed(Beside::Build), Duration::ZERO);
    }
}
