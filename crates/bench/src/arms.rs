// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arms of a comparison beside a load: unmanaged, managed, and the usual alternatives to a manager.
//!
//! One run measures all arms in turns, because a machine changes from one minute to the next. Each
//! arm has one turn in each block, and every second block runs backwards.

mod figures;
mod manager;
mod options;
mod scale;
mod table;
mod turns;

pub(crate) use figures::run;
pub use figures::{Against, ArmConditions, ArmFigures, ArmRow, Compared, Lacking, LostParts};
pub use manager::{BenchManager, ManagerProgram};
pub use options::{BesideOptions, ManagerOptions};
pub use scale::ArmScale;
pub(crate) use scale::KeyFigure;
pub use table::{ArmDetails, ArmTerms};
pub(crate) use table::{load_words, progress_line, turns_words};
pub(crate) use turns::{Block, TurnResults, all_turns, one_turn, together};

use crate::choice::name;
use crate::group::lacks_unified;
use crate::load::{LoadKind, LoadOptions, Pages, Speed};
use crate::priority::Priority;
use crate::worker::WorkerLauncher;
use anyhow::{Result, ensure};
use clap::ValueEnum;
use rustix::process::getpriority_process;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// Time for which a load runs before anything is measured beside it. The manager needs less to
/// detect the load on CPUs that were free before.
pub(crate) const SETTLING: Duration = Duration::from_secs(2);
/// Largest nice value; `nice` without a number uses less.
const NICE_MOST: i32 = 19;
/// Strength of a manager that does nothing.
const STRENGTH_NONE: &str = "off";

/// Way to favour the user beside a load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// Nothing is done
    Unmanaged,
    /// The manager runs
    Managed,
    /// The load is started with nice -n 19
    Nice19,
    /// The load is in one session of its own, and the kernel divides CPU time by session
    Autogroup,
    /// The focused program's control group gets a larger cpu.weight, and nothing else is changed
    Weight,
    /// The load is started with ionice -c 3
    #[serde(rename = "idle-io")]
    IdleIo,
    /// The load's control group gets three quarters of the memory that is available
    Limit,
}

impl Arm {
    /// Usual alternatives to a manager.
    pub(crate) const ALTERNATIVES: [Arm; 5] =
        [Arm::Nice19, Arm::Autogroup, Arm::Weight, Arm::IdleIo, Arm::Limit];

