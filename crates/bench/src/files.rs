// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporary folders, and files with errors that name the path.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Makes a folder among temporary files, which is removed with the value.
pub(crate) fn temporary_folder(prefix: &str) -> Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).tempdir().context("cannot make a temporary folder")
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a folder with its parents.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}

/// Makes a folder that the user named; returns its absolute path.
pub(crate) fn kept_folder(path: &Path) -> Result<PathBuf> {
    make_folder(path)?;
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}
