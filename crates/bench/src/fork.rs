// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run-queue delay of a process while others fork.
//!
//! One process sleeps for 50 ms, computes for 10 ms of CPU time, and stamps the time; beside it there is nothing,
//! one process that computes for ever, one that is ended and forked again every two seconds, or a storm of short
//! lives as in a build. All of them are on one CPU, as on the machine of the paper, and in one session, so that
//! the kernel does not share out CPU time by session. It takes no right, and no file.

mod options;
mod programs;

pub use options::{Fork, ForkLoad};
pub(crate) use programs::{load as run_load, timer as run_timer};

use crate::choice::name;
use crate::cpu_work::last_cpu;
use crate::driver::BenchDriver;
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::intervals::{
    self, Bounds, Cleanup, Explainer, GRACE, LoadIntervals, MeasuredLoad, NamedWorkers, PREFIX, Stamping, expected_ms,
};
use crate::process::ProcessGroup;
use anyhow::{Context, Result, ensure};
use programs::{SLEEP, WORK};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use tipme_measure::{Document, INTERVAL, InputClass};

const TITLE: &str = "10 ms of work every 60 ms, beside others on the same CPU";
/// Before a load is measured, so that the kernel knows it.
const SETTLING: Duration = Duration::from_millis(500);
/// The most seconds of CPU time that a process of a load may have beyond the time of measuring.
const SPARE_S: u64 = 30;

/// What it was measured with.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Conditions")]
pub struct ForkConditions {
    pub cpu: usize,
    pub every_ms: u64,
    pub work_ms: u64,
    pub sleep_ms: u64,
}

impl Experiment for Fork {
    const NAME: &'static str = "fork";
    const CLASSES: &'static [&'static str] = &[INTERVAL];
    type Figures = LoadIntervals<ForkConditions>;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>> {
        driver.line(&self.plan());
        let cpu = self.chosen_cpu()?;
        let explainer = Explainer::start(driver, self.no_trace, &[])?;
        let loads = self.measure(cpu, &explainer, driver)?;
        let figures = LoadIntervals {
            title: TITLE,
            bounds: vec![self.bounds_words(cpu)],
            expected_ms: expected_ms(&loads),
            conditions: self.conditions(cpu),
            loads,
            not_explained_because: explainer.blind_because(),
        };
        Ok(figures.measured(InputClass::Motion))
    }

    fn text(document: &Document<Self::Figures>) -> String {
        intervals::text(document)
    }

    fn plots(document: &Document<Self::Figures>) -> Vec<(String, String)> {
        intervals::plots(document)
    }

    fn exit_code(document: &Document<Self::Figures>) -> u8 {
        u8::from(intervals::is_noticed(document))
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        self.files.paths()
    }
}

impl Fork {
    fn bounds(&self) -> Bounds {
        Bounds { intervals: self.samples as usize, time: self.duration }
    }

    /// The longest that measuring may take.
    fn time_max(&self) -> Duration {
        (self.duration + GRACE + SETTLING) * self.loads().len() as u32
    }

    /// What it will take, told before it begins.
    fn plan(&self) -> String {
        let (loads, each, most) = (self.loads().len(), self.duration.as_secs_f64(), self.time_max().as_secs());
        format!("{loads} loads, {each:.0} s each, {most} s in all at most; one CPU")
    }

    fn chosen_cpu(&self) -> Result<usize> {
        let cpu =
            self.cpu.or_else(last_cpu).context("cannot tell which CPUs this process may use; name one with --cpu")?;
        let allowed = rustix::thread::sched_getaffinity(None).context("cannot tell which CPUs there are")?;
        ensure!(
            cpu < rustix::thread::CpuSet::MAX_CPU && allowed.is_set(cpu),
            "CPU {cpu} is not one that this process may use; see taskset -p $$"
        );
        Ok(cpu)
    }

    fn conditions(&self, cpu: usize) -> ForkConditions {
        let millis = |time: Duration| time.as_millis() as u64;
        ForkConditions { cpu, every_ms: millis(self.every), work_ms: millis(WORK), sleep_ms: millis(SLEEP) }
    }

    fn bounds_words(&self, cpu: usize) -> String {
        let every = self.every.as_millis() as f64 / 1e3;
        format!(
            "all on CPU {cpu}, in one session; fork: a fork every {every} s; storm: four lives of 5 to 65 ms at a time"
        )
    }

    /// Measures under each load.
    fn measure(&self, cpu: usize, explainer: &Explainer, driver: &mut dyn BenchDriver) -> Result<Vec<MeasuredLoad>> {
        let launcher = driver.programs().launcher;
        let mut cleanup = Cleanup::start(&launcher)?;
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().context("cannot make a folder")?;
        cleanup.folder(folder.path())?;
        let workers = NamedWorkers { folder: folder.path(), launcher: &launcher };
        let mut loads = Vec::new();
        for load in self.loads() {
            let measured = self.measure_one(&workers, load, cpu, driver)?;
            loads.push(explainer.explain(measured, SLEEP)?);
        }
        Ok(loads)
    }

    fn measure_one(
        &self,
        workers: &NamedWorkers<'_>,
        load: ForkLoad,
        cpu: usize,
        driver: &mut dyn BenchDriver,
    ) -> Result<MeasuredLoad> {
        let interrupt = driver.interrupt();
        interrupt.check()?;
        let stamping = Stamping::start(workers, "fork-timer", &["fork-timer"], self.bounds(), Some(cpu))?;
        let mut beside = self.start_load(workers, load, cpu)?;
        interrupt.sleep(SETTLING)?;
        let measured = stamping.follow(&name(&load), WORK + SLEEP, self.bounds(), &interrupt, driver)?;
        if let Some(beside) = &mut beside {
            beside.expect_alive()?;
        }
        Ok(measured)
    }

    fn start_load(&self, workers: &NamedWorkers<'_>, load: ForkLoad, cpu: usize) -> Result<Option<ProcessGroup>> {
        if load == ForkLoad::None {
            return Ok(None);
        }
        let (every, life) = (self.every.as_millis().to_string(), self.duration.as_secs() + SPARE_S);
        let words = ["fork-load", &name(&load), &every, &life.to_string()];
        let load = workers.start("fork-load", &words, Some(cpu)).context("the load does not begin")?;
        Ok(Some(load.process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parsed;

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let error = parsed::<Fork>("--cpu 100000").chosen_cpu().expect_err("no such CPU");
        assert!(error.to_string().contains("CPU 100000 is not one"), "{error}");
        assert!(parsed::<Fork>("").chosen_cpu().is_ok());
    }

    #[test]
    fn the_time_is_bounded() {
        assert_eq!(parsed::<Fork>("-d 1s").time_max(), (Duration::from_secs(16) + SETTLING) * 4);
    }

    #[test]
    fn each_load_is_held_against_none() {
        let loads = |words| parsed::<Fork>(words).loads().iter().map(name).collect::<Vec<String>>();
        assert_eq!(loads(""), ["none", "hog", "fork", "storm"]);
        assert_eq!(
            (loads("--load none"), loads("--load storm")),
            (vec!["none".into()], vec!["none".into(), "storm".into()])
        );
    }
}
