// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is run, and with what.

use super::fault::App;
use crate::worker::WorkerLauncher;
use std::path::PathBuf;

/// What is run, and with what.
#[derive(Clone, Debug)]
pub struct SelftestOptions {
    /// Faults; `clean` stands for the clean runs. All where it is empty.
    pub names: Vec<String>,
    /// How often each fault is done to each application.
    pub repeat: usize,
    /// The applications.
    pub apps: Vec<App>,
    /// Clean runs of each kind in each repeat; they take turns among the applications.
    pub clean: usize,
    /// Keeps every incident here; those of misses are kept in any case.
    pub keep: Option<PathBuf>,
    /// The `tipme` executable.
    pub tipme: PathBuf,
    /// How worker programs are started.
    pub launcher: WorkerLauncher,
}
