// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fault on a display: a user types at a program on a terminal, calmly and then during the fault.

use super::scenario::{InjectedFault, Scenario, Site};
use super::{Fault, JudgedFault, judge};
use crate::interrupt::InterruptFlag;
use crate::priority::Priority;
use crate::screen::TerminalScreen;
use crate::seen::{DrawingWatch, latencies};
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tempfile::TempDir;
use tipme_desktop::clock;
use tipme_desktop::hotkeys::{Bindings, HotKeyAction};
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::Nanos;

/// Time without drawing after which a terminal has processed all its input.
const QUIET: Duration = Duration::from_millis(400);
/// Maximum time to process the keys typed during the fault.
const SETTLE: Nanos = Nanos::from_secs(10);
/// The same if the display does not report drawings.
const UNSEEN: Duration = Duration::from_secs(4);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A terminal on a display, with a prepared fault. Dropping it closes the terminal.
pub(crate) struct FaultStage<'a> {
    seen: Option<DrawingWatch>,
    typist: Typist,
    injection: Option<InjectedFault>,
    calm: Vec<Nanos>,
    later: Vec<Nanos>,
    scenario: Option<Scenario>,
    _folder: TempDir,
    pub(crate) screen: &'a mut dyn TerminalScreen,
}

/// Typing, injected fault and their effect on the screen, measured without the recorder.
#[derive(Default)]
pub(crate) struct StageOutcome {
    pub(crate) injection: Option<InjectedFault>,
    /// Time from each key before the fault to the next drawing, in milliseconds; to the end if
    /// there was none. `None` if the display does not report drawings.
    pub(crate) calm_ms: Option<Vec<f64>>,
    /// The same since the beginning of the fault.
    pub(crate) later_ms: Option<Vec<f64>>,
    pub(crate) keys: usize,
}

