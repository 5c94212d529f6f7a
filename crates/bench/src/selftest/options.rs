// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the self-test.

use crate::screen::Place;
use crate::worker::WorkerLauncher;
use std::path::PathBuf;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct SelftestOptions {
    /// Names of the faults; empty for all.
    pub names: Vec<String>,
    /// Number of runs of each fault.
    pub repeat: usize,
    /// Display of the terminal.
    pub place: Place,
    /// Folder for every incident; those of misses are kept in any case.
    pub keep: Option<PathBuf>,
    /// The `tipme` executable.
    pub tipme: PathBuf,
    /// Starts worker programs.
    pub launcher: WorkerLauncher,
}

impl SelftestOptions {
    /// Name of the terminal emulator.
    pub(super) fn app(&self) -> &'static str {
        if self.place == Place::X11 { "xterm" } else { "foot" }
    }
}
