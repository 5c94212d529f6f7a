// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plays a script at an application, at a human pace, and records the time of each input.

use super::application::MeasuredApplication;
use super::counters::Usage;
use crate::interrupt::InterruptFlag;
use crate::priority::Priority;
use crate::programs::SidecarRecorder;
use crate::script::{Input, Script, ScriptAct, ScriptStep};
use crate::seen::DrawingWatch;
use crate::typist::nanos;
use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_desktop::inject::Typist;
use tipme_measure::InputClass;
use tipme_record::Nanos;

/// Time after which the recording is saved in a typing pause: the recorder's memory is bounded.
const MARK_EVERY: Nanos = Nanos::from_secs(30);
/// Time without drawing that is required before a mark, and at the end.
const QUIET: Duration = Duration::from_millis(500);
/// Maximum wait for that.
const QUIET_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between checks for a drawing.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// An input, with the time right before it went to the display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentInput {
    pub at: Nanos,
    pub label: String,
    pub class: InputClass,
}

/// Resources used from an input until the next one of another operation. Inputs of one operation
/// have the same label and class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationUsage {
    pub label: Arc<str>,
    pub class: InputClass,
    pub usage: Usage,
}

/// Resources that the player itself used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlayerCost {
    /// CPU time, including that of the thread that watches the screen.
    pub cpu: Nanos,
    /// Requests that inject input.
    pub requests: u64,
}

/// Results of playing a script.
#[derive(Default)]
pub(super) struct ScriptPlayback {
    pub(super) sent: Vec<SentInput>,
    pub(super) usage: Vec<OperationUsage>,
    pub(super) incidents: Vec<PathBuf>,
    pub(super) driver: PlayerCost,
    /// Number of waits for idle that timed out.
    pub(super) restless: u64,
}

pub(super) struct Player<'a> {
    application: &'a mut MeasuredApplication,
    recorder: Option<&'a SidecarRecorder>,
    seen: &'a DrawingWatch,
    typist: Typist,
    interrupt: &'a InterruptFlag,
    played: ScriptPlayback,
    marked: Nanos,
    /// Operation of the last input, with the resource counts at its first input in a row.
    current: Option<OperationUsage>,
    priority: Option<Priority>,
}

impl<'a> Player<'a> {
    pub(super) fn new(
        application: &'a mut MeasuredApplication,
        recorder: Option<&'a SidecarRecorder>,
        seen: &'a DrawingWatch,
        typist: Typist,
        interrupt: &'a InterruptFlag,
    ) -> Player<'a> {
        let (played, marked) = (ScriptPlayback::default(), clock::now());
        Player {
            application,
            recorder,
            seen,
            typist,
            interrupt,
            played,
            marked,
            current: None,
            priority: None,
        }
    }

    /// Plays the whole script, and waits until the screen is still.
    pub(super) fn play(mut self, script: &Script) -> Result<ScriptPlayback> {
        let (cpu, requests) = (cpu_time(), self.typist.requests());
        self.priority = Some(Priority::raised());
        for step in &script.steps {
            self.interrupt.check()?;
            self.step(step, script)?;
        }
        self.wait_for_idle(QUIET, QUIET_TIMEOUT)?;
        self.count(None);
        let requests = self.typist.requests() - requests;
        self.played.driver = PlayerCost { cpu: cpu_time().since(cpu), requests };
        if self.recorder.is_some() {
            self.mark()?;
        }
        Ok(self.played)
    }

    fn step(&mut self, step: &ScriptStep, script: &Script) -> Result<()> {
        match step {
            ScriptStep::Pace(pace) => self.typist.set_pace(*pace),
            ScriptStep::Pause(time) => self.interrupt.sleep(*time)?,
            ScriptStep::Idle { quiet, at_most } => self.wait_for_idle(*quiet, *at_most)?,
            ScriptStep::Input(input) => {
                self.check_on(script)?;
                self.input(input)?;
            }
        }
        Ok(())
    }

    /// Checks before each input that the application lives and that the recorder's memory does not
    /// overflow.
    fn check_on(&mut self, script: &Script) -> Result<()> {
        let done = self.played.sent.len();
        self.application.expect_alive(&format!("after {done} of {} inputs", script.inputs()))?;
        if self.recorder.is_some() && clock::now().since(self.marked) > MARK_EVERY {
            self.wait_for_idle(QUIET, QUIET_TIMEOUT)?;
            self.mark()?;
        }
        Ok(())
    }

    fn input(&mut self, input: &Input) -> Result<()> {
        self.count(Some(input));
        let at = match &input.act {
            ScriptAct::Character(letter) => self.typist.key(*letter)?,
            ScriptAct::Key(chord) => self.typist.press(chord)?,
            ScriptAct::Click { x, y, button } => self.typist.click_at(*x, *y, *button)?,
            ScriptAct::Move { x, y } => self.typist.point_at(*x, *y)?,
            ScriptAct::Scroll { down } => self.typist.scroll(*down)?,
        };
        self.played.sent.push(SentInput { at, label: input.label.to_string(), class: input.class });
        Ok(())
    }

    /// Attributes the resources used since another operation to the current one.
    fn count(&mut self, next: Option<&Input>) {
        if let (Some(current), Some(next)) = (&self.current, next)
            && (&current.label, current.class) == (&next.label, next.class)
        {
            return;
        }
        let now = self.application.usage();
        if let Some(OperationUsage { label, class, usage }) = self.current.take() {
            self.played.usage.push(OperationUsage { label, class, usage: now.since(usage) });
        }
        self.current = next.map(|Input { label, class, .. }| OperationUsage {
            label: Arc::clone(label),
            class: *class,
            usage: now,
        });
    }

    /// Waits until nothing was drawn for `quiet`, and for at least as long after the last input.
    fn wait_for_idle(&mut self, quiet: Duration, at_most: Duration) -> Result<()> {
        let begin = clock::now();
        let last = self.played.sent.last().map_or(Nanos(0), |sent| sent.at);
        while self.seen.quiet_for() < quiet || clock::now().since(last) < nanos(quiet) {
            if clock::now().since(begin) > nanos(at_most) {
                self.played.restless += 1;
                break;
            }
            self.interrupt.sleep(POLL_INTERVAL)?;
        }
        Ok(())
    }

    /// Lowers the priority first, so that the programs that make the mark do not inherit that of
    /// the typing.
    fn mark(&mut self) -> Result<()> {
        let Some(recorder) = self.recorder else { return Ok(()) };
        self.priority = None;
        self.played.incidents.push(recorder.mark(self.interrupt)?);
        self.marked = clock::now();
        self.priority = Some(Priority::raised());
        Ok(())
    }
}

/// CPU time of this process so far, with all its threads.
fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
