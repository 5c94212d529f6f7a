// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arms of a comparison beside a load: nothing done, the manager, and what others do instead.
//!
//! They are measured in turns in one run, since a machine is not the same from one minute to the next: in each block
//! every arm has its turn, and each second block goes through them backwards.

mod background;
mod manager;
mod sessions;
mod weights;

pub use crate::estimate::Estimate;
pub(crate) use background::Background;
pub use manager::{Manager, ManagerProgram};
pub use sessions::autogroup_enabled;

use crate::alone::Alone;
use crate::interrupt::Interrupt;
use crate::load::{Achieved, Kind, Load, Options as LoadOptions, Pages, RoundsSampler, Speed};
use crate::pinned::Pinned;
use crate::priority::Priority;
use crate::progress::Progress;
use crate::session::Session;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, ensure};
use rustix::process::getpriority_process;
use serde::{Deserialize, Serialize};
use std::ops::Add;
use std::time::Duration;
use weights::Weights;

/// Turns of each arm, at least and at most.
pub const BLOCKS_MIN: usize = 1;
pub const BLOCKS_MAX: usize = 50;
/// A load runs for so long before anything is measured beside it.
const SETTLING: Duration = Duration::from_secs(1);
/// What `nice` without a number would not do: as far back as niceness goes.
const NICE_MOST: i32 = 19;
/// The strength of a manager that does nothing.
const STRENGTH_NONE: &str = "off";

/// What is done for the user beside a load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// Nothing.
    Unmanaged,
    /// `tipme manage` runs.
    Managed,
    /// The load is started with `nice -n 19`.
    Nice19,
    /// The load is in one session of its own, and the kernel shares out by session.
    Autogroup,
    /// The focused program's control group has a larger `cpu.weight`, and nothing else is changed.
    Weight,
}

impl Arm {
    /// As in the results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Arm::Unmanaged => "unmanaged",
            Arm::Managed => "managed",
            Arm::Nice19 => "nice19",
            Arm::Autogroup => "autogroup",
            Arm::Weight => "weight",
        }
    }

    /// Why it cannot be measured on this machine; `None` where it can.
    pub fn lacks(self) -> Option<String> {
        match self {
            Arm::Weight => weights::lacks(),
            Arm::Nice19 => lacks_niceness(getpriority_process(None).unwrap_or_default()),
            Arm::Autogroup if !autogroup_enabled() => Some(
                "the kernel does not share out by session; try: sysctl kernel.sched_autogroup_enabled=1".to_owned(),
            ),
            _ => None,
        }
    }
}

/// Why a load cannot be put behind a benchmark of such niceness.
fn lacks_niceness(own: i32) -> Option<String> {
    (own >= NICE_MOST).then(|| format!("the benchmark itself runs at niceness {own}; start it without nice"))
}

/// One turn: an arm beside a load of some level, 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Turn {
    pub level: u32,
    pub arm: Arm,
}

impl Turn {
    /// Nothing runs beside, and nothing is done.
    pub const UNLOADED: Turn = Turn { level: 0, arm: Arm::Unmanaged };

    /// What it takes beside measuring.
    pub(crate) fn around(self) -> Estimate {
        let managed = (self.arm == Arm::Managed).then_some(Manager::ESTIMATE);
        let loaded = (self.level > 0).then_some(Load::ESTIMATE);
        managed.into_iter().chain(loaded).fold(Estimate::new(SETTLING, SETTLING), Estimate::add)
    }

    /// In words.
    pub fn name(self) -> String {
        match self {
            Turn::UNLOADED => "unloaded".to_owned(),
            Turn { level: 0, arm } => format!("unloaded, {}", arm.name()),
            Turn { level, arm } => format!("load {level}, {}", arm.name()),
        }
    }
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Levels of the load; 0 is always among what is measured.
    pub levels: Vec<u32>,
    pub managed: bool,
    /// Alternatives to the manager; those that this machine lacks are left out.
    pub against: Vec<Arm>,
    pub blocks: usize,
    pub kind: Kind,
    pub pages: Pages,
    /// Memory of the load at its highest level; lower ones have less in proportion.
    pub memory: u64,
    /// Sessions over which the load is spread.
    pub sessions: u32,
    pub manager: ManagerProgram,
    pub launcher: WorkerLauncher,
}

