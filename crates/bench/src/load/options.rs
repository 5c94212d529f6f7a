// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme load`, and its run: a load for a time, and its work.

use super::{
    Achieved, LEVEL_MAX, LoadKind, LoadOptions, PageOptions, RoundsSampler, RunningJob,
    RunningLoad, Speed, default_memory,
};
use crate::driver::BenchDriver;
use crate::machine::Survey;
use anyhow::Result;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tipme_command::{duration, size};
use tipme_measure::SCHEMA;

/// Interval between lines of progress.
const NEWS: Duration = Duration::from_secs(5);

#[derive(Args)]
#[command(after_help = "Examples:
  tipme load cpu
  tipme load big --level 8 --memory 512M -d 5min
  tipme load stream --level 4 --folder /var/tmp
  tipme load cpu --demand 50 --reuse 0.8 --json

Each process works in rounds of about a millisecond of CPU time and touches DEMAND different pages
in each; REUSE is the share of them that the previous round also touched. The four types are those
of Evans et al. (1993): cpu (2 pages per ms, reuse 0.95), forks (4, 0.1, in children that live for
5 to 65 rounds), big (200, 0.95), stream (200, 0).

The processes end with tipme load, or at the latest a minute after their run time; Ctrl-C prints
the result so far. They are the first to be killed when memory runs out.

Exit codes: 0 the load ran, 2 it could not run.")]
pub struct LoadArguments {
    /// Type of work of the processes
    #[arg(value_name = "TYPE", value_enum)]
    pub kind: LoadKind,
    /// Number of processes runnable at any time (the target load average), 1 to 64
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(LEVEL_MAX)))]
    pub level: u32,
    /// Run time
    #[arg(short, long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub duration: Duration,
    #[command(flatten)]
    pub pages: PageOptions,
    /// Total memory of big or stream: bytes, or with K, M or G [default: a quarter of the
    /// available memory, at most 1G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Spread the processes over this many sessions, as if started from several terminals; 0 uses
    /// the caller's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=i64::from(LEVEL_MAX)))]
    pub sessions: u32,
    /// Make stream write unnamed files in this folder, one per process [default: memory]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// A load that has ended.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(title = "Result of tipme load")]
pub struct LoadOutcome {
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    pub load: LoadKind,
    /// Description of where its processes ran.
    pub place: String,
    /// Target number of runnable processes.
    pub level: u32,
    /// Load average of the last minute, other processes included.
    pub load_average_1min: Option<f64>,
    /// Limit of all processes together.
    pub memory_bytes: u64,
    /// Requested number of different pages touched in a millisecond of CPU time.
    pub demand_pages_per_ms: u32,
    /// Requested share of these that the previous millisecond touched too.
    pub reuse: f64,
    #[serde(flatten)]
    pub achieved: Achieved,
}

impl LoadArguments {
    /// Runs the load for its time or until an interrupt; returns the work done until then.
    pub fn run(&self, driver: &mut dyn BenchDriver) -> Result<LoadOutcome> {
        let options = self.options(driver)?;
        options.check()?;
        driver.line(&plan(&options));
        let achieved = run_for(&options, driver)?;
        Ok(LoadOutcome {
            schema: SCHEMA,
            load: options.kind,
            place: options.place(),
            level: options.level,
            load_average_1min: Survey::begin().end().load_average.map(|averages| averages[0]),
            memory_bytes: options.bytes_each() * u64::from(options.level),
            demand_pages_per_ms: options.pages.demand,
            reuse: options.pages.reuse,
            achieved,
        })
    }

    fn options(&self, driver: &dyn BenchDriver) -> Result<LoadOptions> {
        let (speed, launcher) = (Speed::try_out()?, driver.programs().launcher);
        Ok(LoadOptions {
            pages: self.pages.with_defaults_of(self.kind),
            memory: self.memory.unwrap_or_else(default_memory),
            sessions: self.sessions,
            folder: self.folder.clone(),
            ..LoadOptions::usual(self.kind, self.level, self.duration, speed, &launcher)
        })
    }
}

/// Describes the load, for output before the start.
fn plan(options: &LoadOptions) -> String {
    format!(
        "{} processes {}, {} MiB of memory together, {:.0} s",
        options.level,
        options.place(),
        (options.bytes_each() * u64::from(options.level)) >> 20,
        options.time.as_secs_f64()
    )
}

fn run_for(options: &LoadOptions, driver: &mut dyn BenchDriver) -> Result<Achieved> {
    let (mut load, interrupt) = (RunningLoad::start(options)?, driver.interrupt());
    let (begun, before, sampler) = (Instant::now(), load.reading(), load.sample_rounds()?);
    driver.line("running");
    while begun.elapsed() < options.time && interrupt.check().is_ok() {
        let left = options.time.saturating_sub(begun.elapsed());
        match load.run(NEWS.min(left), &interrupt) {
            Err(error) if interrupt.check().is_ok() => return Err(error),
            _ => driver.line(&news(Achieved::between(before, load.reading()))),
        }
    }
    let achieved = Achieved::between(before, load.reading());
    Ok(Achieved { window_rounds_min: sampler.map_or(Ok(None), RoundsSampler::finish)?, ..achieved })
}

fn news(achieved: Achieved) -> String {
    let casualties = match achieved.casualties {
        0 => String::new(),
        many => format!(", {many} processes ended early"),
    };
    format!(
        "{:.0} s, {:.1} runnable, {:.0} rounds a second{casualties}",
        achieved.seconds, achieved.runnable_mean, achieved.rounds_per_s
    )
}
