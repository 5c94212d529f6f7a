// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorder beside a benchmark, for a verdict beside the figures.

use super::{Cleanup, PREFIX};
use crate::interrupt::InterruptFlag;
use crate::programs::{self, ARM_TIMEOUT, Follower};
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Window of an incident, in seconds.
pub(crate) const WINDOW_S: &str = "40";

/// A recorder that ends with the value, like its incidents.
pub(super) struct SidecarRecorder {
    _recorder: Follower,
    tipme: PathBuf,
    folder: TempDir,
    _cleanup: Cleanup,
}

impl SidecarRecorder {
    /// Starts `tipme record` without a display, and with `details` of resource use. Needs root.
    pub(super) fn start(
        tipme: &Path,
        launcher: &WorkerLauncher,
        details: &[&str],
        interrupt: &InterruptFlag,
    ) -> Result<SidecarRecorder> {
        if !rustix::process::geteuid().is_root() {
            bail!("recording takes root");
        }
        let mut cleanup = Cleanup::start(launcher)?;
        let folder =
            tempfile::Builder::new().prefix(PREFIX).tempdir().context("cannot make a folder")?;
        cleanup.folder(folder.path())?;
        let mut command = Command::new(tipme);
        command.args(["record", "--hot-keys", "off", "--display", "none", "--window", WINDOW_S]);
        command.arg("--state-dir").arg(folder.path());
        if !details.is_empty() {
            command.args(["--detail", &details.join(",")]);
        }
        let recorder = Follower::start("tipme record", command)?;
        recorder.wait_for("recording", ARM_TIMEOUT, interrupt)?;
        Ok(SidecarRecorder {
            _recorder: recorder,
            tipme: tipme.to_path_buf(),
            folder,
            _cleanup: cleanup,
        })
    }

    /// Saves the last 40 seconds; returns the path of the incident.
    pub(super) fn mark(&self, interrupt: &InterruptFlag) -> Result<PathBuf> {
        programs::mark(&self.tipme, self.folder.path(), interrupt)
    }
}
