// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the person: files, and what the programs of a desktop say.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first line of a file of ours.
pub const MADE: &str = "# Made by tipme setup; tipme setup --undo removes it.";

/// What a program says; an error where it fails.
pub fn ask(program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {}: {}", words.join(" "), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A folder of the person's: by its variable, else below the home.
pub fn folder_of(variable: &str, below_home: &str) -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)));
    folder.context("HOME is not set; run this in a session")
}

/// Writes a file of the person's, with the folders on the way.
///
/// # Errors
/// Where it cannot be written.
pub fn put(file: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
    Ok(std::fs::write(file, text)?)
}

/// Removes a file of ours, where it is there.
pub fn remove(file: &Path) -> Result<()> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    if text.starts_with(MADE) {
        std::fs::remove_file(file)?;
    }
    Ok(())
}
