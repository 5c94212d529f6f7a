// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a fault takes place, and how its programs are started there.

use super::patient;
use crate::worker::{self, Ready, WorkerLauncher};
use anyhow::{Context, Result};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a worker program may take to be in place.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The display of a trial.
#[derive(Clone, Debug)]
pub enum DisplayServer {
    /// The display's number and authority file.
    X11 { number: u32, authority: PathBuf },
    /// The process of the compositor.
    Wayland { compositor: u32 },
}

/// Where a fault takes place.
#[derive(Clone, Debug)]
pub struct Site {
    /// A folder for this trial alone; the application's is the same.
    pub folder: PathBuf,
    pub display: DisplayServer,
    /// The CPU that the application is bound to where the fault is `pinned`.
    pub cpu: usize,
    pub launcher: WorkerLauncher,
}

impl Site {
    /// A path in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The same as a word of an order.
    pub(super) fn word(&self, name: &str) -> String {
        text(&self.path(name))
    }

    /// The command of a worker program, whose process is called `name`.
    pub(super) fn command(&self, name: &str, words: &[&str]) -> Result<Command> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        self.launcher.command(Some(&self.path(name)), &words)
    }

    /// Starts a worker program, whose process is called `name`, and waits until it is in place.
    pub(super) fn start(&self, name: &str, words: &[&str], cpu: Option<usize>) -> Result<Ready> {
        worker::start(name, self.command(name, words)?, cpu, START_TIMEOUT)
    }

    /// Makes a named pipe; its path.
    pub(super) fn pipe(&self, name: &str) -> Result<String> {
        let path = self.word(name);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).with_context(|| format!("cannot make {path}"))?;
        Ok(path)
    }

    /// Makes an empty file; its path.
    pub(super) fn file(&self, name: &str) -> Result<String> {
        let path = self.word(name);
        std::fs::write(&path, "").with_context(|| format!("cannot write {path}"))?;
        Ok(path)
    }

    /// The process that obeys the orders, where there is one: an editor or browser obeys none.
    pub(super) fn patient(&self) -> Result<Option<u32>> {
        patient::pid(&self.folder)
    }

    /// The application and the process that obeys.
    pub(super) fn family(&self, app: u32) -> Result<Vec<u32>> {
        let patient = self.patient()?.filter(|patient| *patient != app);
        Ok([app].into_iter().chain(patient).collect())
    }
}

/// Paths of trials hold plain letters only.
pub(super) fn text(path: &Path) -> String {
    path.display().to_string()
}
