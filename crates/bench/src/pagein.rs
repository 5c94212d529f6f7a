// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time for which the focused program waits for its own pages, beside a hog that takes the memory.
//!
//! The memory side of Evans et al. (1993, section 4.4.2): "It doesn't matter how high a process'
//! priority is if there is no free memory available." After each key, a program with a window walks
//! through a part of its working set, so that each page rests between two laps, like the pages of
//! real programs. The program itself reports the wait for its pages: the time of the walk in which
//! it neither ran nor waited for a CPU. The hog is a load with more memory than is left. For safety
//! it never gets more than memory and swap hold with a quarter to spare, and machines with much
//! memory are refused.

mod block;
mod figures;
mod options;
mod program;
mod room;
mod table;

pub use figures::{Walked, WalkedTurn};
pub use options::{Hog, Pagein};
pub(crate) use program::run as run_program;
pub use room::MemoryRoom;

use crate::arms::{Compared, all_turns, turns_words};
use crate::driver::BenchDriver;
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::intervals::{STAMPS_MAX, StampBuffer};
use crate::screen::Place;
use crate::session::SessionOptions;
use anyhow::Result;
use std::path::Path;
use table::TITLE;

impl Experiment for Pagein {
    const NAME: &'static str = "pagein";
    const CLASSES: &'static [&'static str] = &[block::CLASS];
    type Figures = Compared<Walked>;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>> {
        let (room, programs) = (MemoryRoom::here(), driver.programs());
        let comparison = self.comparison(&room, &programs);
        self.check(&comparison, &room)?;
        driver.line(&format!("{}; {}", turns_words(&comparison), self.plan(&comparison)));
        let mut stage =
            driver.stage(&Place::X11, SessionOptions::default(), &["Xvfb", "openbox", "xterm"])?;
        let stamp_buffer = StampBuffer::make(STAMPS_MAX)?;
        let command = program::command(self, &programs.launcher, &*stage, &stamp_buffer)?;
        stage.open_program("the program with the working set", command)?;
        let (time, mut typed) = (self.longest_block(), 0);
        let cells = all_turns(&comparison, &mut *stage, time, &mut |stage| {
            let block = block::type_keys(self, stage, &stamp_buffer, typed)?;
            typed += usize::from(self.keys_per_lap) + block.events.starts_ns.len();
            Ok(block)
        })?;
        let more = Walked::new(self, &comparison, room, &cells);
        Ok(Compared::measured(TITLE, &comparison, cells, more))
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        self.files.paths()
    }
}
