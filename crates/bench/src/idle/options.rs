// SPDX-License-Identifier: MIT OR Apache-2.0
//! How to measure.

use super::place;
use anyhow::{Context, Result, bail};
use std::time::Duration;

/// Gaps up to this are the loop's own: reading a counter takes nanoseconds, what takes the CPU takes more than this.
pub const GAP_MIN: Duration = Duration::from_micros(1);

/// How to measure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    pub duration: Duration,
    /// CPU time of the loop that makes a record.
    pub resolution: Duration,
    /// A loop of fixed length instead of one that looks at the counter.
    pub classic: bool,
    pub cpus: Vec<usize>,
}

impl Options {
    /// Refuses what cannot be measured.
    pub fn check(&self) -> Result<()> {
        if self.cpus.is_empty() {
            bail!("there is no CPU to measure; leave --cpus out to measure all");
        }
        if self.resolution <= 10 * GAP_MIN || self.resolution > self.duration {
            bail!("the resolution must be above {:?}, and not above the duration", 10 * GAP_MIN);
        }
        place::check(&self.cpus).context("--cpus")
    }
}

/// The time in nanoseconds, as counters and records have it.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
