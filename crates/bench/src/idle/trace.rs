// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorder beside the loops, to name the owners of the stolen time.

use crate::interrupt::InterruptFlag;
use crate::programs::{self, Follower};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Maximum time until the recorder has started.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Incomplete beginning of the recording: programs are still being attached.
const TAINTED: Duration = Duration::from_millis(200);
/// Recorded time beyond the measurement: its start and end, and the mark.
const MARGIN_S: u64 = 10;
/// Maximum window of the recorder.
const WINDOW_S_MAX: u64 = 3_600;

/// A recorder with folders of its own; it ends with this value.
pub(super) struct Tracer {
    tipme: PathBuf,
    recorder: Follower,
    folder: TempDir,
}

/// A recorded incident; the file is removed with this value.
pub(super) struct IdleIncident {
    pub path: PathBuf,
    _folder: TempDir,
}

impl Tracer {
    /// Starts the recorder, and waits until it records. Needs root.
    ///
    /// Records all interrupts but no samples, since the loops would notice the sampling clock.
    pub(super) fn start(
        tipme: &Path,
        duration: Duration,
        interrupt: &InterruptFlag,
    ) -> Result<Tracer> {
        let folder = tempfile::Builder::new()
            .prefix("tipme-idle-")
            .tempdir()
            .context("cannot make a folder")?;
        let window = (duration.as_secs() + MARGIN_S).min(WINDOW_S_MAX).to_string();
        let mut command = Command::new(tipme);
        command.args([
            "record",
            "--display",
            "none",
            "--detail",
            "interrupts",
            "--without",
            "samples,locks",
        ]);
        command.args(["--hot-keys", "off", "--window", &window, "--state-dir"]).arg(folder.path());
        let recorder = Follower::start("tipme record", command)?;
        recorder.wait_for("recording", TIMEOUT, interrupt)?;
        interrupt.sleep(TAINTED)?;
        Ok(Tracer { tipme: tipme.to_owned(), recorder, folder })
    }

    /// Marks the recording, and ends the recorder.
    pub(super) fn mark(self, interrupt: &InterruptFlag) -> Result<IdleIncident> {
        let path = programs::mark(&self.tipme, self.folder.path(), interrupt)?;
        drop(self.recorder);
        Ok(IdleIncident { path, _folder: self.folder })
    }
}
