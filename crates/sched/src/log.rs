// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal file, which one process at a time may use.
//!
//! A user with write access to the journal could have processes changed. It must therefore be a
//! regular file that belongs to this user, with no write access for others. The lock is on a file
//! beside it, since the journal itself is replaced from time to time.

use crate::error::MechanismError;
use crate::journal::{Log, READ_BYTES_MAX};
use crate::processes::read_up_to;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A journal on disk.
pub(crate) struct FileLog {
    path: PathBuf,
    file: File,
    /// Locked for the lifetime of this value.
    lock: File,
}

impl FileLog {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// Fails if another process holds the lock, if the file is unsafe, or if it cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<FileLog, MechanismError> {
        let lock = private(&beside(path, ".lock"));
        let lock = lock.map_err(|source| MechanismError::journal(path, source))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| MechanismError::Busy { path: path.to_owned() })?;
        let file = private(path).map_err(|source| MechanismError::journal(path, source))?;
        check(path, &file)?;
        Ok(FileLog { path: path.to_owned(), file, lock })
    }
}

impl Drop for FileLog {
    /// Unlocks explicitly: a forked child before its exec holds the lock file too.
    fn drop(&mut self) {
        flock(&self.lock, FlockOperation::Unlock).ok();
    }
}

impl Log for FileLog {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        read_up_to(&self.path, READ_BYTES_MAX as u64)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        // Leftover of a killed process.
        fs::remove_file(&new).ok();
        let mut file = private(&new)?;
        file.write_all(bytes)?;
        fs::rename(&new, &self.path)?;
        self.file = file;
        Ok(())
    }
}

/// Opens a file for appending; a new one is accessible by its owner only. Does not follow links.
fn private(path: &Path) -> io::Result<File> {
    let (mut options, flags) =
        (OpenOptions::new(), libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
    options.append(true).create(true).mode(0o600).custom_flags(flags).open(path)
}

fn check(path: &Path, file: &File) -> Result<(), MechanismError> {
    let meta = file.metadata().map_err(|source| MechanismError::journal(path, source))?;
    let why = match () {
        () if !meta.is_file() => "it is not a regular file",
        () if meta.uid() != rustix::process::geteuid().as_raw() => "it belongs to another user",
        () if meta.mode() & 0o022 != 0 => "others can write to it",
        () => return Ok(()),
    };
    Err(MechanismError::Unsafe { path: path.to_owned(), why })
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}
