// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output files of the verbs.

use anyhow::{Context, Result};
use rustix::fs::{Access, access};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Checks before a measurement that its output can be written. Keeps an existing file, leaves no
/// new one behind, and creates folders for plots.
pub fn check(json: Option<&Path>, svg: Option<&Path>) -> Result<()> {
    if let Some(path) = json {
        check_file(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let Some(folder) = svg else { return Ok(()) };
    make(folder)?;
    access(folder, Access::WRITE_OK)
        .with_context(|| format!("cannot write to {}", folder.display()))
}

fn check_file(path: &Path) -> io::Result<()> {
    // The reader of a pipe would take a close for the end.
    if std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo()) {
        return Ok(());
    }
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
    let mut file = BufWriter::new(File::create(path)?);
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
    fn the_reader_of_a_pipe_reads_the_result() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        check(Some(&pipe), None).unwrap();
        write_json(&pipe, &[1, 2], false).unwrap();
        assert_eq!(reader.join().unwrap(), b"[1,2]\n");
    }
}
