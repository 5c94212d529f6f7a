// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small private files: read up to a limit, and replaced atomically.

use anyhow::{Context, Result, bail};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Reads a file; returns `None` if there is none.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    if bytes.len() as u64 > bytes_max {
        bail!("{} has more than {bytes_max} bytes", path.display());
    }
    Ok(Some(bytes))
}

/// Reads and parses a file of learned values, or returns none if there is no file. Moves an
/// unreadable one aside; the second value is the message about it.
pub(crate) fn load<T: Default>(
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
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
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
pub(crate) fn put_aside(path: &Path) -> String {
    let aside: PathBuf = path.with_extension("damaged.json");
    match std::fs::rename(path, &aside) {
        Ok(()) => format!("it is now {}", aside.display()),
        Err(error) => format!("it cannot be moved aside: {error}"),
    }
}
