// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's folder: its socket, its journal, its lock, the files that programs use.

use anyhow::{Result, anyhow};
use std::fs::File;
use std::path::{Path, PathBuf};
use tipme_control::life::{self, LockError};
use tipme_control::manager::SOCKET_NAME;
use tipme_control::{DEFAULT_STATE_DIR, secure};

/// Where root keeps what outlives a restart of the machine.
const LASTING_DIR: &str = "/var/lib/tipme";

/// The folder of one manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDir {
    run: PathBuf,
    /// For what outlives a restart of the machine.
    lasting: PathBuf,
}

impl StateDir {
    /// The folder that is named; else `/run/tipme` and `/var/lib/tipme` for root, and for others
    /// `$XDG_RUNTIME_DIR/tipme` and `$XDG_STATE_HOME/tipme`.
    pub fn choose(named: Option<&Path>) -> StateDir {
        let of_user = || if rustix::process::geteuid().is_root() { None } else { StateDir::of_user() };
        named.map(StateDir::below).or_else(of_user).unwrap_or_else(StateDir::of_root)
    }

    /// Where a caller finds a manager: the folder that is named; else the user's own where one listens
    /// there; else `/run/tipme`.
    pub fn find(named: Option<&Path>) -> StateDir {
        let chosen = StateDir::choose(named);
        let here = named.is_some() || std::os::unix::net::UnixStream::connect(chosen.socket()).is_ok();
        if here { chosen } else { StateDir::of_root() }
    }

    /// Everything in one folder.
    fn below(dir: &Path) -> StateDir {
        StateDir { run: dir.to_owned(), lasting: dir.to_owned() }
    }

    fn of_root() -> StateDir {
        StateDir { run: DEFAULT_STATE_DIR.into(), lasting: LASTING_DIR.into() }
    }

    /// `None` where the session has no folder for what runs.
    fn of_user() -> Option<StateDir> {
        let dir = |name: &str| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let run = dir("XDG_RUNTIME_DIR")?.join("tipme");
        let state = dir("XDG_STATE_HOME").or_else(|| Some(dir("HOME")?.join(".local/state")));
        Some(StateDir { lasting: state.map_or_else(|| run.clone(), |state| state.join("tipme")), run })
    }

    /// The folder of the socket, the lock and the journal.
    pub fn path(&self) -> &Path {
        &self.run
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.run.join(SOCKET_NAME)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.run.join("manage.journal")
    }

    /// The files that programs use.
    pub(crate) fn files(&self) -> PathBuf {
        self.lasting.join("preload.json")
    }

    /// Makes the folders, which nobody else may be able to change: they could have the manager "restore" what never
    /// was. What a user without root keeps for later lies where that user's files lie, whoever may write there: paths,
    /// by which nothing but what root has installed for everybody is read ahead.
    ///
    /// # Errors
    /// Where somebody else can.
    pub(crate) fn make(&self) -> Result<()> {
        secure(&self.run)?;
        if rustix::process::geteuid().is_root() {
            secure(&self.lasting)?;
        }
        Ok(())
    }

    /// Makes the folders and takes the lock, which is held as long as the file lives.
    ///
    /// # Errors
    /// As [`StateDir::make`], and where another manager has the lock.
    pub(crate) fn lock(&self) -> Result<File> {
        self.make()?;
        let dir = self.run.display();
        let path = self.run.join("manage.lock");
        life::lock(&path).map_err(|error| match error {
            LockError::Held(holder) => {
                anyhow!("another manager (pid {holder}) runs in {dir}; stop it, or give --state-dir")
            }
            LockError::Open(cause) => anyhow!(cause).context(format!("cannot open {}", path.display())),
            LockError::Write(cause) => anyhow!(cause).context("cannot write the lock file"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::choose(Some(dir.path()));
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let error = state.lock().unwrap_err().to_string();
        assert!(error.contains("others may write to"), "{error}");
    }

    #[test]
    fn two_managers_do_not_share_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::choose(Some(&dir.path().join("new")));
        let first = state.lock().unwrap();
        let error = state.lock().unwrap_err().to_string();
        assert!(error.starts_with(&format!("another manager (pid {})", std::process::id())), "{error}");
        drop(first);
        state.lock().unwrap();
    }
}
