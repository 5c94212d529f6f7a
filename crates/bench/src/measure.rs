// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives an unmodified application from a script, and notes what happens when.
//!
//! Each repeat restarts the application in a fresh home folder, waits for its window, plays the script and
//! ends it. What is noted is raw: when each input was sent, when something was drawn, and the incidents of
//! a recorder that ran beside it, if one did. Which drawing answers which input is for others to say.

mod application;
mod counters;
mod focus;
mod player;
mod stage;

use crate::alone::MachineLock;
use crate::cpu_work::fixed_work;
use crate::interrupt::InterruptFlag;
use crate::priority::Priority;
use crate::process::missing;
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
use stage::{MeasureStage, ProductRecorder};
use std::path::PathBuf;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_record::Nanos;

/// An application is at rest once the screen has been still for so long.
const QUIET: Duration = Duration::from_millis(300);
/// The same before it is started: short, since on a display with others it may never be still for long.
const STILL: Duration = Duration::from_millis(5);
/// How often a waiter looks whether the application is at rest.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What is measured, and how.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    pub script: Script,
    /// The application and its arguments; `{home}` stands for its home folder.
    pub application: Vec<String>,
    pub display: MeasureDisplay,
    pub repeat: usize,
    /// The `tipme` executable, where its recorder shall run beside.
    pub recorder: Option<PathBuf>,
}

/// How the application came up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ApplicationStart {
    /// The process was made.
    pub begun: Nanos,
    /// Something was drawn for the first time.
    pub first: Option<Nanos>,
    /// A window of its own had the focus.
    pub focused: Nanos,
    /// The last drawing before it was at rest.
    pub settled: Nanos,
}

/// One repeat, raw.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MeasureRepeat {
    /// From 0 on.
    pub number: usize,
    pub started: ApplicationStart,
    /// The begin of the first step, and the end of the last.
    pub begun: Nanos,
    pub ended: Nanos,
    pub sent: Vec<SentInput>,
    /// When something was drawn on the screen, whoever drew it.
    pub drawn: Vec<Nanos>,
    /// What the application used, by the operation whose inputs it was given meanwhile.
    pub usage: Vec<OperationUsage>,
    /// The application's processes at the end.
    pub pids: Vec<u32>,
    /// What the recorder kept, in the order of time; gone once the repeat was handed over.
    pub incidents: Vec<PathBuf>,
    pub driver: PlayerCost,
    /// Waits for a still screen that ended because they took too long.
    pub restless: u64,
    /// CPU time of a fixed piece of work, in the middle of before the start and after the end: how fast the CPU was.
    pub work: Nanos,
}

/// Plays the script as often as is asked, and hands over each repeat when it is done.
///
/// Everything that was started has ended when it returns, also by an error or an interrupt. One
/// repeat at a time on this machine: others wait, and get their turn between two repeats.
pub fn run(
    options: &MeasureOptions,
    interrupt: &InterruptFlag,
    progress: &mut dyn ProgressListener,
    each: &mut dyn FnMut(MeasureRepeat) -> Result<()>,
) -> Result<()> {
    require(options)?;
    progress.line(&format!("connecting to {}", options.display.about()));
    let stage = MeasureStage::set(&options.display)?;
    let recorder = match &options.recorder {
        Some(tipme) => {
            progress.line("arming the recorder");
            Some(ProductRecorder::start(tipme, &stage, interrupt)?)
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
            std::fs::remove_file(&incident).with_context(|| format!("cannot remove {}", incident.display()))?;
        }
    }
    Ok(())
}

/// Whether this user may have a recorder beside.
pub fn may_record() -> bool {
    rustix::process::geteuid().is_root()
}

fn require(options: &MeasureOptions) -> Result<()> {
    let program = options.application.first().context("no application is named; put it behind --")?;
    if !program.contains('/') && !missing(&[program]).is_empty() {
        bail!("not installed: {program}; install it, or name another application behind --");
    }
    match &options.display {
        MeasureDisplay::Own(Place::Compositor(name)) if options.recorder.is_none() => bail!(
            "only the recorder knows who has the keyboard focus on {name}, and no key may go elsewhere: run it as root, \
             and without --no-trace; or use a private compositor: --display wayland"
        ),
        _ => Ok(()),
    }
}

fn play_once(
    options: &MeasureOptions,
    stage: &MeasureStage,
    recorder: Option<&ProductRecorder>,
    number: usize,
    interrupt: &InterruptFlag,
) -> Result<MeasureRepeat> {
    let work = fixed_work();
    let seen = watch(stage)?;
    // Plugged in first, so that the application is told of them as soon as it asks.
    let typist = stage.typist()?;
    let focus = stage.focus_watch(recorder, &seen)?;
    let mut application = MeasuredApplication::start(&options.application, &options.script, stage)?;
    let focused = application.wait_for_window(&focus, options.script.start_within, interrupt)?;
    wait_for_rest(&mut application, &seen, options.script.start_within, interrupt)?;
    let settled = clock::now().before(Nanos(seen.quiet_for().as_nanos() as u64));
    let begun = clock::now();
    let played = Player::new(&mut application, recorder, &seen, typist, interrupt).play(&options.script)?;
    let (ended, pids) = (clock::now(), application.pids());
    let started = ApplicationStart { begun: application.begun, first: None, focused, settled: settled.max(focused) };
    let drawn = seen.finish()?;
    drop(application);
    let work = (work + fixed_work()) / 2;
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
        work: Nanos(work.as_nanos() as u64),
    })
}

/// A thread that watches the screen, ahead of all that draws.
fn watch(stage: &MeasureStage) -> Result<DrawingWatch> {
    let watch = stage.watch()?;
    let _priority = Priority::raised();
    DrawingWatch::watch(watch, STILL)
}

/// Waits until the application draws no more: it has started.
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
