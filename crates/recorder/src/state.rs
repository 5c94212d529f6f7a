// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of a recorder's socket, lock and incidents.

use anyhow::{Result, anyhow};
use std::fs::File;
use std::path::{Path, PathBuf};
use tipme_control::life::{self, LockError};
use tipme_control::secure;

/// Folders of one recorder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDirs {
    run: PathBuf,
    incidents: PathBuf,
}

impl Default for StateDirs {
    /// Returns `/run/tipme` and `/var/lib/tipme/incidents`.
    fn default() -> StateDirs {
        StateDirs { run: "/run/tipme".into(), incidents: "/var/lib/tipme/incidents".into() }
    }
}

impl StateDirs {
    /// Returns folders below a single one.
    pub fn below(dir: &Path) -> StateDirs {
        StateDirs { run: dir.to_owned(), incidents: dir.join("incidents") }
    }

    /// Returns folders below `dir`, or the defaults for `None`.
    pub fn choose(dir: Option<&Path>) -> StateDirs {
        dir.map_or_else(StateDirs::default, StateDirs::below)
    }

    /// Returns the chosen folder; `None` for the defaults.
    pub fn chosen(&self) -> Option<&Path> {
        (*self != StateDirs::default()).then_some(&self.run)
    }

    /// Folder of the socket and the lock.
    pub fn run_dir(&self) -> &Path {
        &self.run
    }

    /// Path of the control socket.
    pub fn socket(&self) -> PathBuf {
        self.run.join("control.sock")
    }

    /// Folder of incidents.
    pub fn incidents(&self) -> &Path {
        &self.incidents
    }

    /// File of baselines: beside the incidents, since it outlives a reboot.
    pub(crate) fn baselines(&self) -> PathBuf {
        self.incidents.with_file_name("baselines.json")
    }

    /// File of tolerances.
    pub(crate) fn tolerances(&self) -> PathBuf {
        self.incidents.with_file_name("tolerances.json")
    }

    /// Folder of each user's days.
    pub(crate) fn days(&self) -> PathBuf {
        self.incidents.with_file_name("days")
    }

    /// Creates the folders, writable by root only, and takes the lock, which is held until the file
    /// is dropped.
    pub(crate) fn lock(&self) -> Result<File> {
        let beside = self.incidents.parent().unwrap_or(&self.incidents);
        [&self.run, beside, &self.incidents].into_iter().try_for_each(secure)?;
        let (path, dir) = (self.run.join("lock"), self.run.display());
        life::lock(&path).map_err(|error| match error {
            LockError::Held(holder) => {
                anyhow!(
                    "another recorder (pid {holder}) is running in {dir}; \
                 stop it, or give this one its own --state-dir"
                )
            }
            LockError::Open(cause) => anyhow!(cause)
                .context(format!("cannot open {}; run as root: sudo tipme record", path.display())),
            LockError::Write(cause) => anyhow!(cause).context("cannot write the lock file"),
        })
    }
}