impl Comparison {
    /// Fails with what cannot be compared.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.levels.is_empty(), "no load is given");
        ensure!((BLOCKS_MIN..=BLOCKS_MAX).contains(&self.blocks), "choose {BLOCKS_MIN} to {BLOCKS_MAX} blocks");
        let most = self.level_max();
        let options = |level| self.load(Turn { level, arm: Arm::Unmanaged }, Duration::ZERO, Speed::NONE);
        if most > 0 {
            options(most).check()?;
        }
        self.check_arms()
    }

    /// Fails where an arm does nothing that the unmanaged one does not.
    fn check_arms(&self) -> Result<()> {
        let idle = self.managed && self.manager.strength.as_deref() == Some(STRENGTH_NONE);
        ensure!(!idle, "a manager of strength \"{STRENGTH_NONE}\" does nothing; choose another --strength");
        for arm in &self.against {
            let name = arm.name();
            ensure!(
                self.level_max() > 0,
                "{name} does something to a load only, and there is none; choose one with --load"
            );
            ensure!(
                self.levels.iter().any(|level| self.differs(*arm, *level)),
                "{name} puts the load into one session, and it is in one already: it would be the unmanaged arm again; \
                 choose --sessions 0 or more than one, and more than one process"
            );
        }
        Ok(())
    }

    /// Whether an arm does anything beside such a load.
    fn differs(&self, arm: Arm, level: u32) -> bool {
        match arm {
            Arm::Unmanaged | Arm::Managed => true,
            Arm::Autogroup => level > 0 && self.sessions.min(level) != 1,
            Arm::Nice19 | Arm::Weight => level > 0,
        }
    }

    /// How long all turns take, each of which measures for so long.
    pub fn estimate(&self, measured: Estimate) -> Estimate {
        let turns = self.turns(0).into_iter().map(|turn| measured + turn.around());
        Session::ESTIMATE + turns.fold(Estimate::default(), Estimate::add) * self.blocks
    }

    /// The highest level.
    pub fn level_max(&self) -> u32 {
        self.levels.iter().copied().max().unwrap_or_default()
    }

    /// Arms beside a load, in order.
    pub fn arms(&self) -> Vec<Arm> {
        let managed = self.managed.then_some(Arm::Managed);
        let mut arms = vec![Arm::Unmanaged];
        arms.extend(managed.into_iter().chain(self.against.iter().copied()).filter(|arm| arm.lacks().is_none()));
        arms.sort_unstable();
        arms.dedup();
        arms
    }

    /// The turns of one block: those that differ. Alternatives to the manager act on the load only.
    pub fn turns(&self, block: usize) -> Vec<Turn> {
        let arms = self.arms();
        let mut turns = vec![Turn::UNLOADED];
        for level in &self.levels {
            let fits = |arm: &&Arm| self.differs(**arm, *level);
            turns.extend(arms.iter().filter(fits).map(|arm| Turn { level: *level, arm: *arm }));
        }
        turns.sort_unstable();
        turns.dedup();
        if block % 2 == 1 {
            turns.reverse();
        }
        turns
    }

    /// The load of a turn.
    pub(crate) fn load(&self, turn: Turn, time: Duration, speed: Speed) -> LoadOptions {
        let nice = if turn.arm == Arm::Nice19 { NICE_MOST } else { 0 };
        let sessions = if turn.arm == Arm::Autogroup { 1 } else { self.sessions };
        let memory = self.memory / u64::from(self.level_max().max(1)) * u64::from(turn.level);
        let usual = LoadOptions::usual(self.kind, turn.level, time, speed, &self.launcher);
        LoadOptions { pages: self.pages, memory, sessions, nice, ..usual }
    }

    /// Where the load's processes are in the arms that do not move them, in words.
    pub fn place(&self) -> String {
        let turn = Turn { level: self.level_max(), arm: Arm::Unmanaged };
        let place = self.load(turn, Duration::ZERO, Speed::NONE).place();
        let shared = if autogroup_enabled() {
            "the kernel shares out CPU time by session (autogroup)"
        } else {
            "autogroup is off"
        };
        format!("the load's processes are {place}; {shared}")
    }

    /// Bytes of the load at its highest level.
    pub fn load_bytes(&self) -> u64 {
        let turn = Turn { level: self.level_max(), arm: Arm::Unmanaged };
        let options = self.load(turn, Duration::ZERO, Speed::NONE);
        options.bytes_each() * u64::from(turn.level)
    }
}

/// What a turn gave, and what its load did meanwhile.
pub struct Measured<T> {
    pub value: T,
    pub load: Option<Achieved>,
}

/// Who carries out turns.
pub struct TurnRunner<'a> {
    comparison: &'a Comparison,
    speed: Speed,
    interrupt: &'a Interrupt,
}

