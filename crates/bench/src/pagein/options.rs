// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench pagein`, its duration, and its requirements.

use super::room::MemoryRoom;
use crate::arms::{Arm, ArmComparison, ManagerOptions};
use crate::choice::{ResultFiles, one_of};
use crate::driver::Programs;
use crate::intervals::STAMPS_MAX;
use crate::load::{LEVEL_MAX, LoadKind};
use crate::typist::ANSWER_TIMEOUT;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::time::Duration;
use tipme_command::{duration, size};

/// Words of a record in the stamp buffer.
pub(super) const WORDS: usize = 3;
/// Maximum wait for records after the last key.
pub(super) const LATE_MAX: Duration = Duration::from_secs(30);

/// Minimum and maximum working set.
const WORKING_SET_MIN: u64 = 1 << 20;
const WORKING_SET_MAX: u64 = 1 << 30;
/// Maximum interval between keys.
const EVERY_MAX: Duration = Duration::from_secs(120);
/// Mean time allowed for a key; keys beyond the resulting limit are not typed.
const KEY_SPARE: Duration = Duration::from_secs(5);
/// Usual time of a walk through resident pages, with its drawing.
const KEY_USUAL: Duration = Duration::from_millis(20);
/// Memory of a hog process, if their number is not given.
const HOG_EACH: u64 = 1 << 30;

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench pagein --managed
  sudo tipme bench pagein --managed --cgroup /sys/fs/cgroup/tipme --keys 200 --json pagein.json
  tipme bench pagein --without-shortage --keys 10 --every 200ms

A program with a window walks through a part of its working set after each key; it measures how
long the program waits for its pages (neither running nor waiting for a CPU), alone and beside a
hog that needs more memory than is left. It also prints major page faults, the time from key to
drawing, and the fewest rounds of any process of the hog in ten seconds (0 means starvation). The
first lap of a turn does not count.

The whole machine is slow while it runs. The benchmark needs swap and a machine with no more than
4 GiB of memory, and refuses to run where the kernel would have to kill programs.
--without-shortage is a trial run with a hog that leaves memory free.

Exit codes: 0 measured, 2 nothing could be measured.")]
pub struct Pagein {
    /// Size of the working set, 1M to 1G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub working_set: u64,
    /// Keys per lap through the working set, 1 to 200
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=200))]
    pub keys_per_lap: u8,
    /// Time between an answer and the next key
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub every: Duration,
    /// Counted keys per arm, over all blocks
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=2_000))]
    pub keys: u16,
    /// Memory of the hog: bytes, or with K, M or G [default: enough to leave a quarter of memory
    /// and swap free]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub hog: Option<u64>,
    /// Processes of the hog [default: one for each GiB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(LEVEL_MAX)))]
    pub hogs: Option<u32>,
    /// Type of the hog; see tipme load
    #[arg(long = "type", value_name = "TYPE", value_enum, default_value_t = Hog::Big)]
    pub kind: Hog,
    /// Spread the hog over this many sessions; 0 uses the session of the display's programs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=i64::from(LEVEL_MAX)))]
    pub sessions: u32,
    /// Trial run: the hog leaves memory free and disturbs nothing
    #[arg(long)]
    pub without_shortage: bool,
    /// Also measure with the manager, in alternating turns
    #[arg(long)]
    pub managed: bool,
    /// Also measure this alternative to the manager, in alternating turns; may be repeated
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = one_of(&Arm::ALTERNATIVES))]
    pub against: Vec<Arm>,
    /// Turns per arm
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub blocks: u8,
    #[command(flatten)]
    pub manager: ManagerOptions,
    #[command(flatten)]
    pub files: ResultFiles,
}

/// What takes the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Hog {
    /// Cycles through all of its memory
    Big,
    /// Keeps allocating memory, and frees all of it after each lap
    Stream,
}

impl Hog {
    fn kind(self) -> LoadKind {
        match self {
            Hog::Big => LoadKind::Big,
            Hog::Stream => LoadKind::Stream,
        }
    }
}

