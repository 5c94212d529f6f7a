// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flight recorder: always on, in memory only, silent until a mark.
//!
//! [`run`] arms the kernel side and then runs a single `poll` loop. Input devices and fast-changing
//! figures are read ten times a second while there is pressure, and twice when idle; the rest of
//! its small /proc files and the loss counters once a second. With `--auto`, each turn reads the
//! kernel's counts of late answers. A mark copies the rings, while the kernel writes on to them,
//! and leaves sealing to a thread, so the next mark can follow at once.

#![warn(unreachable_pub)]

mod answered;
mod authorization;
mod auto;
mod baselines;
mod capture;
mod counter;
mod daemon;
mod day;
mod descriptions;
mod details;
mod displays;
mod focus;
mod fuzz;
mod hot_keys;
mod identity;
mod ids;
mod inputs;
mod inquiry;
mod judge;
mod learning;
mod look;
mod losses;
mod outcome;
mod owners;
mod ports;
mod processes;
mod rights;
mod sampler;
mod seal;
mod sealing;
mod seat;
mod state;
mod symbols;
mod tap;
mod tolerances;
mod unrecorded;

pub use auto::{AutoMode, AutoOptions};
pub use daemon::{RecorderOptions, run};
pub use fuzz::{
    exercise_answers, exercise_baselines, exercise_days, exercise_image, exercise_tolerances,
};
pub use hot_keys::{HotKeyOptions, HotKeyScope};
pub use seal::{NO_ROOM, Sealer, finish, functions};
pub use state::StateDirs;
pub use symbols::{NAMER_FILES, name, own_memory};
pub use tap::Tap;
pub use tipme_kernel::{Attachable, CPUS_MAX, Detail, KernelCheck, check, count, open_programs};
