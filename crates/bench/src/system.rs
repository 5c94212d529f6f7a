// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long a scripted run over several applications takes, with many changes of the focus, beside nothing, a real
//! build, and a heavy synthetic load: the system test of Evans et al. (1993, table 1).
//!
//! Three terminals (an editor, a pager, a shell) and, where it is installed, a GTK editor are open on a private
//! display. The script goes round them: it clicks into one, waits until that has the focus, and types some keys, each of which it
//! lets be answered. The time that all of it takes is measured.

mod build;
mod desk;

pub use build::Work;
pub(crate) use build::{Build, run as run_build};

use crate::arms::{Arm, Background, Comparison, Contest, Turn, alone};
use crate::interrupt::Interrupt;
use crate::intervals::{Sweeper, Watch};
use crate::load::{Achieved, Load};
use crate::session::{self, Session};
use anyhow::{Result, ensure};
use build::Tree;
use desk::Desk;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tipme_record::Nanos;

/// Rounds of the script, at most.
pub const ROUNDS_MAX: usize = 1_000;
/// The longest that one run of the script may take.
pub const RUN_MAX: Duration = Duration::from_secs(900);

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

/// Each of them, as in the paper's table.
pub const BESIDE: [Beside; 3] = [Beside::Nothing, Beside::Build, Beside::Synthetic];

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

/// One run of the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Played {
    pub begun: Nanos,
    pub time: Nanos,
    /// Changes of the focus.
    pub changes: usize,
    pub keys: usize,
    /// Keys that were not answered in time.
    pub unanswered: usize,
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
    /// What the build was.
    pub work: Work,
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

    /// How many runs there are, and about how long the script takes on a machine that is at rest.
    pub fn plan(&self) -> (usize, Duration) {
        (self.turns(0).len() * self.comparison.blocks, desk::about(self.rounds))
    }

    fn check(&self) -> Result<()> {
        ensure!((1..=ROUNDS_MAX).contains(&self.rounds), "choose 1 to {ROUNDS_MAX} rounds");
        ensure!(!self.beside.is_empty(), "nothing to measure beside");
        self.comparison.check()
    }
}

/// Plays the script in every turn. Everything that was started has ended when it returns.
pub fn run(options: &Options, interrupt: &Interrupt, watch: &mut dyn Watch) -> Result<Outcome> {
    options.check()?;
    session::require(&["Xvfb", "openbox", "xterm", "vi", "less", "sh"])?;
    let mut sweeper = Sweeper::start(&options.comparison.helper)?;
    let tree = Tree::make(&mut sweeper)?;
    let contest = Contest::begin(&options.comparison, interrupt)?;
    let session = Session::start(session::Options::default())?;
    let mut desk = Desk::set(&session, interrupt)?;
    let mut all: Vec<Runs> = Vec::new();
    for block in 0..options.comparison.blocks {
        for (beside, arm) in options.turns(block) {
            let _alone = alone(interrupt, watch)?;
            watch.line(&format!(
                "block {} of {}: beside {}, {}",
                block + 1,
                options.comparison.blocks,
                beside.name(),
                arm.name()
            ));
            let start = |speed| background(options, beside, &tree, speed);
            let measured = contest.turn_beside(arm, &session, start, || desk.play(options.rounds, interrupt))?;
            take(&mut all, beside, arm, measured.value, measured.load);
        }
    }
    all.sort_by_key(|runs| (runs.arm, runs.beside));
    Ok(Outcome { runs: all, applications: desk.names(), work: tree.work() })
}

fn background(options: &Options, beside: Beside, tree: &Tree, speed: crate::load::Speed) -> Result<Option<Background>> {
    let comparison = &options.comparison;
    match beside {
        Beside::Nothing => Ok(None),
        Beside::Build => {
            let build = Build::start(tree, comparison.sessions > 0, &comparison.helper)?;
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
