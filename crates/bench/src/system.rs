// SPDX-License-Identifier: MIT OR Apache-2.0
//! Duration of a scripted run over several applications with many changes of the focus, beside
//! nothing, a real build, and a heavy synthetic load: the system test of Evans et al. (1993, table
//! 1).
//!
//! Three terminals (an editor, a pager, a shell) and, if installed, a GTK editor are open on a
//! private display. The script visits them in turn: it clicks into one, waits until that has the
//! focus, and types some keys, each after the answer to the previous one. The result is the total
//! time.

mod applications;
mod build;
mod figures;
mod options;
mod table;

pub(crate) use build::{Build, Tree, run as run_build};
pub use figures::{PaperRow, SystemFigures, SystemRow};
pub use options::{Beside, System};

use crate::arms::{Arm, ArmComparison, ArmTurn, Block, one_turn, run, together};
use crate::choice::name;
use crate::driver::{BackgroundJob, BenchDriver, BenchStage, TurnSetup};
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::load::Achieved;
use crate::screen::Place;
use crate::session::SessionOptions;
use anyhow::Result;
use applications::{OpenApplications, PlayedRun, RUN_MAX};
use figures::Runs;
use std::path::Path;
use std::time::Duration;
use tipme_measure::Run;

/// Programs required on a display.
const PROGRAMS: [&str; 6] = ["Xvfb", "openbox", "xterm", "vi", "less", "sh"];

impl Experiment for System {
    const NAME: &'static str = "system";
    const CLASSES: &'static [&'static str] = &[applications::CLASS];
    type Figures = SystemFigures;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>> {
        let comparison = self.comparison(&driver.programs());
        driver.line(&self.plan());
        self.check(&comparison)?;
        let mut stage = driver.stage(&Place::X11, SessionOptions::default(), &PROGRAMS)?;
        let builds = self.beside.contains(&Beside::Build);
        let build = builds.then(|| stage.prepare_build()).transpose()?;
        let applications = OpenApplications::open(&mut *stage)?;
        stage.line("once round the applications, which does not count: they come from the disk");
        applications.play(1, &mut *stage)?;
        let runs = self.all_runs(&comparison, &applications, &mut *stage)?;
        let figures = SystemFigures::new(self, &comparison, applications.names(), build, &runs);
        Ok(MeasuredRepeats { runs: runs.into_iter().flat_map(repeats).collect(), figures })
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        (self.json.as_deref(), None)
    }
}

impl System {
    /// Plays the script in every turn.
    fn all_runs(
        &self,
        comparison: &ArmComparison,
        applications: &OpenApplications,
        stage: &mut dyn BenchStage,
    ) -> Result<Vec<Runs>> {
        let mut all = Vec::new();
        for block in 0..comparison.blocks {
            for (beside, arm) in self.turns(block) {
                let turn = format!("beside {}, {}", name(&beside), name(&arm));
                stage.line(&format!("block {} of {}: {turn}", block + 1, comparison.blocks));
                let job = job(comparison, beside, stage);
                let setup = TurnSetup { arm, manager: &comparison.manager, job };
                let (played, load) = one_turn(stage, &setup, &mut |stage| {
                    let played = applications.play(self.rounds, stage)?;
                    let took = played.events.latencies_ns.iter().sum();
                    stage
                        .sleep(self.observed(beside).saturating_sub(Duration::from_nanos(took)))?;
                    Ok(played)
                })?;
                take(&mut all, (beside, arm), played, load);
            }
        }
        all.sort_by_key(|runs| (runs.arm, runs.beside));
        Ok(all)
    }
}

fn job(
    comparison: &ArmComparison,
    beside: Beside,
    stage: &dyn BenchStage,
) -> Option<BackgroundJob> {
    let turn = ArmTurn { level: comparison.level_max(), arm: Arm::Unmanaged };
    match beside {
        Beside::Nothing => None,
        Beside::Build => Some(BackgroundJob::Build { own_session: comparison.sessions > 0 }),
        Beside::Synthetic => {
            Some(BackgroundJob::Load(comparison.load(turn, RUN_MAX, stage.speed())))
        }
    }
}

