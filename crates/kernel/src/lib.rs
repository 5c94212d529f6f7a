// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel side of the flight recorder: programs, rings, tables and the task walk.
//!
//! [`Kernel::arm`] loads and attaches everything; from then on the kernel writes records into
//! rings, and no code of this process runs. [`Kernel::copy_chunks`] and its siblings copy bytes at
//! a mark, while recording goes on. This crate does not interpret records.

#![warn(unreachable_pub)]

mod answers;
mod cost;
mod detail;
mod doctor;
mod focus;
mod load;
mod memory;
mod orders;
mod perf;
mod programs;
mod standby;
mod tables;

#[allow(clippy::all, unused, dead_code, unreachable_pub, unsafe_op_in_unsafe_fn)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/tipme.skel.rs"));
}

pub use answers::{AnswerCounts, AnswersRead, BUCKETS, CLASSES, Counts, OpenPresses, ToldAnswer};
pub use cost::{Attachable, COUNTED_BYTES, ProgramRuns, count, may_ask};
pub use detail::Detail;
pub use doctor::{KernelCheck, check};
pub use focus::FocusGained;
pub use load::{DisplayNumber, Kernel, KernelOptions, Storage};
pub use memory::CPUS_MAX;
pub use orders::CounterOrder;
pub use programs::classes;
pub use standby::{SampleClock, StandbyPrograms, open_programs};
pub use tables::CommandLine;
