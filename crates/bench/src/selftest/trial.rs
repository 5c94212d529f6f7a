// SPDX-License-Identifier: MIT OR Apache-2.0
//! One fault on a terminal: type, suffer, mark, diagnose.
//!
//! Terminal, recorder and folders are fresh for each trial, so trials are independent. The private
//! displays are reused, since starting one takes long; a failed trial discards its display.

use super::options::SelftestOptions;
use crate::alone::MachineLock;
use crate::display::PrivateDisplay;
use crate::faults::Fault;
use crate::faults::stage::{FaultStage, StageOutcome};
use crate::files::temporary_folder;
use crate::interrupt::InterruptFlag;
use crate::kernel_text::CpuTicks;
use crate::programs;
use crate::screen::TerminalScreen;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Keys typed before the fault, to learn the usual latency.
const CALM_KEYS: usize = 10;

/// Result of a trial.
pub(super) struct Observation {
    /// Document of the diagnosis, or the reason why there is none.
    pub verdict: Result<Value, String>,
    pub diagnosis: Duration,
    pub seen: StageOutcome,
    /// Share of all CPUs that was busy before the fault, from 0 to 1: mostly by other programs.
    pub usual_load: Option<f64>,
    pub incident: PathBuf,
    folder: Option<TempDir>,
}

/// Context of a trial that failed by the product's own fault.
#[derive(Debug)]
pub(super) struct ProductFailed;

impl std::fmt::Display for ProductFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the product failed")
    }
}

/// Private displays of the self-test.
pub(super) struct TrialRunner<'a> {
    pub options: &'a SelftestOptions,
    pub interrupt: &'a InterruptFlag,
    /// Free displays by the CPU to which they are pinned.
    pub displays: BTreeMap<Option<usize>, PrivateDisplay>,
}

impl TrialRunner<'_> {
    /// Runs one trial, alone on this machine; calls `waiting` if another one must end first.
    ///
    /// Fails with the reason if the trial cannot run.
    pub(super) fn run(&mut self, fault: &Fault, waiting: impl FnOnce()) -> Result<Observation> {
        let _alone = MachineLock::wait(self.interrupt, waiting)?;
        let cpu = fault.options().cpu;
        let mut display = match self.displays.remove(&cpu) {
            Some(display) => display,
            None => PrivateDisplay::open(&self.options.place, fault.options())?,
        };
        let observed = self.observe(display.screen_mut(), fault)?;
        self.displays.insert(cpu, display);
        Ok(observed)
    }

    fn observe(&self, screen: &mut dyn TerminalScreen, fault: &Fault) -> Result<Observation> {
        let SelftestOptions { tipme, launcher, .. } = self.options;
        let folder = temporary_folder("tipme-selftest-")?;
        let mut stage =
            FaultStage::open(screen, fault, launcher).context("cannot prepare the fault")?;
        let command = programs::recorder_of(tipme, stage.screen);
        let recorder =
            programs::record(command, folder.path(), self.interrupt).context(ProductFailed)?;
        let before = CpuTicks::now();
        stage.type_calmly(self.interrupt, &mut |typed, _| typed < CALM_KEYS)?;
        let usual_load =
            before.zip(CpuTicks::now()).and_then(|(before, after)| before.busy_share(after));
        stage.inject()?;
        stage.suffer(self.interrupt, &mut |typed, _| typed < fault.presses)?;
        let incident =
            programs::mark(tipme, folder.path(), self.interrupt).context(ProductFailed)?;
        let seen = stage.finish()?;
        drop(recorder);
        let began = Instant::now();
        let verdict = programs::document(tipme, &incident, self.interrupt)
            .map_err(|error| format!("{error:#}"));
        self.interrupt.check()?;
        let diagnosis = began.elapsed();
        Ok(Observation { verdict, diagnosis, seen, usual_load, incident, folder: Some(folder) })
    }
}

impl Observation {
    /// A trial in which the product failed.
    pub(super) fn failed(error: &anyhow::Error) -> Observation {
        Observation::without_incident(Err(format!("{error:#}")), StageOutcome::default(), None)
    }

    pub(super) fn without_incident(
        verdict: Result<Value, String>,
        seen: StageOutcome,
        usual_load: Option<f64>,
    ) -> Observation {
        let (diagnosis, incident) = (Duration::ZERO, PathBuf::new());
        Observation { verdict, diagnosis, seen, usual_load, incident, folder: None }
    }

    /// Returns `true` if there is a file to keep.
    pub(super) fn has_incident(&self) -> bool {
        self.folder.is_some()
    }
}
