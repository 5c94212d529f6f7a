// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run-queue delay of a process while others fork.
//!
//! One process repeatedly sleeps for 50 ms, computes for 10 ms of CPU time, and records a time
//! stamp. Beside it runs nothing, one process that always computes, one that is killed and forked
//! again every two seconds, or a storm of short-lived processes as in a build. All of them run on
//! one CPU, as on the machine of the paper, and in one session, so that the kernel does not divide
//! CPU time by session. The benchmark needs no privileges and writes no file.
//!
//! Current schedulers give a new process no credit, so further loads look for what still lets new
//! processes starve others: the same number of new processes as of old ones (`wide` against
//! `crowd`), and a larger weight than that of the measuring process, by session, control group,
//! nice value or policy. With the manager, each load is measured once more.

mod favour;
mod options;
mod programs;

pub use options::{Fork, ForkLoad};
pub(crate) use programs::{load as run_load, timer as run_timer};

use crate::arms::SETTLING as MANAGER_SETTLING;
use crate::choice::name;
use crate::cpu_work::last_cpu;
use crate::cpus::expect_allowed;
use crate::driver::BenchDriver;
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::group::ControlGroup;
use crate::intervals::{
    Bounds, Cleanup, Explainer, LoadIntervals, MeasuredLoad, NamedWorkers, PREFIX, Stamping,
};
use crate::process::{ProcessGroup, is_root};
use anyhow::{Context, Result};
use favour::Favour;
use options::ForkArm;
use programs::{SLEEP, WORK};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use tipme_measure::{INTERVAL, InputClass};

const TITLE: &str = "10 ms of work every 60 ms, beside others on the same CPU";
/// Time for which a load runs before it is measured, so that the scheduler has adapted to it.
const SETTLING: Duration = Duration::from_millis(500);
/// Weight of the group of the load `container`, as a multiple of the default weight.
const CONTAINER_TIMES: u32 = 8;
/// Maximum CPU time of a load process beyond the time of the measurement, in seconds.
const SPARE_S: u64 = 30;

/// Conditions of the measurement.
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
        for load in self.left_out() {
            driver.line(&format!("{}: left out, since it needs root", name(&load)));
        }
        let explainer = Explainer::start(driver, self.no_trace, &[])?;
        let loads = self.measure(cpu, &explainer, driver)?;
        let (bounds, conditions) = (self.bounds_words(cpu), self.conditions(cpu));
        let figures =
            LoadIntervals::new(TITLE, bounds, conditions, loads, explainer.blind_because());
        Ok(figures.measured(InputClass::Motion))
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        self.files.paths()
    }
}

impl Fork {
    fn bounds(&self) -> Bounds {
        Bounds { intervals: self.samples as usize, time: self.duration }
    }

    fn measured_arms(&self) -> Vec<ForkArm> {
        self.arms(is_root())
    }

    /// Loads that need privileges which this process lacks.
    fn left_out(&self) -> Vec<ForkLoad> {
        self.loads().into_iter().filter(|load| load.takes_root() && !is_root()).collect()
    }

    /// Describes the expected duration, for output before the start.
    fn plan(&self) -> String {
        let (turns, each) = (self.measured_arms().len(), self.duration.as_secs_f64());
        format!("{turns} turns, {each:.0} s each at most; one CPU")
    }

    fn chosen_cpu(&self) -> Result<usize> {
        let cpu = self
            .cpu
            .or_else(last_cpu)
            .context("cannot find the CPUs that this process may use; name one with --cpu")?;
        expect_allowed(&[cpu])?;
        Ok(cpu)
    }

    fn conditions(&self, cpu: usize) -> ForkConditions {
        let [every_ms, work_ms, sleep_ms] =
            [self.every, WORK, SLEEP].map(|time| time.as_millis() as u64);
        ForkConditions { cpu, every_ms, work_ms, sleep_ms }
    }

    fn bounds_words(&self, cpu: usize) -> Vec<String> {
        let every = self.every.as_millis() as f64 / 1e3;
        let loads = format!(
            "all on CPU {cpu}, in one session; fork: a fork every {every} s; storm: four lives of 5 to 65 ms at a time; wide: \
             sixteen, as many as the old ones of crowd"
        );
        let left_out = self.left_out().iter().map(name).collect::<Vec<String>>().join(", ");
        let without =
            (!left_out.is_empty()).then(|| format!("left out, since they take root: {left_out}"));
        let backend = self
            .manager
            .backend
            .as_ref()
            .map(|backend| format!("managed by the back end {backend}"));
        std::iter::once(loads).chain(without).chain(backend).collect()
    }

