// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme bench memory`, and their requirements.

use super::programs::{CHILD_BYTES, OWN_BYTES};
use crate::choice::ResultFiles;
use crate::disk::PROGRAMS;
use crate::intervals::{Bounds, GRACE, TIMEOUT};
use crate::process::is_root;
use crate::session::require;
use anyhow::{Result, ensure};
use clap::Args;
use std::path::Path;
use std::time::Duration;
use tipme_command::{duration, size};

/// Minimum limit: the processes themselves need some memory.
const LIMIT_MIN: u64 = 12 << 20;
/// Default share of the buffers that fits into memory, as a divisor.
const SHARE: u64 = 3;
/// Time for setup and cleanup, for each number of children.
const AROUND: Duration = Duration::from_secs(10);

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme bench memory
  sudo tipme bench memory --children 8 -d 60s --json memory.json --svg plots

A process sleeps 100 ms, reads a word of the next page of its 4 MiB, and records the time; each
child continuously writes a word to each page of its 12 MiB. All of them are in a control group
whose memory limit is too small for them, so that the machine itself does not run short. Their
buffers are files on a private disk in memory. Disk, group and processes are removed afterwards
in any case.

Exit codes: 0 measured, 1 an interval was more than 100 ms late, 2 nothing could be measured.")]
pub struct Memory {
    /// Number of children, 0 to 32; several numbers are measured in turn
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0,1,4,8", value_parser = clap::value_parser!(u8).range(0..=32))]
    pub children: Vec<u8>,
    /// Maximum number of intervals per number of children; the paper used 10000
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: u32,
    /// Maximum time per number of children
    #[arg(short, long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub duration: Duration,
    /// Memory limit of all processes: bytes, or with K, M or G [default: a third of the buffers,
    /// at least 12M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub limit: Option<u64>,
    /// Limit of the private disk in requests per second; 0 for none
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub requests: u32,
    /// Do not record, so the longest intervals are not explained
    #[arg(long)]
    pub no_trace: bool,
    #[command(flatten)]
    pub files: ResultFiles,
}

impl Memory {
    pub(super) fn bounds(&self) -> Bounds {
        Bounds { intervals: self.samples as usize, time: self.duration }
    }

    /// Memory limit of all processes together.
    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit.unwrap_or_else(|| {
            (self.buffers_bytes() / SHARE).next_multiple_of(1 << 20).max(LIMIT_MIN)
        })
    }

    /// Size of all buffers with the most children.
    pub(super) fn buffers_bytes(&self) -> u64 {
        let children = self.children.iter().copied().max().unwrap_or_default();
        (OWN_BYTES + usize::from(children) * CHILD_BYTES) as u64
    }

    /// Maximum duration of the measurement, without setup and cleanup.
    fn time_max(&self) -> Duration {
        (self.duration + GRACE) * self.children.len() as u32
    }

    /// Upper bound of the duration of everything.
    pub(super) fn life(&self) -> Duration {
        self.time_max() + TIMEOUT * (2 + self.children.len() as u32)
    }

    /// Describes the expected duration, for output before the start.
    pub(super) fn plan(&self) -> String {
        let loads = self.children.len();
        format!(
            "{loads} loads, {} s each, {} s in all at most; {} MiB of memory for {} MiB of buffers",
            self.duration.as_secs(),
            (self.time_max() + AROUND * loads as u32).as_secs(),
            self.limit_bytes() >> 20,
            self.buffers_bytes() >> 20
        )
    }

    /// Fails with the reason and a remedy if the measurement is not possible here.
    pub(super) fn check(&self) -> Result<()> {
        let limit = self.limit_bytes();
        ensure!(
            limit >= LIMIT_MIN,
            "a limit below {} MiB does not hold the processes themselves",
            LIMIT_MIN >> 20
        );
        ensure!(
            is_root(),
            "memory can only be limited by a control group, which needs root; run it with sudo, \
             or see `tipme bench fork`, which needs no privileges"
        );
        require(&PROGRAMS)?;
        let loops = Path::new("/dev/loop-control").exists();
        ensure!(loops, "there are no loop devices; try: modprobe loop");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parsed;

    #[test]
    fn the_memory_never_holds_all_buffers() {
        for children in 1..=32 {
            let options = parsed::<Memory>(&format!("--children 0,{children}"));
            assert!(options.limit_bytes() < options.buffers_bytes(), "{children}");
            assert!(options.limit_bytes() >= LIMIT_MIN);
        }
        assert_eq!(parsed::<Memory>("--children 0,1,4,8").limit_bytes(), 34 << 20);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let error = parsed::<Memory>("--children 1 --limit 1M").check().expect_err("too little");
        assert!(error.to_string().contains("below 12 MiB"), "{error}");
    }
}