    /// Returns the reason why the arm cannot be measured on this machine, if any.
    pub(crate) fn lacks(self) -> Option<String> {
        match self {
            Arm::Weight => lacks_unified("cpu"),
            Arm::Limit => lacks_unified("memory"),
            Arm::Nice19 => lacks_niceness(getpriority_process(None).unwrap_or_default()),
            Arm::Autogroup if !autogroup_enabled() => Some(
                "autogroup scheduling is off; try: sysctl kernel.sched_autogroup_enabled=1"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// Returns the reason why a load cannot get a worse nice value than this benchmark, if any.
fn lacks_niceness(own: i32) -> Option<String> {
    (own >= NICE_MOST)
        .then(|| format!("the benchmark itself runs at nice {own}; start it without nice"))
}

/// Usual duration of the starts and ends of a private session with a program, of a manager, and of a
/// load.
pub(crate) const SESSION_USUAL: Duration = Duration::from_secs(2);
const MANAGER_USUAL: Duration = Duration::from_secs(2);
const LOAD_USUAL: Duration = Duration::from_secs(1);

/// Describes the duration of a benchmark, for output before the start: seconds up to ten minutes,
/// then minutes, rounded up.
pub(crate) fn usual_words(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let time = if seconds <= 600 {
        format!("{seconds} s")
    } else {
        format!("{} min", seconds.div_ceil(60))
    };
    format!("about {time} in all, and more where other measurements run: each turn waits for them")
}

/// One measurement of an arm beside a load; level 0 means no load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ArmTurn {
    pub level: u32,
    pub arm: Arm,
}

impl ArmTurn {
    /// No load and no management.
    pub(crate) const UNLOADED: ArmTurn = ArmTurn { level: 0, arm: Arm::Unmanaged };

    /// Returns the time that the turn takes in addition to the measurement.
    pub(crate) fn overhead(self) -> Duration {
        let managed = if self.arm == Arm::Managed { MANAGER_USUAL } else { Duration::ZERO };
        SETTLING + managed + if self.level > 0 { LOAD_USUAL } else { Duration::ZERO }
    }

    /// Name of the turn for output.
    pub fn name(self) -> String {
        match self {
            ArmTurn::UNLOADED => "unloaded".to_owned(),
            ArmTurn { level: 0, arm } => format!("unloaded, {}", name(&arm)),
            ArmTurn { level, arm } => format!("load {level}, {}", name(&arm)),
        }
    }
}

/// Arms, load and repetitions of a comparison.
#[derive(Clone, Debug)]
pub struct ArmComparison {
    /// Levels of the load; level 0 is always measured too.
    pub levels: Vec<u32>,
    pub managed: bool,
    /// Alternatives to the manager; those that this machine lacks are omitted.
    pub against: Vec<Arm>,
    pub blocks: usize,
    pub kind: LoadKind,
    pub pages: Pages,
    /// Memory of the load at its highest level; lower levels use proportionally less.
    pub memory: u64,
    /// Sessions over which the load is spread.
    pub sessions: u32,
    /// Runs the display, the terminal and each session of the load in systemd units of their own.
    pub units: bool,
    pub manager: ManagerProgram,
    pub launcher: WorkerLauncher,
}

impl ArmComparison {
    /// Fails if the comparison is not possible or makes no sense.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.levels.is_empty(), "no load is given; choose one with --load");
        if self.level_max() > 0 {
            self.whole_load().check()?;
        }
        self.check_arms()
    }

    /// Fails if an arm would be the same as the unmanaged one.
    fn check_arms(&self) -> Result<()> {
        let idle = self.managed && self.manager.strength.as_deref() == Some(STRENGTH_NONE);
        ensure!(
            !idle,
            "a manager of strength \"{STRENGTH_NONE}\" does nothing; choose another --strength"
        );
        for arm in &self.against {
            let name = name(arm);
            ensure!(
                self.level_max() > 0,
                "{name} does something to a load only, and there is none; choose one with --load"
            );
            ensure!(
                self.levels.iter().any(|level| self.differs(*arm, *level)),
                "{name} puts the load into one session, but the load is already in one, so this arm would repeat the unmanaged one; \
                 choose --sessions 0 or more than one, and more than one process"
            );
            let regroups = matches!(arm, Arm::Autogroup | Arm::Weight | Arm::Limit);
            ensure!(
                !(self.units && regroups),
                "{name} groups the load's processes in another way than --units does; leave out one of them"
            );
        }
        Ok(())
    }

    /// Returns `true` if the arm changes anything beside a load of this level.
    fn differs(&self, arm: Arm, level: u32) -> bool {
        match arm {
            Arm::Unmanaged | Arm::Managed => true,
            Arm::Autogroup => level > 0 && self.sessions.min(level) != 1,
            Arm::Nice19 | Arm::Weight | Arm::IdleIo | Arm::Limit => level > 0,
        }
    }

    /// Returns the usual duration of all turns as words, given that of the measurement in each.
    pub(crate) fn usual_words(&self, measured: Duration) -> String {
        let turns = self.turns(0).into_iter().map(|turn| measured + turn.overhead());
        usual_words(SESSION_USUAL + turns.sum::<Duration>() * self.blocks as u32)
    }

    pub(crate) fn level_max(&self) -> u32 {
        self.levels.iter().copied().max().unwrap_or_default()
    }

    /// Returns the arms to measure beside a load, in order.
    pub(crate) fn arms(&self) -> Vec<Arm> {
        let mut arms = vec![Arm::Unmanaged];
        arms.extend(self.managed.then_some(Arm::Managed));
        arms.extend(self.against.iter().filter(|arm| arm.lacks().is_none()));
        arms.sort_unstable();
        arms.dedup();
        arms
    }

    /// Returns the distinct turns of one block. Alternatives to the manager need a load.
    pub fn turns(&self, block: usize) -> Vec<ArmTurn> {
        let arms = self.arms();
        let mut turns = vec![ArmTurn::UNLOADED];
        for level in &self.levels {
            let fitting = arms.iter().filter(|arm| self.differs(**arm, *level));
            turns.extend(fitting.map(|arm| ArmTurn { level: *level, arm: *arm }));
        }
        turns.sort_unstable();
        turns.dedup();
        if block % 2 == 1 {
            turns.reverse();
        }
        turns
    }

    pub(crate) fn load(&self, turn: ArmTurn, time: Duration, speed: Speed) -> LoadOptions {
        let nice = if turn.arm == Arm::Nice19 { NICE_MOST } else { 0 };
        let sessions = if turn.arm == Arm::Autogroup { 1 } else { self.sessions };
        let memory = self.memory / u64::from(self.level_max().max(1)) * u64::from(turn.level);
        let usual = LoadOptions::usual(self.kind, turn.level, time, speed, &self.launcher);
        let idle_io = turn.arm == Arm::IdleIo;
        LoadOptions {
            pages: self.pages,
            memory,
            sessions,
            units: self.units,
            nice,
            idle_io,
            ..usual
        }
    }

    /// Describes where the load's processes run in the arms that do not move them.
    pub fn place(&self) -> String {
        let place = self.whole_load().place();
        let shared = if self.units {
            "display, window manager, terminal and each session of the load are in units of systemd of their own"
        } else if autogroup_enabled() {
            "the kernel shares out CPU time by session (autogroup)"
        } else {
            "autogroup is off"
        };
        format!("the load's processes are {place}; {shared}")
    }

    /// Memory of the load at its highest level, in bytes.
    pub(crate) fn load_bytes(&self) -> u64 {
        self.whole_load().bytes_each() * u64::from(self.level_max())
    }

    /// Returns the options of the load at its highest level, for questions about it.
    fn whole_load(&self) -> LoadOptions {
        let turn = ArmTurn { level: self.level_max(), arm: Arm::Unmanaged };
        self.load(turn, Duration::ZERO, Speed::NONE)
    }
}

/// Warning that the typing and watching threads have no real-time priority.
pub(crate) const NOT_STEADY: &str = "real-time priority is not allowed: what types and watches may be late by itself; run it as root, or raise the limit \
     of real-time priority (ulimit -r)";

/// Returns `true` if the typing and watching threads can have real-time priority.
pub(crate) fn is_steady() -> bool {
    Priority::may_be_realtime()
}

/// Returns `true` if each session gets its own share of CPU time, regardless of nice values.
fn autogroup_enabled() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled")
        .is_ok_and(|enabled| enabled.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(levels: &[u32], managed: bool, against: &[Arm]) -> ArmComparison {
        ArmComparison {
            levels: levels.to_vec(),
            managed,
            against: against.to_vec(),
            blocks: 3,
            kind: LoadKind::Cpu,
            pages: LoadKind::Cpu.pages(),
            memory: 100 << 20,
            sessions: 1,
            units: false,
            manager: ManagerProgram::new("tipme".into()),
            launcher: WorkerLauncher(Vec::new()),
        }
    }

    fn names(turns: &[ArmTurn]) -> Vec<String> {
        turns.iter().map(|turn| turn.name()).collect()
    }

    #[test]
    fn the_unloaded_turn_is_there_and_second_blocks_go_backwards() {
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
        let expected = [
            "unloaded",
            "unloaded, managed",
            "load 5, unmanaged",
            "load 5, managed",
            "load 5, nice19",
        ];
        assert_eq!(names(&comparison.turns(0)), expected);
        assert_eq!(names(&self::comparison(&[0], false, &[]).turns(0)), ["unloaded"]);
    }

    #[test]
    fn alternatives_act_on_the_load() {
        let comparison = comparison(&[5, 20], false, &[]);
        let load =
            |level, arm| comparison.load(ArmTurn { level, arm }, Duration::ZERO, Speed::NONE);
        assert_eq!((load(20, Arm::Nice19).nice, load(20, Arm::Managed).nice), (19, 0));
        assert_eq!((load(20, Arm::IdleIo).idle_io, load(20, Arm::Managed).idle_io), (true, false));
        assert_eq!(load(5, Arm::Unmanaged).memory, (100 << 20) / 20 * 5);
        assert_eq!(load(20, Arm::Unmanaged).memory, (100 << 20) / 20 * 20);
    }

    #[test]
    fn what_would_be_the_unmanaged_arm_again_is_refused() {
        let one = comparison(&[20], false, &[Arm::Autogroup]);
        let why = one.check().expect_err("one session already").to_string();
        assert!(why.contains("autogroup") && why.contains("--sessions"), "{why}");
        for (sessions, levels, fine) in
            [(0, &[20][..], true), (20, &[1, 20], true), (20, &[1], false)]
        {
            let comparison = comparison(levels, false, &[Arm::Autogroup]);
            let checked = ArmComparison { sessions, ..comparison }.check();
            assert_eq!(checked.is_ok(), fine, "one process is in one session");
        }
        let why = comparison(&[0], true, &[Arm::Nice19]).check().expect_err("no load").to_string();
        assert!(why.contains("nice19") && why.contains("--load"), "{why}");
        let mut off = comparison(&[20], true, &[]);
        off.manager.strength = Some("off".to_owned());
        assert!(off.check().expect_err("it does nothing").to_string().contains("--strength"));
        for arm in Arm::ALTERNATIVES {
            let comparison = comparison(&[20], false, &[arm]);
            let why = ArmComparison { units: true, sessions: 0, ..comparison }.check().err();
            let regroups = why.is_some_and(|why| why.to_string().contains("--units"));
            assert_eq!(regroups, !matches!(arm, Arm::Nice19 | Arm::IdleIo), "{arm:?}");
        }
        assert!(
            lacks_niceness(0).is_none()
                && lacks_niceness(19).is_some_and(|why| why.contains("without nice"))
        );
    }

    #[test]
    fn where_an_arm_makes_no_difference_it_has_no_turn() {
        let comparison =
            ArmComparison { sessions: 20, ..comparison(&[1, 20], false, &[Arm::Nice19]) };
        let differs = [0, 1, 20].map(|level| comparison.differs(Arm::Autogroup, level));
        assert_eq!(differs, [false, false, true]);
    }

    #[test]
    fn the_usual_duration_has_starts_and_ends_in_it() {
        let measured = Duration::from_secs(10);
        let [plain, managed] = [comparison(&[0], false, &[]), comparison(&[20], true, &[])]
            .map(|comparison| comparison.usual_words(measured));
        assert!(plain.starts_with("about 38 s in all, and more where"), "{plain}");
        assert!(managed.starts_with("about 122 s in all"), "{managed}");
        assert!(usual_words(Duration::from_millis(600_001)).starts_with("about 11 min in all"));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        assert!(comparison(&[], false, &[]).check().is_err());
        assert!(comparison(&[65], false, &[]).check().is_err());
        assert!(
            comparison(&[0], false, &[]).check().is_ok()
                && comparison(&[20], false, &[]).check().is_ok()
        );
    }
}
