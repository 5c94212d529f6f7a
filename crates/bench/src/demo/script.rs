// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is typed when.

use crate::compositor::Compositor;
use crate::demo_faults::{DemoFault, InjectedJob, Scenario};
use crate::interrupt::InterruptFlag;
use crate::priority::Priority;
use crate::progress::ProgressListener;
use crate::screen::{Place, TerminalScreen};
use crate::seen::{DrawingWatch, latencies};
use crate::session::PrivateSession;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_desktop::hotkeys::{Bindings, HotKeyAction};
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::Nanos;

/// Typing before the fault: at five keys a second, forty keys.
const CALM: Nanos = Nanos::from_secs(8);
/// Typing under the fault.
const FAULT: Nanos = Nanos::from_secs(5);
/// A terminal that has drawn nothing for so long has worked everything off.
const QUIET: Duration = Duration::from_millis(400);
/// How long it may take to work off what was typed under the fault.
const SETTLE: Nanos = Nanos::from_secs(10);
/// How long that is waited for where nobody tells what is drawn.
const UNSEEN: Duration = Duration::from_secs(4);

fn open(place: &Place, fault: DemoFault) -> Result<Box<dyn TerminalScreen>> {
    let options = fault.options();
    Ok(match place {
        Place::X11 => Box::new(PrivateSession::start(options)?),
        Place::Wayland => Box::new(Compositor::start(options)?),
        Place::Compositor(name) => Box::new(Compositor::running(name, options)?),
    })
}

/// What was done, known without any recorder.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Injected")]
pub struct DemoInjection {
    /// Processes of the job that were seen, its root first.
    pub pids: Vec<u32>,
    /// The job's command; `null` where nothing was injected.
    pub job: Option<String>,
    /// Keys typed in all.
    pub keys: usize,
    /// Longest time from a key to the next drawing before the fault, as the display tells it; `null` where it does not.
    /// Where none came, it is the time until the end.
    pub calm_ms_max: Option<f64>,
    /// The same from the beginning of the fault on.
    pub fault_ms_max: Option<f64>,
}

/// The display with everything on it, ready to be typed at.
pub(super) struct DemoStage {
    seen: Option<DrawingWatch>,
    typist: Typist,
    job: Option<InjectedJob>,
    calm: Vec<Nanos>,
    fault: Vec<Nanos>,
    scenario: Box<dyn Scenario>,
    screen: Box<dyn TerminalScreen>,
}

impl DemoStage {
    pub(super) fn set(place: &Place, fault: DemoFault, launcher: &WorkerLauncher) -> Result<DemoStage> {
        let mut screen = open(place, fault)?;
        let scenario = fault.prepare(screen.folder(), launcher)?;
        let mut typist = screen.typist(Pace::default())?;
        screen.open_terminal(&mut typist, &scenario.prefix(), &scenario.program())?;
        let seen = screen.watch()?.map(|watch| DrawingWatch::watch(watch, QUIET)).transpose()?;
        Ok(DemoStage { seen, typist, job: None, calm: Vec::new(), fault: Vec::new(), scenario, screen })
    }

    pub(super) fn screen(&self) -> &dyn TerminalScreen {
        &*self.screen
    }

    /// Types at a human pace while nothing is wrong: what is usual is learnt from this.
    pub(super) fn type_calmly(&mut self, interrupt: &InterruptFlag, progress: &mut dyn ProgressListener) -> Result<()> {
        let keys = self.scenario.keys();
        self.calm = self.type_for(CALM, keys, "calm typing", interrupt, progress)?;
        Ok(())
    }

    /// Begins the fault and types on, until the terminal has answered.
    pub(super) fn suffer(&mut self, interrupt: &InterruptFlag, progress: &mut dyn ProgressListener) -> Result<()> {
        self.job = self.scenario.inject()?;
        let job = self.job.as_ref().map(|job| format!("the fault begins: {} (pid {})", job.what, job.root()));
        progress.line(&job.unwrap_or_else(|| "no fault is injected".to_string()));
        let keys = self.scenario.keys();
        self.fault = self.type_for(FAULT, keys, "typing on", interrupt, progress)?;
        self.settle(interrupt)
    }

    fn type_for(
        &mut self,
        time: Nanos,
        keys: &str,
        what: &str,
        interrupt: &InterruptFlag,
        progress: &mut dyn ProgressListener,
    ) -> Result<Vec<Nanos>> {
        let _priority = Priority::raised();
        let begin = clock::now();
        let mut told = u64::MAX;
        let mut presses = Vec::new();
        for key in keys.chars().cycle() {
            interrupt.check()?;
            let passed = clock::now().since(begin);
            if passed >= time {
                break;
            }
            let second = passed.0 / 1_000_000_000;
            if second != std::mem::replace(&mut told, second) {
                progress.line(&format!("{what} {second}/{} s", time.0 / 1_000_000_000));
            }
            presses.push(self.typist.key(key)?);
            self.job.as_mut().map(InjectedJob::observe);
        }
        Ok(presses)
    }

    /// Waits until the last key is answered and the terminal is quiet, or long enough.
    fn settle(&mut self, interrupt: &InterruptFlag) -> Result<()> {
        let begin = clock::now();
        let last = self.fault.last().copied().unwrap_or_default();
        let Some(seen) = &self.seen else { return interrupt.sleep(UNSEEN) };
        while clock::now().since(begin) < SETTLE && !(seen.answered(last) && seen.quiet_for() >= QUIET) {
            interrupt.sleep(Duration::from_millis(50))?;
            self.job.as_mut().map(InjectedJob::observe);
        }
        Ok(())
    }

    /// Presses the hot key that marks.
    pub(super) fn press_mark(&mut self) -> Result<()> {
        let Bindings(bindings) = Bindings::default();
        let mark = bindings.iter().find(|(action, _)| *action == HotKeyAction::Mark).context("no key marks")?;
        self.typist.chord(&mark.1)?;
        Ok(())
    }

    /// Ends the job and the session, and tells what was injected and seen.
    pub(super) fn finish(self) -> Result<DemoInjection> {
        let end = clock::now();
        let drawn = self.seen.map(DrawingWatch::finish).transpose()?;
        let slowest = |presses: &[Nanos]| Some(slowest(presses, drawn.as_ref()?, end).millis());
        let (root, pids) = self.job.as_ref().map_or((None, Vec::new()), |job| {
            (Some(job.root()), job.pids().iter().copied().filter(|pid| *pid != job.root()).collect())
        });
        Ok(DemoInjection {
            pids: root.into_iter().chain(pids).collect(),
            job: self.job.as_ref().map(|job| job.what.clone()),
            keys: self.calm.len() + self.fault.len(),
            calm_ms_max: slowest(&self.calm),
            fault_ms_max: slowest(&self.fault),
        })
    }
}

/// The longest time from one of these keys to the next drawing; until the end where none came.
fn slowest(presses: &[Nanos], drawn: &[Nanos], end: Nanos) -> Nanos {
    let waits = presses.iter().zip(latencies(presses, drawn));
    waits.map(|(press, latency)| latency.unwrap_or(end.since(*press))).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_nothing_answered_has_waited_until_the_end() {
        let (presses, end) = ([Nanos(10), Nanos(30)], Nanos(100));
        assert_eq!(slowest(&presses, &[Nanos(12), Nanos(35)], end), Nanos(5));
        assert_eq!(slowest(&presses, &[Nanos(12)], end), Nanos(70));
        assert_eq!(slowest(&[], &[], end), Nanos(0));
    }
}