    /// Measures under each load.
    fn measure(
        &self,
        cpu: usize,
        explainer: &Explainer,
        driver: &mut dyn BenchDriver,
    ) -> Result<Vec<MeasuredLoad>> {
        let launcher = driver.programs().launcher;
        let (_cleanup, folder) = Cleanup::with_folder(&launcher)?;
        let workers = NamedWorkers { folder: folder.path(), launcher: &launcher };
        let mut loads = Vec::new();
        for arm in self.measured_arms() {
            let measured = self.measure_one(&workers, arm, cpu, driver)?;
            loads.push(explainer.explain(measured, SLEEP)?);
        }
        Ok(loads)
    }

    fn measure_one(
        &self,
        workers: &NamedWorkers<'_>,
        arm: ForkArm,
        cpu: usize,
        driver: &mut dyn BenchDriver,
    ) -> Result<MeasuredLoad> {
        let interrupt = driver.interrupt();
        interrupt.check()?;
        let stamping =
            Stamping::start(workers, "fork-timer", &["fork-timer"], self.bounds(), Some(cpu))?;
        let manager = self.manager.program(&driver.programs());
        let favour =
            arm.managed.then(|| Favour::start(&manager, stamping.pid(), &interrupt)).transpose()?;
        let mut beside = self.start_load(workers, arm.load, cpu)?;
        interrupt.sleep(if arm.managed { MANAGER_SETTLING } else { SETTLING })?;
        let measured =
            stamping.follow(&arm.name(), WORK + SLEEP, self.bounds(), &interrupt, driver)?;
        if let Some(beside) = &mut beside {
            beside.process.expect_alive()?;
        }
        drop(beside);
        favour.map_or(Ok(()), Favour::stop)?;
        Ok(measured)
    }

    fn start_load(
        &self,
        workers: &NamedWorkers<'_>,
        load: ForkLoad,
        cpu: usize,
    ) -> Result<Option<LoadProcesses>> {
        if load == ForkLoad::None {
            return Ok(None);
        }
        let (every, life) = (self.every.as_millis().to_string(), self.duration.as_secs() + SPARE_S);
        let words = ["fork-load", &name(&load), &every, &life.to_string()];
        let started =
            workers.start("fork-load", &words, Some(cpu)).context("cannot start the load")?;
        let group = (load == ForkLoad::Container).then(|| container(started.pid())).transpose()?;
        Ok(Some(LoadProcesses { process: started.process, _group: group }))
    }
}

/// A running load. Fields are dropped in order: the processes, then their group.
struct LoadProcesses {
    process: ProcessGroup,
    _group: Option<ControlGroup>,
}

/// Makes a group for the load, which children forked later inherit.
fn container(pid: u32) -> Result<ControlGroup> {
    let mut group = ControlGroup::with_times_the_weight(PREFIX, CONTAINER_TIMES)?;
    group.take(pid)?;
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parsed;

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let error = parsed::<Fork>("--cpu 100000").chosen_cpu().expect_err("no such CPU");
        assert!(error.to_string().contains("may not use CPU 100000; it may use "), "{error}");
        assert!(parsed::<Fork>("").chosen_cpu().is_ok());
    }

    /// Returns the names of the turns.
    fn arms(words: &str, root: bool) -> Vec<String> {
        parsed::<Fork>(words).arms(root).into_iter().map(ForkArm::name).collect()
    }

    #[test]
    fn each_load_is_compared_with_none() {
        let all = "none hog fork storm crowd wide sessions container nice realtime";
        assert_eq!(arms("", true).join(" "), all);
        assert_eq!(arms("--load none", true), ["none"]);
        assert_eq!(arms("--load storm", true), ["none", "storm"]);
    }

    #[test]
    fn loads_repeat_when_managed_and_some_take_root() {
        assert_eq!(arms("--load wide --managed", true), ["none", "wide", "wide, managed"]);
        assert_eq!(arms("--load nice", false), ["none"]);
        assert_eq!((arms("", false).len(), arms("--managed", true).len()), (7, 19));
    }
}
