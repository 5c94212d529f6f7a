// SPDX-License-Identifier: MIT OR Apache-2.0
//! One fault on a terminal: type, suffer, mark, diagnose.
//!
//! Terminal, recorder and folders are fresh for each trial, so trials are independent. The private
//! displays are reused, since starting one takes long; a failed trial discards its display.

use super::options::SelftestOptions;
use crate::alone::MachineLock;
use crate::faults::Fault;
use crate::faults::stage::{FaultStage, StageOutcome, open_screen};
use crate::files::temporary_folder;
use crate::interrupt::InterruptFlag;
use crate::kernel_text::cpu_ticks;
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
    pub displays: BTreeMap<Option<usize>, Box<dyn TerminalScreen>>,
}

impl TrialRunner<'_> {
    /// Runs one trial, alone on this machine; calls `waiting` if another one must end first.
    ///
    /// Fails with the reason if the trial cannot run.
    pub(super) fn run(&mut self, fault: &Fault, waiting: impl FnOnce()) -> Result<Observation> {
        let _alone = MachineLock::wait(self.interrupt, waiting)?;
        let cpu = fault.options().cpu;
        let mut screen = match self.displays.remove(&cpu) {
            Some(screen) => screen,
            None => open_screen(&self.options.place, fault)?,
        };
        let observed = self.observe(&mut *screen, fault)?;
        self.displays.insert(cpu, screen);
        Ok(observed)
    }

    fn observe(&self, screen: &mut dyn TerminalScreen, fault: &Fault) -> Result<Observation> {
        let SelftestOptions { tipme, launcher, .. } = self.options;
        let folder = temporary_folder("tipme-selftest-")?;
        let mut stage = FaultStage::set(screen, fault, launcher).context("cannot prepare it")?;
        let command = programs::recorder_of(tipme, stage.screen);
        let recorder =
            programs::record(command, folder.path(), self.interrupt).context(ProductFailed)?;
        let before = CpuTime::now();
        stage.type_calmly(self.interrupt, &mut |typed, _| typed < CALM_KEYS)?;
        let usual_load =
            before.zip(CpuTime::now()).and_then(|(before, after)| before.busy_until(after));
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

/// Ticks of all CPUs since boot.
#[derive(Clone, Copy, PartialEq, Debug)]
struct CpuTime {
    busy: u64,
    idle: u64,
}

impl CpuTime {
    fn now() -> Option<CpuTime> {
        CpuTime::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<CpuTime> {
        let ticks = cpu_ticks(stat)?;
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(CpuTime { busy: ticks.iter().sum::<u64>() - idle, idle })
    }

    fn busy_until(self, later: CpuTime) -> Option<f64> {
        let (busy, idle) = (later.busy.checked_sub(self.busy)?, later.idle.checked_sub(self.idle)?);
        (busy + idle > 0).then(|| busy as f64 / (busy + idle) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuTime;

    #[test]
    fn load_is_what_was_not_idle() {
        let before = CpuTime::parse("cpu  10 0 5 100 5 0 0 0 0 0\ncpu0 1").expect("eight numbers");
        let after = CpuTime::parse("cpu  20 5 10 150 15 0 0 0 0 0\n").expect("eight numbers");
        assert_eq!(before, CpuTime { busy: 15, idle: 105 });
        assert_eq!((before.busy_until(after), after.busy_until(before)), (Some(0.25), None));
        assert_eq!(CpuTime::parse("cpu0 1 2"), None);
    }
}
