// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives an unmodified application from a script, and records the events with their times.
//!
//! Each repeat restarts the application in a fresh home folder, waits for its window, plays the
//! script and ends the application. The results are raw: the time of each input and of each
//! drawing, and the incidents of a recorder that ran beside it, if any. Matching drawings with
//! inputs is left to others.

mod application;
mod counters;
mod focus;
mod player;
mod stage;

use crate::alone::MachineLock;
use crate::interrupt::InterruptFlag;
use crate::priority::Priority;
use crate::process::{is_root, missing};
use crate::programs::SidecarRecorder;
use crate::progress::ProgressListener;
use crate::screen::Place;
use crate::script::Script;
use crate::seen::DrawingWatch;
use anyhow::{Context, Result, bail};
use application::MeasuredApplication;
pub use counters::{CounterReading, Usage};
use player::Player;
pub use player::{OperationUsage, PlayerCost, SentInput};
pub use stage::MeasureDisplay;
use stage::{MeasureStage, record};
use std::path::PathBuf;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_record::Nanos;

/// Time without drawing after which an application is at rest.
const QUIET: Duration = Duration::from_millis(300);
/// The same before the application starts: short, since a shared display may never be still for
/// long.
const STILL: Duration = Duration::from_millis(5);
/// Interval between checks for the application to be at rest.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Options of a measurement.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    pub script: Script,
    /// The application and its arguments; `{home}` stands for its home folder.
    pub application: Vec<String>,
    pub display: MeasureDisplay,
    pub repeat: usize,
    /// Path of `tipme` if its recorder is to run beside the measurement.
    pub recorder: Option<PathBuf>,
}

/// Times of the application's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ApplicationStart {
    /// Creation of the process.
    pub begun: Nanos,
    /// First drawing, if any.
    pub first: Option<Nanos>,
    /// Focus on a window of the application.
    pub focused: Nanos,
    /// Last drawing before it was at rest.
    pub settled: Nanos,
}

/// Raw results of one repeat.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MeasureRepeat {
    /// Counted from 0.
    pub number: usize,
    pub started: ApplicationStart,
    /// Start of the first step, and end of the last one.
    pub begun: Nanos,
    pub ended: Nanos,
    pub sent: Vec<SentInput>,
    /// Times of all drawings on the screen, by any program.
    pub drawn: Vec<Nanos>,
    /// Resources that the application used, grouped by the operation in progress at that time.
    pub usage: Vec<OperationUsage>,
    /// The application's processes at the end.
    pub pids: Vec<u32>,
    /// Incidents of the recorder, in order of time; removed once the repeat is handed over.
    pub incidents: Vec<PathBuf>,
    pub driver: PlayerCost,
    /// Number of waits for a still screen that timed out.
    pub restless: u64,
}

/// Plays the script as often as requested, and hands over each completed repeat.
///
/// Everything that it started has ended when it returns, also after an error or an interrupt. Only
/// one repeat runs at a time on this machine: other measurements get their turn between two
/// repeats.
pub fn run(
    options: &MeasureOptions,
    interrupt: &InterruptFlag,
    progress: &mut dyn ProgressListener,
    each: &mut dyn FnMut(MeasureRepeat) -> Result<()>,
) -> Result<()> {
    require(options)?;
    progress.line(&format!("connecting to {}", options.display.about()));
    let stage = MeasureStage::open(&options.display)?;
    let recorder = match &options.recorder {
        Some(tipme) => {
            progress.line("arming the recorder");
            Some(record(tipme, &stage, interrupt)?)
        }
        None => None,
    };
    for number in 0..options.repeat {
        let alone = MachineLock::wait_in_turn(interrupt, progress)?;
        progress.line(&format!("repeat {} of {}", number + 1, options.repeat));
        let repeat = play_once(options, &stage, recorder.as_ref(), number, interrupt)?;
        drop(alone);
        let incidents = repeat.incidents.clone();
        each(repeat)?;
        for incident in incidents {
            std::fs::remove_file(&incident)
                .with_context(|| format!("cannot remove {}", incident.display()))?;
        }
    }
    Ok(())
}

/// Returns `true` if this user can run a recorder beside the measurement.
pub fn may_record() -> bool {
    is_root()
}

fn require(options: &MeasureOptions) -> Result<()> {
    let program =
        options.application.first().context("no application is named; put it behind --")?;
    if !program.contains('/') && !missing(&[program]).is_empty() {
        bail!("not installed: {program}; install it, or name another application behind --");
    }
    match &options.display {
        MeasureDisplay::Own(Place::Compositor(name)) if options.recorder.is_none() => bail!(
            "only a recorder knows the keyboard focus on {name}, and without it keys could go to another window; run tipme as root \
             and without --no-trace, or use a private compositor: --display wayland"
        ),
        _ => Ok(()),
    }
}

fn play_once(
    options: &MeasureOptions,
    stage: &MeasureStage,
    recorder: Option<&SidecarRecorder>,
    number: usize,
    interrupt: &InterruptFlag,
) -> Result<MeasureRepeat> {
    let seen = watch(stage)?;
    // Plugged in first, so that the application sees the devices from the beginning.
    let typist = stage.typist()?;
    let focus = stage.focus_watch(recorder, &seen)?;
    let mut application = MeasuredApplication::start(&options.application, &options.script, stage)?;
    let focused = application.wait_for_window(&focus, options.script.start_within, interrupt)?;
    wait_for_rest(&mut application, &seen, options.script.start_within, interrupt)?;
    let settled = clock::now().before(Nanos(seen.quiet_for().as_nanos() as u64));
    let begun = clock::now();
    let played =
        Player::new(&mut application, recorder, &seen, typist, interrupt).play(&options.script)?;
    let (ended, pids) = (clock::now(), application.pids());
    let started = ApplicationStart {
        begun: application.begun,
        first: None,
        focused,
        settled: settled.max(focused),
    };
    let drawn = seen.finish()?;
    drop(application);
    let first = drawn.iter().find(|at| **at > started.begun).copied();
    Ok(MeasureRepeat {
        number,
        started: ApplicationStart { first, ..started },
        begun,
        ended,
        sent: played.sent,
        drawn,
        usage: played.usage,
        pids,
        incidents: played.incidents,
        driver: played.driver,
        restless: played.restless,
    })
}

/// Starts a thread that watches the screen, at a higher priority than everything that draws.
fn watch(stage: &MeasureStage) -> Result<DrawingWatch> {
    let watch = stage.watch()?;
    let _priority = Priority::raised();
    DrawingWatch::watch(watch, STILL)
}

/// Waits until the application stops drawing, which completes its start.
fn wait_for_rest(
    application: &mut MeasuredApplication,
    seen: &DrawingWatch,
    timeout: Duration,
    interrupt: &InterruptFlag,
) -> Result<()> {
    let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
    while seen.quiet_for() < QUIET && clock::now() < deadline {
        application.expect_alive("while it started")?;
        interrupt.sleep(POLL_INTERVAL)?;
    }
    Ok(())
}
