// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorder that reports the focus on a Wayland compositor to the manager.

use crate::interrupt::InterruptFlag;
use crate::programs::{ARM_TIMEOUT, Follower};
use crate::screen::TerminalScreen;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A running recorder. Dropping it ends it.
pub(super) struct FocusRecorder {
    state: TempDir,
    _process: Follower,
}

impl FocusRecorder {
    pub(super) fn start(
        tipme: &Path,
        screen: &dyn TerminalScreen,
        interrupt: &InterruptFlag,
    ) -> Result<FocusRecorder> {
        let state = tempfile::Builder::new()
            .prefix("tipme-bench-")
            .tempdir()
            .context("cannot make a folder")?;
        let mut command = Command::new(tipme);
        command
            .args(["record", "--hot-keys", "off", "--display", &screen.name(), "--state-dir"])
            .arg(state.path());
        screen.show(&mut command);
        let process = Follower::start("tipme record", command)?;
        process.wait_for("recording", ARM_TIMEOUT, interrupt)?;
        Ok(FocusRecorder { state, _process: process })
    }

    /// Folder for the manager's `--recorder`.
    pub(super) fn folder(&self) -> PathBuf {
        self.state.path().to_owned()
    }
}
