// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file history on disk: a small file, kept between runs, readable only by the manager's user.

use anyhow::{Result, ensure};
use rustix::fs::OFlags;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use tipme_control::journal;
use tipme_policy::preload::FileHistory;

/// Maximum number of bytes read, more than the bounds of a history allow.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Opens without blocking, in case a FIFO is in place of the file.
const NO_WAIT: i32 = OFlags::NONBLOCK.bits() as i32;

/// Reads the history; empty if there is none. An unreadable file is moved aside with a warning.
pub(crate) fn read(path: &Path) -> FileHistory {
    attempt(path).unwrap_or_else(|error| {
        let aside = path.with_extension("damaged.json");
        let moved = match std::fs::rename(path, &aside) {
            Ok(()) => format!("it is now {}", aside.display()),
            Err(error) => format!("it cannot be moved aside: {error}"),
        };
        journal::warning(format!(
            "cannot read {}: {error}; {moved}, and learning starts over",
            path.display()
        ))
        .tell();
        FileHistory::default()
    })
}

fn attempt(path: &Path) -> Result<FileHistory> {
    let file = match OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileHistory::default()),
        open => open?,
    };
    ensure!(file.metadata()?.is_file(), "it is not a regular file");
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= FILE_BYTES_MAX, "it has more than {FILE_BYTES_MAX} bytes");
    Ok(serde_json::from_slice(&bytes)?)
}

/// Writes the history atomically. On failure it warns, and loses the new history.
pub(crate) fn write(path: &Path, history: &FileHistory) {
    if let Err(error) = replace(path, history) {
        journal::warning(format!(
            "cannot write {}: {error}; what was learned is lost",
            path.display()
        ))
        .tell();
    }
}

fn replace(path: &Path, history: &FileHistory) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    }
    let new = path.with_extension("new");
    let flags = NO_WAIT | OFlags::NOFOLLOW.bits() as i32;
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(&new)?;
    file.write_all(&serde_json::to_vec(history)?)?;
    std::fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use tipme_policy::preload::RememberedFile;

    fn history() -> FileHistory {
        let mut history = FileHistory::default();
        history.remember(
            "edit",
            vec![RememberedFile { path: "/bin/edit".to_owned(), bytes: 7, changed_s: 9 }],
        );
        history
    }

    #[test]
    fn a_history_is_private_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/preload.json");
        assert_eq!(read(&path), FileHistory::default());
        write(&path, &history());
        assert_eq!(read(&path), history());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_history_is_put_aside_and_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("preload.json");
        let long = vec![b' '; FILE_BYTES_MAX as usize + 1];
        for damaged in [b"{\"programs\": 7".as_slice(), b"[[[[", b"\xff\xfe", &long] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(read(&path), FileHistory::default());
            write(&path, &history());
            assert!(
                std::fs::read(dir.path().join("preload.damaged.json")).unwrap() == damaged,
                "it is lost"
            );
            assert_eq!(read(&path), history());
        }
    }

    #[test]
    fn a_fifo_is_put_aside_and_never_waited_for() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("preload.json");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(read(&path), FileHistory::default());
        write(&path, &history());
        assert_eq!(read(&path), history());
        mkfifoat(CWD, dir.path().join("preload.new"), Mode::RUSR | Mode::WUSR).unwrap();
        write(&path, &FileHistory::default());
        assert_eq!(read(&path), history(), "what is in the way of the new one loses nothing");
    }
}
