// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme idle`.

use crate::cpus::{CpuList, allowed_cpus, cpu_list, expect_allowed};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tipme_command::duration;

/// Minimum length of a gap. Reading the clock takes nanoseconds, and anything else that takes the
/// CPU takes longer than this. A clock that is slow to read raises the limit.
pub(super) const GAP_MIN: Duration = Duration::from_micros(1);

#[derive(Args)]
#[command(
    after_help = "A loop at the lowest priority (SCHED_IDLE) runs on every CPU and detects gaps:
time taken by others. It needs neither root nor tracing. As root, tipme's recorder runs
beside it and attributes every gap.

The loop keeps its CPU out of deep idle states and at a high clock rate, and prevents a hypervisor
from giving the CPU to others: you measure a machine that never sleeps, and that runs hot.

Exit codes: 0 measured; 1 the figures differ from the kernel's accounting by more than two
percentage points, after subtracting time known to be wrongly charged to the loop (not with
--classic), or --validate found errors above their limits; 2 nothing could be measured.

Examples:
  tipme idle
  sudo tipme idle -d 30s --json idle.json --svg plots
  tipme idle --cpus 1-2 --resolution 500us --no-trace
  tipme idle --validate"
)]
pub struct Idle {
    /// How long to measure
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,
    /// Use a loop of fixed length, as in the paper, instead of one that reads the clock
    #[arg(long)]
    pub classic: bool,
    /// CPU time of the loop per record
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    pub resolution: Duration,
    /// CPUs to measure, such as 0,2-3 [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write plots into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "validate")]
    pub svg: Option<PathBuf>,
    /// Do not record, even as root, so gaps are not attributed
    #[arg(long)]
    pub no_trace: bool,
    /// Check the accuracy with programs that do a known amount of work, for 40 seconds
    #[arg(long, conflicts_with_all = ["classic", "duration"])]
    pub validate: bool,
}

impl Idle {
    /// Resolves the options; without `--cpus`, uses all CPUs that this process can use.
    pub(super) fn options(&self) -> Result<IdleOptions> {
        let cpus = self.cpus.as_ref().map_or_else(allowed_cpus, |list| Ok(list.0.clone()))?;
        Ok(IdleOptions {
            duration: self.duration,
            resolution: self.resolution,
            classic: self.classic,
            cpus,
        })
    }
}

/// Resolved options of a measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct IdleOptions {
    pub duration: Duration,
    /// CPU time of the loop per record.
    pub resolution: Duration,
    /// Uses a loop of fixed length instead of one that reads the clock.
    pub classic: bool,
    pub cpus: Vec<usize>,
}

impl IdleOptions {
    /// Fails if the measurement is not possible.
    pub(super) fn check(&self) -> Result<()> {
        if self.cpus.is_empty() {
            bail!("there is no CPU to measure; leave --cpus out to measure all");
        }
        if self.resolution <= 10 * GAP_MIN || self.resolution > self.duration {
            bail!("the resolution must be above {:?}, and not above the duration", 10 * GAP_MIN);
        }
        expect_allowed(&self.cpus).context("--cpus")
    }
}

/// Converts a time to nanoseconds, the unit of the loop and its records.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
