// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorder beside a measurement, to name the cause of its delays.

use crate::interrupt::InterruptFlag;
use crate::programs::{SidecarRecorder, recorder};
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

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

/// Starts a recorder with room for `wakes` wakeups within `time`. Needs root.
pub(super) fn start(
    tipme: &Path,
    time: Duration,
    wakes: u64,
    interrupt: &InterruptFlag,
) -> Result<SidecarRecorder> {
    let window = (time + Duration::from_secs(3)).min(WINDOW_MAX).as_secs();
    let mut command = recorder(tipme, "none");
    command.args(["--detail", "interrupts", "--window", &window.to_string()]);
    command.args(["--memory", &memory(window, wakes).to_string()]);
    let recorder = SidecarRecorder::start(command, interrupt)?;
    interrupt.sleep(SETTLE)?;
    Ok(recorder)
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
