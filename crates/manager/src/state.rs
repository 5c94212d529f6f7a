// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager's folder: socket, journal, lock, and file history.

use anyhow::{Result, anyhow};
use std::fs::File;
use std::path::{Path, PathBuf};
use tipme_control::life::{self, LockError};
use tipme_control::manager::SOCKET_NAME;
use tipme_control::{DEFAULT_STATE_DIR, secure};

/// Root's folder for state that survives a reboot.
const LASTING_DIR: &str = "/var/lib/tipme";

/// The folders of one manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDir {
    run: PathBuf,
    /// For state that survives a reboot.
    lasting: PathBuf,
}

impl StateDir {
    /// Returns the named folder, else `/run/tipme` and `/var/lib/tipme` for root, and
    /// `$XDG_RUNTIME_DIR/tipme` and `$XDG_STATE_HOME/tipme` for others.
    pub fn choose(named: Option<&Path>) -> StateDir {
        let own = match named {
            Some(dir) => Some(StateDir { run: dir.to_owned(), lasting: dir.to_owned() }),
            None if rustix::process::geteuid().is_root() => None,
            None => StateDir::user(),
        };
        own.unwrap_or_else(StateDir::system)
    }

    /// Returns the folder in which a caller finds a manager: the named folder, else the user's own
    /// if a manager listens there, else `/run/tipme`.
    pub fn find(named: Option<&Path>) -> StateDir {
        let chosen = StateDir::choose(named);
        let here =
            named.is_some() || std::os::unix::net::UnixStream::connect(chosen.socket()).is_ok();
        if here { chosen } else { StateDir::system() }
    }

    fn system() -> StateDir {
        StateDir { run: DEFAULT_STATE_DIR.into(), lasting: LASTING_DIR.into() }
    }

    /// Returns `None` if the session has no runtime folder.
    fn user() -> Option<StateDir> {
        let [run, state, home] = ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME"]
            .map(|name| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from));
        let run = run?.join("tipme");
        let state = state.or_else(|| Some(home?.join(".local/state")));
        let lasting = state.map_or_else(|| run.clone(), |state| state.join("tipme"));
        Some(StateDir { run, lasting })
    }

    /// Returns the folder of the socket, the lock and the journal.
    pub fn path(&self) -> &Path {
        &self.run
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.run.join(SOCKET_NAME)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.run.join("manage.journal")
    }

    /// Path of the file history.
    pub(crate) fn files(&self) -> PathBuf {
        self.lasting.join("preload.json")
    }

    /// Creates the folders, and checks that no other user can change them: they could make the
    /// manager "restore" arbitrary values. The lasting state of a user without root lies among that
    /// user's files and is not checked: it holds paths, and only files that root has installed for
    /// everyone are read ahead.
    ///
    /// # Errors
    /// Fails if another user can change them.
    pub(crate) fn make(&self) -> Result<()> {
        secure(&self.run)?;
        if rustix::process::geteuid().is_root() {
            secure(&self.lasting)?;
        }
        Ok(())
    }

    /// Creates the folders and takes the lock, which is held for the lifetime of the file.
    ///
    /// # Errors
    /// Same as [`StateDir::make`]; also fails if another manager holds the lock.
    pub(crate) fn lock(&self) -> Result<File> {
        self.make()?;
        let dir = self.run.display();
        let path = self.run.join("manage.lock");
        life::lock(&path).map_err(|error| match error {
            LockError::Held(holder) => {
                anyhow!(
                    "another manager (pid {holder}) runs in {dir}; stop it, or give --state-dir"
                )
            }
            LockError::Open(cause) => {
                anyhow!(cause).context(format!("cannot open {}", path.display()))
            }
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
        assert!(
            error.starts_with(&format!("another manager (pid {})", std::process::id())),
            "{error}"
        );
        drop(first);
        state.lock().unwrap();
    }
}
