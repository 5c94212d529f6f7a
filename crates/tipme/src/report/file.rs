// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages as files, readable by their owner only, since they contain the data of an incident.

use anyhow::{Context, Result};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a page. Keeps an existing file unless `replace` is set; follows no link.
pub fn write(place: &Path, page: &str, replace: bool) -> Result<()> {
    let written = if replace { put_in_place(place, page) } else { create(place, page) };
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error).with_context(|| {
            format!("{} exists already; name another file, or give --force", place.display())
        }),
        other => other.with_context(|| {
            format!("cannot write {}; name another file with -o", place.display())
        }),
    }
}

/// Creates a file; removes it again if it cannot be written completely.
fn create(path: &Path, page: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = file.write_all(page.as_bytes());
    if written.is_err() {
        fs::remove_file(path)?;
    }
    written
}

/// Writes a temporary file and renames it: a reader sees the old page or the new one.
fn put_in_place(place: &Path, page: &str) -> io::Result<()> {
    let mut name = place.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = place.with_file_name(name);
    create(&partial, page)?;
    let renamed = fs::rename(&partial, place);
    if renamed.is_err() {
        fs::remove_file(&partial)?;
    }
    renamed
}
