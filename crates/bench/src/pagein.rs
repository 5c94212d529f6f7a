// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the program with the focus waits for its own pages, beside a hog that takes the memory.
//!
//! The memory side of Evans et al. (1993, section 4.4.2): "It doesn't matter how high a process' priority is if there
//! is no free memory available." A program with a window and a working set of its own goes on through that after each
//! key: a part at a time, so that each page rests between two laps as the pages of real programs do. What it waits
//! for its pages is told by itself: the time of the walk in which it neither ran nor waited for a CPU. The hog is a
//! load with more memory than is left. So that nothing worse happens than that the machine is slow, it never gets
//! more than memory and swap hold with a quarter to spare, and machines with much memory are refused.

mod block;
mod options;
mod program;
mod room;

pub use block::Block;
pub use options::{EVERY_MAX, KEYS_MAX, KEYS_PER_LAP_MAX, Options, WORKING_SET_MAX, WORKING_SET_MIN};
pub(crate) use program::run as run_program;
pub use room::Room;

use crate::arms::{Cell, all_turns};
use crate::interrupt::Interrupt;
use crate::intervals::{STAMPS_MAX, StampBuffer};
use crate::progress::Progress;
use crate::session::{self, Session};
use anyhow::Result;

/// Measures every turn. Everything that was started has ended when it returns.
pub fn run(options: &Options, interrupt: &Interrupt, progress: &mut dyn Progress) -> Result<Vec<Cell<Block>>> {
    options.check(&Room::here())?;
    session::require(&["Xvfb", "openbox", "xterm"])?;
    let stamp_buffer = StampBuffer::make(STAMPS_MAX)?;
    let mut session = Session::start(session::Options::default())?;
    let command = program::command(options, &session, &stamp_buffer)?;
    session.open_program("the program with the working set", command)?;
    let (time, mut typed) = (options.longest_block(), 0);
    all_turns(&options.comparison, &session, time, interrupt, progress, &mut |_, _| {
        let block = block::type_keys(options, &session, &stamp_buffer, typed, interrupt)?;
        typed += options.keys_per_lap + block.pressed.len();
        Ok(block)
    })
}
