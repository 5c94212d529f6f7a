// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output files of the verbs.

use anyhow::{Context, Result};
use rustix::fs::{Access, OFlags, access, fcntl_setfl};
use rustix::io::Errno;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Checks before a measurement that its output can be written. Keeps an existing file, leaves no
/// new one behind, and creates folders for plots.
pub fn check(json: Option<&Path>, svg: Option<&Path>) -> Result<()> {
    if let Some(path) = json {
        let checked = if is_pipe(path) { hold_pipe(path) } else { check_file(path) };
        checked.with_context(|| format!("cannot write {}", path.display()))?;
    }
    let Some(folder) = svg else { return Ok(()) };
    make(folder)?;
    access(folder, Access::WRITE_OK)
        .with_context(|| format!("cannot write to {}", folder.display()))
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo())
}

/// Opens a pipe and leaves it open until the process ends, since its reader would take a close for
/// the end.
fn hold_pipe(path: &Path) -> io::Result<()> {
    open_pipe(path).map(std::mem::forget)
}

/// Opens a pipe that has a reader. Waiting for a reader would not be interruptible.
fn open_pipe(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().write(true).custom_flags(flags).open(path);
    let file =
        opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NXIO) => {
                io::Error::other("this pipe has no reader; start the reader first")
            }
            _ => error,
        })?;
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

fn check_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match OpenOptions::new().append(true).open(path) {
                // A dangling symbolic link.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                opened => opened.map(drop),
            }
        }
        Err(error) => Err(error),
    }
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a document, indented for people or as one line.
pub fn write_json(path: &Path, document: &impl Serialize, indented: bool) -> Result<()> {
    try_write_json(path, document, indented)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn try_write_json(path: &Path, document: &impl Serialize, indented: bool) -> io::Result<()> {
    let mut file =
        BufWriter::new(if is_pipe(path) { open_pipe(path) } else { File::create(path) }?);
    if indented {
        serde_json::to_writer_pretty(&mut file, document)?;
    } else {
        serde_json::to_writer(&mut file, document)?;
    }
    writeln!(file)?;
    file.flush()
}

/// Writes plots by file name into a folder, which is created if necessary.
pub fn write_plots<N: AsRef<Path>>(
    folder: &Path,
    plots: impl IntoIterator<Item = (N, String)>,
) -> Result<()> {
    make(folder)?;
    plots.into_iter().try_for_each(|(name, svg)| write(&folder.join(name), &svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_refused_and_nothing_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let [new, old, link] = ["new", "old", "link"].map(|name| folder.path().join(name));
        std::fs::write(&old, "{}").unwrap();
        std::os::unix::fs::symlink(&new, &link).unwrap();
        for fine in [&new, &old, &link] {
            check(Some(fine), None).unwrap();
        }
        assert!(!new.exists() && link.is_symlink() && std::fs::read(&old).unwrap() == b"{}");
        for bad in [old.join("below"), folder.path().to_owned(), new.join("below")] {
            let error = check(Some(&bad), None).unwrap_err().to_string();
            assert_eq!(error, format!("cannot write {}", bad.display()));
        }
        assert!(check(None, Some(&old)).is_err());
    }

    #[test]
    fn a_pipe_needs_a_reader_and_ends_after_the_result() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let error = format!("{:#}", check(Some(&pipe), None).unwrap_err());
        assert!(error.contains("this pipe has no reader"), "{error}");
        let reader = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(&pipe);
        let mut reader = reader.unwrap();
        check(Some(&pipe), None).unwrap();
        let mut bytes = [0; 16];
        let nothing_yet = io::Read::read(&mut reader, &mut bytes).unwrap_err();
        assert_eq!(nothing_yet.kind(), io::ErrorKind::WouldBlock);
        write_json(&pipe, &[1, 2], false).unwrap();
        assert_eq!(io::Read::read(&mut reader, &mut bytes).unwrap(), 6);
        assert_eq!(&bytes[..6], b"[1,2]\n");
    }
}
