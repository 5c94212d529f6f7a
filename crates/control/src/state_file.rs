// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small private files: read up to a limit, and replaced atomically.

use anyhow::{Context, Result, ensure};
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Reads a file; returns `None` if there is none. Never waits for a FIFO in place of the file.
///
/// # Errors
/// If it is no regular file of at most `bytes_max` bytes, or cannot be read.
pub fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>> {
    let no_wait = OFlags::NONBLOCK.bits() as i32;
    let file = match OpenOptions::new().read(true).custom_flags(no_wait).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        open => open.with_context(|| format!("cannot read {}", path.display()))?,
    };
    ensure!(file.metadata()?.is_file(), "{} is not a regular file", path.display());
    let mut bytes = Vec::new();
    let read = file.take(bytes_max + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(bytes.len() as u64 <= bytes_max, "{} has more than {bytes_max} bytes", path.display());
    Ok(Some(bytes))
}

/// Reads and parses a file of learned values, or returns none if there is no file. Moves an
/// unreadable one aside; the second value is the message about it.
pub fn load<T: Default>(
    path: &Path,
    bytes_max: u64,
    parse: impl Fn(&[u8]) -> Result<T>,
) -> (T, Option<String>) {
    let parsed = match read(path, bytes_max) {
        Ok(None) => Ok(T::default()),
        Ok(Some(bytes)) => parse(&bytes).with_context(|| format!("cannot read {}", path.display())),
        Err(error) => Err(error),
    };
    match parsed {
        Ok(value) => (value, None),
        Err(error) => {
            let why = format!("learning starts over: {error:#}; {}", put_aside(path));
            (T::default(), Some(why))
        }
    }
}

/// Replaces a file, readable by its owner only.
///
/// It is not synced: after a power loss the previous file is as good.
///
/// # Errors
/// If it cannot be written; the previous file is left then.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let partial = path.with_extension("json.partial");
    // A leftover of a killed recorder may have another mode.
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    file.write_all(bytes)?;
    drop(file);
    std::fs::rename(&partial, path)
}

/// Moves an unreadable file aside, and describes the result for a message.
pub fn put_aside(path: &Path) -> String {
    let aside: PathBuf = path.with_extension("damaged.json");
    match std::fs::rename(path, &aside) {
        Ok(()) => format!("it is now {}", aside.display()),
        Err(error) => format!("it cannot be moved aside: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::os::unix::fs::PermissionsExt;

    const BYTES_MAX: u64 = 100;

    fn load_text(path: &Path) -> (String, Option<String>) {
        load(path, BYTES_MAX, |bytes| Ok(String::from_utf8(bytes.to_vec())?))
    }

    #[test]
    fn a_file_is_private_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.json");
        assert_eq!(load_text(&path), (String::new(), None));
        std::fs::write(path.with_extension("json.partial"), "of a killed daemon").unwrap();
        replace(&path, b"learned").unwrap();
        assert_eq!(load_text(&path), ("learned".to_owned(), None));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::create_dir(path.with_extension("json.partial")).unwrap();
        assert!(replace(&path, b"more").is_err());
        assert_eq!(
            load_text(&path).0,
            "learned",
            "what is in the way of the new one loses nothing"
        );
    }

    #[test]
    fn a_damaged_file_is_put_aside_and_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.json");
        for damaged in [&b"\xff\xfe"[..], &[b' '; BYTES_MAX as usize + 1]] {
            std::fs::write(&path, damaged).unwrap();
            let (text, why) = load_text(&path);
            assert_eq!(text, "");
            assert!(why.unwrap().starts_with("learning starts over: "));
            assert!(!path.exists());
            assert_eq!(std::fs::read(dir.path().join("file.damaged.json")).unwrap(), damaged);
        }
    }

    #[test]
    fn a_fifo_is_put_aside_and_never_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.json");
        for name in ["file.json", "file.json.partial"] {
            mkfifoat(CWD, dir.path().join(name), Mode::RUSR | Mode::WUSR).unwrap();
        }
        assert!(load_text(&path).1.unwrap().contains("is not a regular file"));
        replace(&path, b"learned").unwrap();
        assert_eq!(load_text(&path).0, "learned");
    }
}
