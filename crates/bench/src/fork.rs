// SPDX-License-Identifier: MIT OR Apache-2.0
//! The run-queue delay of a process while others fork.
//!
//! One process sleeps for 50 ms, computes for 10 ms of CPU time, and stamps the time; beside it there is nothing,
//! one process that computes for ever, one that is ended and forked again every two seconds, or a storm of short
//! lives as in a build. All of them are on one CPU, as on the machine of the paper, and in one session, so that
//! the kernel does not share out CPU time by session. It takes no right, and no file.

mod programs;

pub(crate) use programs::{load as run_load, timer as run_timer};

use crate::cpu_work::last_cpu;
use crate::interrupt::Interrupt;
use crate::intervals::{Bounds, Cleanup, GRACE, Measured, PREFIX, SidecarRecorder, Stage, Stamping};
use crate::process::Process;
use crate::progress::Progress;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::time::Duration;

/// What the measuring process does in each interval.
pub const WORK: Duration = Duration::from_millis(10);
pub const SLEEP: Duration = Duration::from_millis(50);
/// Before a load is measured, so that the kernel knows it.
const SETTLING: Duration = Duration::from_millis(500);
/// The most seconds of CPU time that a process of a load may have beyond the time of measuring.
const SPARE_S: u64 = 30;

/// What else the CPU has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    None,
    /// One process that computes for ever.
    Hog,
    /// A process that computes for ever, ended and forked again and again.
    Fork,
    /// Four short lives at a time.
    Storm,
}

/// Every load, the calm first.
pub const LOADS: [Load; 4] = [Load::None, Load::Hog, Load::Fork, Load::Storm];

impl Load {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Load::None => "none",
            Load::Hog => "hog",
            Load::Fork => "fork",
            Load::Storm => "storm",
        }
    }
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// One after the other.
    pub loads: Vec<Load>,
    pub bounds: Bounds,
    /// Between two forks of the load with one child.
    pub every: Duration,
    /// The CPU of all processes; the last one that this process may use, where it is not given.
    pub cpu: Option<usize>,
    pub launcher: WorkerLauncher,
}

/// What it was measured with.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Conditions {
    pub cpu: usize,
    pub every_ms: u64,
    pub work_ms: u64,
    pub sleep_ms: u64,
}

/// All loads, one after the other.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub conditions: Conditions,
    pub loads: Vec<Measured>,
}

impl Options {
    /// The longest that measuring may take.
    pub fn time_max(&self) -> Duration {
        (self.bounds.time + GRACE + SETTLING) * self.loads.len() as u32
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
}

/// Measures under each load. Everything that was started has ended when it returns.
pub fn run(
    options: &Options,
    sidecar: Option<&SidecarRecorder>,
    interrupt: &Interrupt,
    progress: &mut dyn Progress,
) -> Result<Outcome> {
    let cpu = options.chosen_cpu()?;
    let mut cleanup = Cleanup::start(&options.launcher)?;
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().context("cannot make a folder")?;
    cleanup.folder(folder.path())?;
    let stage = Stage { folder: folder.path(), launcher: &options.launcher };
    let mut loads = Vec::new();
    for load in &options.loads {
        interrupt.check()?;
        let mut measured = measure(&stage, *load, cpu, options, interrupt, progress)?;
        measured.incident = sidecar.map(|sidecar| sidecar.mark(interrupt)).transpose()?;
        loads.push(measured);
    }
    let millis = |time: Duration| time.as_millis() as u64;
    let conditions =
        Conditions { cpu, every_ms: millis(options.every), work_ms: millis(WORK), sleep_ms: millis(SLEEP) };
    Ok(Outcome { conditions, loads })
}

fn measure(
    stage: &Stage<'_>,
    load: Load,
    cpu: usize,
    options: &Options,
    interrupt: &Interrupt,
    progress: &mut dyn Progress,
) -> Result<Measured> {
    let stamping = Stamping::start(stage, "fork-timer", &["fork-timer"], options.bounds, Some(cpu))?;
    let mut beside = start_load(stage, load, cpu, options)?;
    interrupt.sleep(SETTLING)?;
    let tid = stamping.tid();
    let (intervals, cpu_ns) = stamping.follow(load.name(), WORK + SLEEP, options.bounds, interrupt, progress)?;
    if let Some(beside) = &mut beside {
        beside.expect_alive()?;
    }
    Ok(Measured { intervals, tid, incident: None, casualties: 0, cpu_ns })
}

fn start_load(stage: &Stage<'_>, load: Load, cpu: usize, options: &Options) -> Result<Option<Process>> {
    if load == Load::None {
        return Ok(None);
    }
    let (every, life) = (options.every.as_millis().to_string(), options.bounds.time.as_secs() + SPARE_S);
    let words = ["fork-load", load.name(), &every, &life.to_string()];
    let load = stage.start("fork-load", &words, Some(cpu)).context("the load does not begin")?;
    Ok(Some(load.process))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(cpu: Option<usize>) -> Options {
        let bounds = Bounds { intervals: 3, time: Duration::from_secs(1) };
        Options {
            loads: LOADS.to_vec(),
            bounds,
            every: Duration::from_secs(2),
            cpu,
            launcher: WorkerLauncher(Vec::new()),
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        let error = options(Some(100_000)).chosen_cpu().expect_err("no such CPU");
        assert!(error.to_string().contains("CPU 100000 is not one"), "{error}");
        assert!(options(None).chosen_cpu().is_ok());
    }

    #[test]
    fn the_time_is_bounded() {
        assert_eq!(options(None).time_max(), (Duration::from_secs(16) + SETTLING) * 4);
        assert_eq!(LOADS.map(Load::name), ["none", "hog", "fork", "storm"]);
    }
}
