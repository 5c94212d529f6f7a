// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorder beside a measurement, to name the cause of its delays.

use crate::interrupt::InterruptFlag;
use crate::programs::{self, ARM_TIMEOUT, Follower};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Programs in the kernel that were just attached record the first moments only in part.
const SETTLE: Duration = Duration::from_millis(200);
/// Maximum window of the recorder.
const WINDOW_MAX: Duration = Duration::from_secs(3_600);
/// Memory for the records of one wakeup, and for those of a second of everything else.
const WAKE_BYTES: u64 = 400;
const SECOND_BYTES: u64 = 2 << 20;
/// Minimum and maximum memory for records.
const MEMORY_MIN: u64 = 64 << 20;
const MEMORY_MAX: u64 = 512 << 20;

/// A recorder with a folder of its own; both end with the value.
pub(super) struct TimerRecorder {
    _recorder: Follower,
    tipme: PathBuf,
    folder: TempDir,
}

/// Returns `true` if this user can record.
pub(super) fn may_trace() -> bool {
    rustix::process::geteuid().is_root()
}

impl TimerRecorder {
    /// Starts a recorder with room for `wakes` wakeups within `time`.
    pub(super) fn start(
        tipme: &Path,
        time: Duration,
        wakes: u64,
        interrupt: &InterruptFlag,
    ) -> Result<TimerRecorder> {
        let folder = tempfile::Builder::new()
            .prefix("tipme-timer-")
            .tempdir()
            .context("cannot make a folder")?;
        let window = (time + Duration::from_secs(3)).min(WINDOW_MAX).as_secs();
        let mut command = Command::new(tipme);
        command.args([
            "record",
            "--hot-keys",
            "off",
            "--display",
            "none",
            "--detail",
            "interrupts",
        ]);
        command.args([
            "--window",
            &window.to_string(),
            "--memory",
            &memory(window, wakes).to_string(),
        ]);
        command.arg("--state-dir").arg(folder.path());
        let recorder = Follower::start("tipme record", command)?;
        recorder.wait_for("recording", ARM_TIMEOUT, interrupt)?;
        interrupt.sleep(SETTLE)?;
        Ok(TimerRecorder { _recorder: recorder, tipme: tipme.to_owned(), folder })
    }

    /// Saves the recording; returns the path of the incident, which is removed with this value.
    pub(super) fn mark(&self, interrupt: &InterruptFlag) -> Result<PathBuf> {
        programs::mark(&self.tipme, self.folder.path(), interrupt)
    }
}

fn memory(window_s: u64, wakes: u64) -> u64 {
    (window_s * SECOND_BYTES)
        .saturating_add(wakes.saturating_mul(WAKE_BYTES))
        .clamp(MEMORY_MIN, MEMORY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_rate_within_its_bounds() {
        assert_eq!(memory(10, 20_000), MEMORY_MIN);
        assert_eq!(memory(13, 200_000), 13 * SECOND_BYTES + 80_000_000);
        assert_eq!(memory(3_600, u64::MAX), MEMORY_MAX);
    }
}
