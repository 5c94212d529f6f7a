// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a recorder keeps its socket, its lock and its incidents.

use anyhow::{Result, anyhow};
use std::fs::File;
use std::path::{Path, PathBuf};
use tipme_control::life::{self, LockError};
use tipme_control::secure;

/// The folders of one recorder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDirs {
    run: PathBuf,
    incidents: PathBuf,
}

impl Default for StateDirs {
    /// `/run/tipme` and `/var/lib/tipme/incidents`.
    fn default() -> StateDirs {
        StateDirs { run: "/run/tipme".into(), incidents: "/var/lib/tipme/incidents".into() }
    }
}

impl StateDirs {
    /// Everything below one folder.
    pub fn below(dir: &Path) -> StateDirs {
        StateDirs { run: dir.to_owned(), incidents: dir.join("incidents") }
    }

    /// Below `dir` where one is given, else the defaults.
    pub fn choose(dir: Option<&Path>) -> StateDirs {
        dir.map_or_else(StateDirs::default, StateDirs::below)
    }

    /// The folder that was chosen; `None` for the defaults.
    pub fn chosen(&self) -> Option<&Path> {
        (*self != StateDirs::default()).then_some(&self.run)
    }

    /// The folder of the socket and the lock.
    pub fn run_dir(&self) -> &Path {
        &self.run
    }

    /// The control socket.
    pub fn socket(&self) -> PathBuf {
        self.run.join("control.sock")
    }

    /// The folder of incidents.
    pub fn incidents(&self) -> &Path {
        &self.incidents
    }

    /// What was learned of what is usual: beside the incidents, since it outlives a restart of the machine.
    pub(crate) fn baselines(&self) -> PathBuf {
        self.incidents.with_file_name("baselines.json")
    }

    /// What people put up with.
    pub(crate) fn tolerances(&self) -> PathBuf {
        self.incidents.with_file_name("tolerances.json")
    }

    /// What users lived with.
    pub(crate) fn days(&self) -> PathBuf {
        self.incidents.with_file_name("days")
    }

    /// Makes the folders, which nobody else may be able to change, and takes the lock; it is held as long as the file
    /// lives.
    pub(crate) fn lock(&self) -> Result<File> {
        let beside = self.incidents.parent().unwrap_or(&self.incidents);
        [&self.run, beside, &self.incidents].into_iter().try_for_each(secure)?;
        let (path, dir) = (self.run.join("lock"), self.run.display());
        life::lock(&path).map_err(|error| match error {
            LockError::Held(holder) => {
                anyhow!(
                    "another recorder (pid {holder}) is running in {dir}; stop it, or give this one its own --state-dir"
                )
            }
            LockError::Open(cause) => {
                anyhow!(cause).context(format!("cannot open {}; run as root: sudo tipme record", path.display()))
            }
            LockError::Write(cause) => anyhow!(cause).context("cannot write the lock file"),
        })
    }
}