fn take(
    all: &mut Vec<Runs>,
    (beside, arm): (Beside, Arm),
    played: Block<PlayedRun>,
    load: Option<Achieved>,
) {
    match all.iter_mut().find(|runs| (runs.beside, runs.arm) == (beside, arm)) {
        Some(runs) => {
            runs.blocks.push(played);
            runs.load = together(runs.load, load);
        }
        None => all.push(Runs { beside, arm, blocks: vec![played], load }),
    }
}

/// Returns each run of the script as a repeat, which lasts as long as its one event.
fn repeats(runs: Runs) -> impl Iterator<Item = Run> {
    let name = runs.name();
    runs.blocks.into_iter().map(move |block| run(name.clone(), block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{BenchFigures, parsed};
    use crate::fake::{FakeDriver, document};

    fn measured(words: &str, driver: &mut FakeDriver) -> Result<MeasuredRepeats<SystemFigures>> {
        parsed::<System>(words).run(driver)
    }

    #[test]
    fn each_run_takes_its_keys_and_changes_of_the_focus() {
        let mut driver = FakeDriver::answering(|turn, _| {
            Some(Duration::from_millis(if turn.arm == Some(Arm::Managed) { 10 } else { 100 }))
        });
        let words =
            "--beside nothing,synthetic --load 4 --memory 64M --rounds 2 --managed --blocks 2";
        let measured = measured(words, &mut driver).expect("it is measured");
        let [slow, fast] = [Arm::Unmanaged, Arm::Managed].map(|arm| {
            let mut rows = measured.figures.rows.iter();
            let row = rows.find(|row| (row.beside, row.arm) == (Beside::Nothing, arm));
            row.map(|row| (row.median_s, row.n)).expect("it was measured")
        });
        let keys = measured.figures.keys as f64;
        assert!(measured.figures.changes >= 6 && keys > 50.0, "{:?}", measured.figures);
        assert!(
            (slow.0 - fast.0 - keys * 0.09).abs() < 0.1 && (slow.1, fast.1) == (2, 2),
            "{slow:?} {fast:?}"
        );
        let turns = driver.turns();
        let forth = ["unloaded", "unloaded, managed", "load 4, unmanaged", "load 4, managed"];
        assert_eq!(
            turns,
            [&forth[..], &[forth[3], forth[2], forth[1], forth[0]]].concat(),
            "forth and back"
        );
        assert!(SystemFigures::text(&document(measured)).contains("paper (1993), managed"));
    }

    #[test]
    fn unanswered_keys_are_shown_and_take_their_time() {
        let mut driver =
            FakeDriver::answering(|_, key| (key != 3).then_some(Duration::from_millis(1)));
        let measured = measured("--beside nothing --rounds 1 --blocks 1", &mut driver)
            .expect("it is measured");
        let row = &measured.figures.rows[0];
        assert!(row.unanswered == 1 && row.median_s > 20.0, "{row:?}");
        assert!(SystemFigures::text(&document(measured)).contains("1 keys not answered in time"));
    }

    #[test]
    fn a_run_that_failed_is_no_fast_run() {
        let mut driver = FakeDriver::answering(|_, _| Some(Duration::from_millis(1)));
        driver.fail_in_turn(2, "the load ended");
        let failed = measured("--beside nothing --rounds 1 --blocks 3", &mut driver);
        assert!(failed.is_err_and(|error| error.to_string().contains("the load ended")));
    }

    #[test]
    fn what_is_compared_is_observed_for_as_long_in_each_turn() {
        let mut driver = FakeDriver::answering(|_, _| Some(Duration::from_millis(1)));
        measured(
            "--beside synthetic --load 4 --memory 64M --rounds 8 --managed --blocks 1",
            &mut driver,
        )
        .expect("it is measured");
        let times = driver.turn_times();
        assert_eq!(times.len(), 2);
        assert!(
            times.iter().all(|time| *time >= Duration::from_secs(20)) && times[0] == times[1],
            "{times:?}"
        );
    }
}
