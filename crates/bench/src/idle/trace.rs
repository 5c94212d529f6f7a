// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorder beside the loops, to name the owners of the stolen time.

use crate::interrupt::InterruptFlag;
use crate::programs::{SidecarRecorder, recorder};
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

/// Incomplete beginning of the recording: programs are still being attached.
const TAINTED: Duration = Duration::from_millis(200);
/// Recorded time beyond the measurement: its start and end, and the mark.
const MARGIN_S: u64 = 10;
/// Maximum window of the recorder.
const WINDOW_S_MAX: u64 = 3_600;

/// Starts a recorder, and waits until it records. Needs root.
///
/// It records all interrupts but takes no samples, since the loops would notice the sampling clock.
pub(super) fn start(
    tipme: &Path,
    duration: Duration,
    interrupt: &InterruptFlag,
) -> Result<SidecarRecorder> {
    let window = (duration.as_secs() + MARGIN_S).min(WINDOW_S_MAX).to_string();
    let mut command = recorder(tipme, "none");
    command.args(["--detail", "interrupts", "--without", "samples,locks", "--window", &window]);
    let recorder = SidecarRecorder::start(command, interrupt)?;
    interrupt.sleep(TAINTED)?;
    Ok(recorder)
}