impl<'a> FaultStage<'a> {
    /// Opens the terminal of a fault.
    pub(crate) fn open(
        screen: &'a mut dyn TerminalScreen,
        fault: &Fault,
        launcher: &WorkerLauncher,
    ) -> Result<FaultStage<'a>> {
        let folder = tempfile::Builder::new().prefix("fault-").tempdir_in(screen.folder());
        let folder = folder.context("cannot make a folder")?;
        // Programs on the terminal may run as another user.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))
            .context("cannot make the folder readable")?;
        let site = Site {
            folder: folder.path().to_owned(),
            x11: screen.x11(),
            launcher: launcher.clone(),
        };
        let scenario = fault.prepare(&site)?;
        let typist = screen.typist(Pace::default())?;
        let (injection, calm, later, scenario) = (None, Vec::new(), Vec::new(), Some(scenario));
        let mut stage = FaultStage {
            seen: None,
            typist,
            injection,
            calm,
            later,
            scenario,
            _folder: folder,
            screen,
        };
        stage.open_terminal()?;
        Ok(stage)
    }

    fn open_terminal(&mut self) -> Result<()> {
        let scenario = self.scenario.as_ref().context("there is no fault")?;
        self.screen.open_terminal(&mut self.typist, &scenario.prefix, &scenario.program)?;
        // The watching thread inherits the raised priority.
        let _priority = Priority::raised();
        self.seen =
            self.screen.watch()?.map(|watch| DrawingWatch::watch(watch, QUIET)).transpose()?;
        Ok(())
    }

    /// Types at a human pace before the fault, to learn the usual latency. `goes_on` gets the
    /// number of keys and the elapsed time, and ends the typing by returning `false`.
    pub(crate) fn type_calmly(
        &mut self,
        interrupt: &InterruptFlag,
        goes_on: &mut dyn FnMut(usize, Nanos) -> bool,
    ) -> Result<()> {
        self.calm = self.type_keys(interrupt, goes_on)?;
        self.settle(self.calm.last().copied().unwrap_or_default(), interrupt)
    }

    /// Begins the fault; returns its job for output.
    pub(crate) fn inject(&mut self) -> Result<Option<String>> {
        let terminal = self.screen.terminal_pid().context("no terminal is open")?;
        let scenario = self.scenario.as_mut().context("there is no fault")?;
        self.injection = scenario.inject(terminal).context("cannot begin the fault")?;
        Ok(self.injection.as_ref().map(|injection| match injection.root() {
            Some(root) => format!("{} (pid {root})", injection.what),
            None => injection.what.clone(),
        }))
    }

    /// Keeps typing during the fault, and waits until the terminal has answered.
    pub(crate) fn suffer(
        &mut self,
        interrupt: &InterruptFlag,
        goes_on: &mut dyn FnMut(usize, Nanos) -> bool,
    ) -> Result<()> {
        self.later = self.type_keys(interrupt, goes_on)?;
        self.settle(self.later.last().copied().unwrap_or_default(), interrupt)
    }

    /// Waits until a key is answered and the terminal is quiet, or for a maximum time.
    fn settle(&mut self, last: Nanos, interrupt: &InterruptFlag) -> Result<()> {
        let begun = clock::now();
        let Some(seen) = &self.seen else { return interrupt.sleep(UNSEEN) };
        while clock::now().since(begun) < SETTLE
            && !(seen.answered(last) && seen.quiet_for() >= QUIET)
        {
            interrupt.sleep(POLL_INTERVAL)?;
            self.injection.as_mut().map(InjectedFault::observe);
        }
        Ok(())
    }

    fn type_keys(
        &mut self,
        interrupt: &InterruptFlag,
        goes_on: &mut dyn FnMut(usize, Nanos) -> bool,
    ) -> Result<Vec<Nanos>> {
        let _priority = Priority::raised();
        let begun = clock::now();
        let keys = self.scenario.as_ref().context("there is no fault")?.keys;
        let mut presses = Vec::new();
        for key in keys.chars().cycle() {
            interrupt.check()?;
            if !goes_on(presses.len(), clock::now().since(begun)) {
                break;
            }
            presses.push(self.typist.key(key)?);
            self.injection.as_mut().map(InjectedFault::observe);
        }
        Ok(presses)
    }

    /// Presses the hot key for a mark.
    pub(crate) fn press_mark(&mut self) -> Result<()> {
        let Bindings(bindings) = Bindings::default();
        let mark = bindings
            .iter()
            .find(|(action, _)| *action == HotKeyAction::Mark)
            .context("no hot key marks")?;
        self.typist.chord(&mark.1)?;
        Ok(())
    }

    /// Ends the fault.
    pub(crate) fn finish(mut self) -> Result<StageOutcome> {
        let end = clock::now();
        let drawn = self.seen.take().map(DrawingWatch::finish).transpose()?;
        let [calm_ms, later_ms] =
            [&self.calm, &self.later].map(|presses| Some(waits_ms(presses, drawn.as_ref()?, end)));
        let keys = self.calm.len() + self.later.len();
        Ok(StageOutcome { injection: self.injection.take(), calm_ms, later_ms, keys })
    }
}

impl Drop for FaultStage<'_> {
    /// Drops each part before those that it uses: disk and control group must be free of programs.
    fn drop(&mut self) {
        self.injection = None;
        self.screen.close_terminal();
        self.scenario = None;
    }
}

impl StageOutcome {
    /// Compares a diagnosis with the fault.
    pub(crate) fn judge(&self, fault: &Fault, verdict: &Value) -> JudgedFault {
        judge(fault.kinds, &self.pids(), self.names(), verdict)
    }

    /// Culprits that are processes, the job's root first.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.injection.as_ref().map(InjectedFault::pids).unwrap_or_default()
    }

    /// Other names of the culprit.
    pub(crate) fn names(&self) -> &[String] {
        self.injection.as_ref().map_or(&[], |injection| &injection.names)
    }
}

/// Returns the longest of some waits.
pub(crate) fn slowest(waits_ms: &[f64]) -> f64 {
    waits_ms.iter().copied().fold(0.0, f64::max)
}

/// Returns the time from each key to the next drawing; to the end if there was none.
fn waits_ms(presses: &[Nanos], drawn: &[Nanos], end: Nanos) -> Vec<f64> {
    let waits = presses.iter().zip(latencies(presses, drawn));
    waits.map(|(press, latency)| latency.unwrap_or(end.since(*press)).millis()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanswered_key_waits_until_the_end() {
        let (presses, end) = ([Nanos(10), Nanos(30)], Nanos(100));
        for (drawn, ns) in [(&[Nanos(12), Nanos(35)][..], 5.0), (&[Nanos(12)], 70.0)] {
            assert_eq!(slowest(&waits_ms(&presses, drawn, end)) * 1e6, ns);
        }
        assert!(waits_ms(&[], &[], end).is_empty());
    }
}
