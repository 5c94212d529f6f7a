// SPDX-License-Identifier: MIT OR Apache-2.0
//! By what a benchmark reaches the machine: it asks for a display, does turns on it, and types and watches there.
//!
//! What measures knows these traits only. So a test can put a machine in place of the real one that answers as late as
//! the test says, on a clock that stands still in between.

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

/// What is looked at has drawn nothing for so long before the first key.
pub(crate) const QUIET: Duration = Duration::from_millis(200);
/// How long a window may take to come, and to get the focus.
pub(crate) const WINDOW_TIMEOUT: Duration = Duration::from_secs(60);

/// The programs that benchmarks start.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `tipme`, which records, marks and manages.
    pub tipme: PathBuf,
    /// How this program starts worker programs.
    pub launcher: WorkerLauncher,
}

/// The machine on which is measured, and the user who waits for it; or what stands in for both.
pub trait BenchDriver: ProgressListener {
    fn programs(&self) -> Programs;

    /// Set where the user wants it to end.
    fn interrupt(&self) -> InterruptFlag;

    /// A display of its own, or a compositor that runs. Fails with what is not installed of the programs that are
    /// needed there.
    fn stage(&mut self, place: &Place, options: SessionOptions, needed: &[&str]) -> Result<Box<dyn BenchStage + '_>>;
}

/// The time, and waiting for it.
pub trait Clock {
    /// CLOCK_MONOTONIC.
    fn now(&self) -> Nanos;

    /// Fails early where it is to end.
    fn sleep(&mut self, time: Duration) -> Result<()>;
}

/// A private display, and what is done around it in turns. Its programs end with it.
pub trait BenchStage: ProgressListener + Clock {
    /// A folder that goes with it.
    fn folder(&self) -> &Path;

    /// How a program reaches it; fails where it is none of X11.
    fn target(&self) -> Result<DisplayTarget>;

    /// How fast a CPU is, so that loads are the same in all turns.
    fn speed(&self) -> Speed;

    /// Opens a terminal that runs a program, and waits until it has the focus.
    fn open_terminal(&mut self, program: &[OsString]) -> Result<()>;

    /// Opens a program with a window, in the terminal's place, and waits until it has the focus.
    fn open_program(&mut self, name: &str, command: Command) -> Result<()>;

    /// Opens a further program with a window, and waits until it has the focus.
    fn open_window(&mut self, name: &'static str, command: Command) -> Result<()>;

    /// Makes what a build needs; what it will do, in words.
    fn prepare_build(&mut self) -> Result<String>;

    /// Has a recorder run from now on where only that can tell the manager who has the focus.
    fn record_focus(&mut self) -> Result<()>;

    /// Who types and watches from now on, as soon as nothing has been drawn for a while.
    fn user(&mut self, habits: Habits) -> Result<Box<dyn User + '_>>;

    /// Does what the arm does, lets the job run, and measures; what the job did meanwhile. Everything is as it was when it
    /// returns.
    fn turn(
        &mut self,
        around: &Around<'_>,
        measure: &mut dyn FnMut(&mut dyn BenchStage) -> Result<()>,
    ) -> Result<Option<Achieved>>;
}

/// What is done while something is measured.
pub struct Around<'a> {
    pub arm: Arm,
    pub manager: &'a ManagerProgram,
    /// What runs beside; `None` for nothing.
    pub job: Option<BackgroundJob>,
}

/// What runs beside.
#[derive(Debug)]
pub enum BackgroundJob {
    Load(LoadOptions),
    /// What was prepared, again and again.
    Build {
        own_session: bool,
    },
}

/// What somebody looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// The terminal, or the program in its place.
    Terminal,
    Screen,
}

/// How somebody types, and what they look at.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    pub pace: Pace,
    /// Nothing has been drawn for so long before the first key.
    pub quiet: Duration,
    pub watch: Watch,
}

impl Habits {
    /// Of who types at a pace and looks at the terminal.
    pub(crate) fn at_terminal(pace: Pace) -> Habits {
        Habits { pace, quiet: QUIET, watch: Watch::Terminal }
    }
}

/// Somebody in front of the display.
pub trait User: ProgressListener + Clock {
    /// Presses a key at the user's pace; returns when. Fails where it is to end.
    fn key(&mut self, letter: char) -> Result<Nanos>;

    /// Clicks at a place of a window that was opened, and waits until that has the focus.
    fn focus(&mut self, window: &'static str, at: (i16, i16)) -> Result<()>;

    /// When something was drawn last.
    fn last_drawing(&self) -> Nanos;

    /// Page faults that waited for a disk, of display server, terminal and its program, since they began.
    fn page_ins(&self) -> u64;

    /// How long the threads of the same have waited for a CPU since they began, together; `None` where that is not told.
    fn run_queue_delay(&self) -> Option<Duration>;

    /// Stops looking; the times of all drawings, in order.
    fn drawings(self: Box<Self>) -> Result<Vec<Nanos>>;
}