impl<'a> TurnRunner<'a> {
    /// Tries out how fast this CPU is, while no other measurement of this kind runs.
    pub fn begin(
        comparison: &'a Comparison,
        interrupt: &'a Interrupt,
        progress: &mut dyn Progress,
    ) -> Result<TurnRunner<'a>> {
        comparison.check()?;
        let _alone = Alone::wait_in_turn(interrupt, progress)?;
        Ok(TurnRunner { comparison, speed: Speed::try_out()?, interrupt })
    }

    /// One turn: does what the arm does, runs the load, and measures for `time` at most. Everything is as it was
    /// when it returns; no other measurement of this kind runs meanwhile.
    pub fn turn<T>(
        &self,
        turn: Turn,
        session: &Session,
        time: Duration,
        progress: &mut dyn Progress,
        measure: impl FnOnce(&mut dyn Progress) -> Result<T>,
    ) -> Result<Measured<T>> {
        let _alone = Alone::wait_in_turn(self.interrupt, progress)?;
        let load = (turn.level > 0).then_some(turn);
        let comparison = self.comparison;
        let start = |speed| {
            let load = load.map(|turn| Load::start(&comparison.load(turn, time + SETTLING, speed)));
            load.map(|load| load.map(Background::Load)).transpose()
        };
        self.turn_beside(turn.arm, session, start, || measure(progress))
    }

    /// One turn beside something else than a load of the comparison.
    pub(crate) fn turn_beside<T>(
        &self,
        arm: Arm,
        session: &Session,
        start: impl FnOnce(Speed) -> Result<Option<Background>>,
        measure: impl FnOnce() -> Result<T>,
    ) -> Result<Measured<T>> {
        self.interrupt.check()?;
        let managed = arm == Arm::Managed;
        let manager = managed.then(|| Manager::start(&self.comparison.manager, session, self.interrupt)).transpose()?;
        let mut background = start(self.speed)?;
        let weights = match arm {
            Arm::Weight => Some(Weights::set(session, background.as_ref(), &self.comparison.launcher)?),
            _ => None,
        };
        self.interrupt.sleep(SETTLING)?;
        let (value, load) = observed(background.as_mut(), measure)?;
        drop(background);
        drop(weights);
        manager.map_or(Ok(()), Manager::stop)?;
        Ok(Measured { value, load })
    }
}

/// Measures, and says what the background did meanwhile; fails where that did not last.
fn observed<T>(
    background: Option<&mut Background>,
    measure: impl FnOnce() -> Result<T>,
) -> Result<(T, Option<Achieved>)> {
    let _pinned = Pinned::new();
    let Some(background) = background else { return Ok((measure()?, None)) };
    let sampler = background.sample_rounds()?;
    let before = background.reading();
    let value = measure()?;
    let achieved = Achieved::between(before, background.reading());
    let window_rounds_min = sampler.map_or(Ok(None), RoundsSampler::finish)?;
    background.expect_whole().context("the measurement does not count")?;
    Ok((value, Some(Achieved { window_rounds_min, ..achieved })))
}

/// What the turns of one kind gave, in the order of the blocks.
pub struct Cell<T> {
    pub turn: Turn,
    pub blocks: Vec<T>,
    /// What the load did in all of them; `None` without a load.
    pub load: Option<Achieved>,
}

impl<T> Cell<T> {
    fn take(&mut self, measured: Measured<T>) {
        self.blocks.push(measured.value);
        self.load = match (self.load, measured.load) {
            (Some(before), Some(more)) => Some(before.and(more)),
            (before, more) => before.or(more),
        };
    }
}

/// All turns of all blocks; each measures for `time` at most.
pub fn all_turns<T>(
    comparison: &Comparison,
    session: &Session,
    time: Duration,
    interrupt: &Interrupt,
    progress: &mut dyn Progress,
    measure: &mut dyn FnMut(Turn, &mut dyn Progress) -> Result<T>,
) -> Result<Vec<Cell<T>>> {
    let runner = TurnRunner::begin(comparison, interrupt, progress)?;
    let mut cells: Vec<Cell<T>> = Vec::new();
    for block in 0..comparison.blocks {
        for turn in comparison.turns(block) {
            progress.line(&format!("block {} of {}: {}", block + 1, comparison.blocks, turn.name()));
            let measured = runner.turn(turn, session, time, progress, |progress| measure(turn, progress))?;
            match cells.iter_mut().find(|cell| cell.turn == turn) {
                Some(cell) => cell.take(measured),
                None => cells.push(Cell { turn, blocks: vec![measured.value], load: measured.load }),
            }
        }
    }
    cells.sort_by_key(|cell| cell.turn);
    Ok(cells)
}

