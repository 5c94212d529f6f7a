// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured of a program that goes through its memory, and how long that takes.

use super::room::Room;
use crate::arms::Comparison;
use crate::estimate::Estimate;
use crate::intervals::STAMPS_MAX;
use crate::typing::ANSWER_TIMEOUT;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Words of a record in the stamp buffer.
pub(super) const WORDS: usize = 3;
/// How long records are waited for after the last key.
pub(super) const LATE_MAX: Duration = Duration::from_secs(30);

/// The working set, at least and at most.
pub const WORKING_SET_MIN: u64 = 1 << 20;
pub const WORKING_SET_MAX: u64 = 1 << 30;
/// Keys in which the program goes once through its working set, at most.
pub const KEYS_PER_LAP_MAX: usize = 200;
/// Keys of each arm, at most.
pub const KEYS_MAX: usize = 2_000;
/// Between two keys, at most.
pub const EVERY_MAX: Duration = Duration::from_secs(120);
/// What a key may take on the average; keys for which there is no time then are not typed.
const KEY_SPARE: Duration = Duration::from_secs(5);
/// A walk through pages that are there, and its drawing, about.
const KEY_USUAL: Duration = Duration::from_millis(20);

/// What is measured. Of the comparison, the load is the hog.
#[derive(Clone, Debug)]
pub struct Options {
    pub comparison: Comparison,
    /// Bytes of the program's own buffer.
    pub working_set: u64,
    /// In so many keys the program goes once through it.
    pub keys_per_lap: usize,
    /// Between an answer and the next key.
    pub every: Duration,
    /// Keys of each arm, over all blocks; a first lap in each block does not count.
    pub keys: usize,
    /// Whether memory is to run out; false tries everything with a hog that leaves it free.
    pub shortage: bool,
}

impl Options {
    /// Keys of one block that count.
    pub fn keys_per_block(&self) -> usize {
        self.keys.div_ceil(self.comparison.blocks.max(1))
    }

    /// Keys of one block.
    pub(super) fn presses(&self) -> usize {
        self.keys_per_block() + self.keys_per_lap
    }

    /// Behind it no key is typed any more.
    pub(super) fn time_per_block(&self) -> Duration {
        (self.every + KEY_SPARE) * self.presses() as u32
    }

    /// The first lap is typed however long it takes, and so is what was begun.
    pub(super) fn longest_block(&self) -> Duration {
        let lap = (self.every + ANSWER_TIMEOUT) * self.keys_per_lap as u32;
        lap.max(self.time_per_block()) + self.every + ANSWER_TIMEOUT + LATE_MAX
    }

    /// How long all of it takes.
    pub fn estimate(&self) -> Estimate {
        let about = (self.every + KEY_USUAL) * self.presses() as u32;
        self.comparison.estimate(Estimate::new(about, self.longest_block()))
    }

    /// Fails with what cannot be measured here, and what can.
    pub fn check(&self, room: &Room) -> Result<()> {
        ensure!((1..=KEYS_MAX).contains(&self.keys), "choose 1 to {KEYS_MAX} keys");
        let (least, most) = (WORKING_SET_MIN >> 20, WORKING_SET_MAX >> 20);
        let fits = (WORKING_SET_MIN..=WORKING_SET_MAX).contains(&self.working_set);
        ensure!(fits, "choose a working set of {least} to {most} MiB");
        let laps = 1..=KEYS_PER_LAP_MAX;
        ensure!(laps.contains(&self.keys_per_lap), "choose 1 to {KEYS_PER_LAP_MAX} keys for a lap");
        ensure!(self.every <= EVERY_MAX, "choose {EVERY_MAX:?} between two keys at most");
        let records = self.presses() * self.comparison.turns(0).len() * self.comparison.blocks;
        ensure!(records * WORDS < STAMPS_MAX, "{records} keys in all are too many; choose fewer keys or blocks");
        room.check(self.working_set, self.comparison.load_bytes(), self.shortage)?;
        self.comparison.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::ManagerProgram;
    use crate::load::Kind;
    use crate::worker::WorkerLauncher;

    fn options() -> Options {
        let comparison = Comparison {
            levels: vec![1],
            managed: true,
            against: Vec::new(),
            blocks: 2,
            kind: Kind::Big,
            pages: Kind::Big.pages(),
            memory: 16 << 20,
            sessions: 1,
            manager: ManagerProgram::new("tipme".into()),
            launcher: WorkerLauncher(Vec::new()),
        };
        let every = Duration::from_secs(2);
        Options { comparison, working_set: 4 << 20, keys_per_lap: 16, every, keys: 100, shortage: false }
    }

    const ROOM: Room = Room { total: 1 << 30, available: 800 << 20, swap_free: 512 << 20 };

    #[test]
    fn what_cannot_be_measured_is_refused() {
        assert!(options().check(&ROOM).is_ok());
        for wrong in [
            Options { keys: 0, ..options() },
            Options { working_set: 1, ..options() },
            Options { keys_per_lap: 0, ..options() },
            Options { every: EVERY_MAX * 2, ..options() },
            Options { shortage: true, ..options() },
        ] {
            assert!(wrong.check(&ROOM).is_err(), "{wrong:?}");
        }
        let many = Comparison { blocks: 50, ..options().comparison };
        let many = Options { comparison: many, keys: 2_000, keys_per_lap: 200, ..options() };
        assert!(many.check(&ROOM).expect_err("36,000 keys").to_string().contains("fewer keys"));
    }

    #[test]
    fn a_lap_before_each_block_takes_its_time() {
        assert_eq!((options().keys_per_block(), options().presses()), (50, 66));
        assert!(options().estimate().about > Duration::from_secs(2 * 66 * 3 * 2));
    }
}