impl Pagein {
    /// Returns the comparison, with the hog as its load.
    pub(super) fn comparison(&self, room: &MemoryRoom, programs: &Programs) -> ArmComparison {
        let hog = self.hog.unwrap_or_else(|| room.hog(self.working_set, !self.without_shortage));
        let hogs = self.hogs.unwrap_or_else(|| hog.div_ceil(HOG_EACH).max(1) as u32);
        let kind = self.kind.kind();
        ArmComparison {
            levels: vec![hogs],
            managed: self.managed,
            against: self.against.clone(),
            blocks: self.blocks.into(),
            kind,
            pages: kind.pages(),
            memory: hog,
            sessions: self.sessions,
            units: false,
            manager: self.manager.program(programs),
            launcher: programs.launcher.clone(),
        }
    }

    /// Counted keys of one block.
    pub(super) fn keys_per_block(&self) -> usize {
        usize::from(self.keys).div_ceil(usize::from(self.blocks).max(1))
    }

    /// Typed keys of one block.
    pub(super) fn presses(&self) -> usize {
        self.keys_per_block() + usize::from(self.keys_per_lap)
    }

    /// Time limit of a block, after which no key is typed.
    pub(super) fn time_per_block(&self) -> Duration {
        (self.every + KEY_SPARE) * self.presses() as u32
    }

    /// Maximum duration of a block: the first lap and a key in progress have no time limit.
    pub(super) fn longest_block(&self) -> Duration {
        let lap = (self.every + ANSWER_TIMEOUT) * u32::from(self.keys_per_lap);
        lap.max(self.time_per_block()) + self.every + ANSWER_TIMEOUT + LATE_MAX
    }

    /// Describes the expected duration, for output before the start.
    pub(super) fn plan(&self, comparison: &ArmComparison) -> String {
        let (hog, working_set) = (comparison.load_bytes() >> 20, self.working_set >> 20);
        let usual = comparison.usual_words((self.every + KEY_USUAL) * self.presses() as u32);
        format!(
            "{} keys each; {hog} MiB for the hog, {working_set} MiB for the program; {usual}",
            self.keys_per_block()
        )
    }

    /// Fails with the accepted values if the benchmark is not possible here.
    pub(super) fn check(&self, comparison: &ArmComparison, room: &MemoryRoom) -> Result<()> {
        let (least, most) = (WORKING_SET_MIN >> 20, WORKING_SET_MAX >> 20);
        let fits = (WORKING_SET_MIN..=WORKING_SET_MAX).contains(&self.working_set);
        ensure!(fits, "choose a working set of {least} to {most} MiB");
        ensure!(self.every <= EVERY_MAX, "choose {EVERY_MAX:?} between two keys at most");
        let records = self.presses() * comparison.turns(0).len() * comparison.blocks;
        ensure!(
            records * WORDS < STAMPS_MAX,
            "{records} keys in all are too many; choose fewer keys or blocks"
        );
        room.check(self.working_set, comparison.load_bytes(), !self.without_shortage)?;
        comparison.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parsed;
    use crate::worker::WorkerLauncher;

    const ROOM: MemoryRoom =
        MemoryRoom { total: 1 << 30, available: 800 << 20, swap_free: 512 << 20 };

    /// Uses a small hog that leaves memory free, unless the words override it.
    fn checked(words: &str) -> Result<()> {
        let options: Pagein = parsed(&format!("--managed --hog 16M {words}"));
        let programs = Programs { tipme: "tipme".into(), launcher: WorkerLauncher(Vec::new()) };
        options.check(&options.comparison(&ROOM, &programs), &ROOM)
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert!(checked("--without-shortage --working-set 4M").is_ok());
        for wrong in ["--working-set 1K", "--every 240s", "--working-set 4M"] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
        let many = checked(
            "--without-shortage --working-set 4M --blocks 50 --keys 2000 --keys-per-lap 200",
        );
        assert!(many.expect_err("36,000 keys").to_string().contains("fewer keys"));
    }

    #[test]
    fn a_lap_comes_before_each_block() {
        let options: Pagein = parsed("--managed --hog 16M --without-shortage");
        assert_eq!((options.keys_per_block(), options.presses()), (50, 66));
    }
}
