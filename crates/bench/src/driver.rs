// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interfaces between a benchmark and the machine: to get a display, to do turns on it, and to type
//! and watch there.
//!
//! Benchmarks know only these traits, so a test can replace the machine by one with given latencies
//! and a clock that stands still in between.

use crate::arms::{Arm, ManagerProgram};
use crate::interrupt::InterruptFlag;
use crate::load::{Achieved, LoadOptions, Speed};
use crate::progress::ProgressListener;
use crate::screen::Place;
use crate::session::SessionOptions;
use crate::worker::WorkerLauncher;
use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tipme_desktop::DisplayTarget;
use tipme_desktop::inject::Pace;
use tipme_record::Nanos;

/// Time without drawing that is required before the first key.
pub(crate) const QUIET: Duration = Duration::from_millis(200);
/// Maximum time until a window opens and gets the focus.
pub(crate) const WINDOW_TIMEOUT: Duration = Duration::from_secs(60);

/// Programs that benchmarks start.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Path of `tipme`, which records, marks and manages.
    pub tipme: PathBuf,
    /// Starts worker programs.
    pub launcher: WorkerLauncher,
}

/// The measured machine and its user, or a simulation of both.
pub trait BenchDriver: ProgressListener {
    fn programs(&self) -> Programs;

    /// Flag that is set when the user wants the benchmark to end.
    fn interrupt(&self) -> InterruptFlag;

    /// Opens a private display or connects to a running compositor. Fails with the missing programs
    /// among `needed`.
    fn stage(
        &mut self,
        place: &Place,
        options: SessionOptions,
        needed: &[&str],
    ) -> Result<Box<dyn BenchStage + '_>>;
}

/// The time, and waiting for it.
pub trait Clock {
    /// CLOCK_MONOTONIC.
    fn now(&self) -> Nanos;

    /// Sleeps; fails early on an interrupt.
    fn sleep(&mut self, time: Duration) -> Result<()>;
}

/// A private display, with turns on it. Its programs end with it.
pub trait BenchStage: ProgressListener + Clock {
    /// Folder that is removed with the stage.
    fn folder(&self) -> &Path;

    /// Address of the display for clients; fails if it is not an X11 display.
    fn target(&self) -> Result<DisplayTarget>;

    /// Speed of a CPU, so that loads are the same in all turns.
    fn speed(&self) -> Speed;

    /// Opens a terminal that runs a program, and waits until it has the focus.
    fn open_terminal(&mut self, program: &[OsString]) -> Result<()>;

    /// Opens a program with a window in place of the terminal, and waits until it has the focus.
    fn open_program(&mut self, name: &str, command: Command) -> Result<()>;

    /// Opens a further program with a window, and waits until it has the focus.
    fn open_window(&mut self, name: &'static str, command: Command) -> Result<()>;

    /// Prepares a build; returns its description.
    fn prepare_build(&mut self) -> Result<String>;

    /// Runs a recorder from now on if the manager needs it to learn the focus.
    fn record_focus(&mut self) -> Result<()>;

    /// Returns a simulated user, who types and watches, as soon as nothing has been drawn for a
    /// while.
    fn user(&mut self, habits: Habits) -> Result<Box<dyn User + '_>>;

    /// Sets up the arm, runs the job, and measures; returns the work of the job. Restores
    /// everything before it returns.
    fn turn(
        &mut self,
        setup: &TurnSetup<'_>,
        measure: &mut dyn FnMut(&mut dyn BenchStage) -> Result<()>,
    ) -> Result<Option<Achieved>>;
}

/// Arm and job of a turn.
pub struct TurnSetup<'a> {
    pub arm: Arm,
    pub manager: &'a ManagerProgram,
    /// Job that runs beside the measurement, if any.
    pub job: Option<BackgroundJob>,
}

/// A job that runs beside the measurement.
#[derive(Debug)]
pub enum BackgroundJob {
    Load(LoadOptions),
    /// Repeats the prepared build.
    Build {
        own_session: bool,
    },
}

/// Windows that a user watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// The terminal, or the program in its place.
    Terminal,
    Screen,
}

/// Typing pace of a user, and the windows to watch.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    pub pace: Pace,
    /// Time without drawing that is required before the first key.
    pub quiet: Duration,
    pub watch: Watch,
}

impl Habits {
    /// Typing at a pace, watching the terminal.
    pub(crate) fn at_terminal(pace: Pace) -> Habits {
        Habits { pace, quiet: QUIET, watch: Watch::Terminal }
    }
}

/// A user in front of the display.
pub trait User: ProgressListener + Clock {
    /// Presses a key at the user's pace; returns the time of the press. Fails on an interrupt.
    fn key(&mut self, letter: char) -> Result<Nanos>;

    /// Clicks at a position in an opened window, and waits until it has the focus.
    fn focus(&mut self, window: &'static str, at: (i16, i16)) -> Result<()>;

    /// Time of the last drawing.
    fn last_drawing(&self) -> Nanos;

    /// Major page faults of the display server, the terminal and its program since they began.
    fn page_ins(&self) -> u64;

    /// Total run-queue delay of their threads since they began; `None` if not available.
    fn run_queue_delay(&self) -> Option<Duration>;

    /// Stops watching; returns the times of all drawings, in order.
    fn drawings(self: Box<Self>) -> Result<Vec<Nanos>>;
}