/// Whether those who type and watch may have real-time priority; in words where they may not.
pub fn steadiness() -> Option<&'static str> {
    (!Priority::may_be_realtime()).then_some(
        "real-time priority is not allowed: what types and watches may be late by itself; run it as root, or raise \
         the limit of real-time priority (ulimit -r)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(levels: &[u32], managed: bool, against: &[Arm]) -> Comparison {
        Comparison {
            levels: levels.to_vec(),
            managed,
            against: against.to_vec(),
            blocks: 3,
            kind: Kind::Cpu,
            pages: Kind::Cpu.pages(),
            memory: 100 << 20,
            sessions: 1,
            manager: ManagerProgram::new("tipme".into()),
            launcher: WorkerLauncher(Vec::new()),
        }
    }

    fn names(turns: &[Turn]) -> Vec<String> {
        turns.iter().map(|turn| turn.name()).collect()
    }

    #[test]
    fn the_calm_is_always_measured_and_each_second_block_goes_backwards() {
        let comparison = comparison(&[20], true, &[Arm::Nice19]);
        let expected = ["unloaded", "load 20, unmanaged", "load 20, managed", "load 20, nice19"];
        assert_eq!(names(&comparison.turns(0)), expected);
        let mut backwards = names(&comparison.turns(1));
        backwards.reverse();
        assert_eq!(backwards, expected);
    }

    #[test]
    fn without_a_load_only_the_manager_can_do_anything() {
        let comparison = comparison(&[0, 5], true, &[Arm::Nice19]);
        let expected = ["unloaded", "unloaded, managed", "load 5, unmanaged", "load 5, managed", "load 5, nice19"];
        assert_eq!(names(&comparison.turns(0)), expected);
        assert_eq!(names(&self::comparison(&[0], false, &[]).turns(0)), ["unloaded"]);
    }

    #[test]
    fn alternatives_act_on_the_load() {
        let comparison = comparison(&[5, 20], false, &[]);
        let load = |level, arm| comparison.load(Turn { level, arm }, Duration::ZERO, Speed::NONE);
        assert_eq!((load(20, Arm::Nice19).nice, load(20, Arm::Managed).nice), (19, 0));
        assert_eq!(load(5, Arm::Unmanaged).memory, (100 << 20) / 20 * 5);
        assert_eq!(load(20, Arm::Unmanaged).memory, (100 << 20) / 20 * 20);
    }

    #[test]
    fn what_would_be_the_unmanaged_arm_again_is_refused() {
        let one = comparison(&[20], false, &[Arm::Autogroup]);
        let why = one.check().expect_err("one session already").to_string();
        assert!(why.contains("autogroup") && why.contains("--sessions"), "{why}");
        let sessions =
            |sessions, levels: &[u32]| Comparison { sessions, ..comparison(levels, false, &[Arm::Autogroup]) };
        assert!(sessions(0, &[20]).check().is_ok() && sessions(20, &[1, 20]).check().is_ok());
        assert!(sessions(20, &[1]).check().is_err(), "one process is in one session");
        let why = comparison(&[0], true, &[Arm::Nice19]).check().expect_err("no load").to_string();
        assert!(why.contains("nice19") && why.contains("--load"), "{why}");
        let mut off = comparison(&[20], true, &[]);
        off.manager.strength = Some("off".to_owned());
        assert!(off.check().expect_err("it does nothing").to_string().contains("--strength"));
        assert!(lacks_niceness(0).is_none() && lacks_niceness(19).is_some_and(|why| why.contains("without nice")));
    }

    #[test]
    fn where_an_arm_makes_no_difference_it_has_no_turn() {
        let comparison = Comparison { sessions: 20, ..comparison(&[1, 20], false, &[Arm::Nice19]) };
        let autogroup = |level| comparison.differs(Arm::Autogroup, level);
        assert_eq!([0, 1, 20].map(autogroup), [false, false, true]);
    }

    #[test]
    fn the_estimate_has_starts_and_ends_in_it() {
        let measured = Estimate::new(Duration::from_secs(10), Duration::from_secs(20));
        let plain = comparison(&[0], false, &[]).estimate(measured);
        assert!(plain.about > measured.about * 3 && plain.most > measured.most * 3, "{plain:?}");
        let managed = comparison(&[20], true, &[]).estimate(measured);
        let turns = (measured + Estimate::new(SETTLING, SETTLING)) * 9;
        let around = Session::ESTIMATE + Load::ESTIMATE * 6 + Manager::ESTIMATE * 3;
        assert_eq!(managed, turns + around);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        assert!(comparison(&[], false, &[]).check().is_err());
        assert!(Comparison { blocks: 0, ..comparison(&[1], false, &[]) }.check().is_err());
        assert!(comparison(&[65], false, &[]).check().is_err());
        assert!(comparison(&[0], false, &[]).check().is_ok() && comparison(&[20], false, &[]).check().is_ok());
    }
}
