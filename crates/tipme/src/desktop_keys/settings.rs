// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's settings: files, and output of desktop programs.

use anyhow::{Context, Error, Result, ensure};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// First line of a file created by tipme.
pub const HEADER: &str = "# Made by tipme setup; tipme setup --undo removes it.";

/// Runs a program and returns its output; fails if the program does.
pub fn output_of(program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {}: {}", words.join(" "), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns a folder of the user: from an environment variable, else below the home folder.
pub fn user_folder(variable: &str, below_home: &str) -> Result<PathBuf> {
    let [own, home] = [variable, "HOME"]
        .map(|name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute()));
    let folder = own.or_else(|| Some(home?.join(below_home)));
    folder.context("HOME is not set; run this in a session")
}

/// Writes a file of the user atomically, and creates missing folders. Keeps a symbolic link and the
/// permissions of the file.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_file(file: &Path, text: &str) -> Result<()> {
    let place = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = place.parent().unwrap_or(Path::new("/"));
    replace(&place, folder, text).map_err(|error| cannot_write(file, folder, &error))
}

fn replace(place: &Path, folder: &Path, text: &str) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut new =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o644)).tempfile_in(folder)?;
    if let Ok(known) = place.metadata() {
        new.as_file().set_permissions(known.permissions())?;
    }
    new.write_all(text.as_bytes())?;
    new.persist(place)?;
    Ok(())
}

/// Describes a file that cannot be written, with the remedy if its folder is read-only.
fn cannot_write(file: &Path, folder: &Path, error: &io::Error) -> Error {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let file = file.display();
    match error.kind() {
        PermissionDenied | ReadOnlyFilesystem => Error::msg(format!(
            "cannot write {file}; make {} writable, then run: tipme setup",
            folder.display()
        )),
        _ => Error::msg(format!("cannot write {file}: {error}")),
    }
}

/// Removes a file created by tipme, if it exists.
pub fn remove(file: &Path) -> Result<()> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    if text.starts_with(HEADER) {
        std::fs::remove_file(file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(file: &Path) -> u32 {
        file.metadata().expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn a_linked_file_is_replaced_and_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let (kept, link) = (folder.path().join("dotfiles/config"), folder.path().join("config"));
        write_file(&kept, "first\n").expect("the folder is made");
        assert_eq!(mode(&kept), 0o644);
        std::fs::set_permissions(&kept, Permissions::from_mode(0o600)).expect("it is ours");
        std::os::unix::fs::symlink(&kept, &link).expect("a link");
        write_file(&link, "second\n").expect("it can be written");
        assert!(link.is_symlink() && mode(&kept) == 0o600);
        assert_eq!(std::fs::read_to_string(&kept).expect("it is there"), "second\n");
        assert_eq!(
            std::fs::read_dir(folder.path().join("dotfiles")).expect("it is there").count(),
            1
        );
    }

    #[test]
    fn a_failed_write_keeps_the_file() {
        let error =
            write_file(Path::new("/proc/version"), "nothing").expect_err("nobody writes there");
        assert!(error.to_string().contains("cannot write /proc/version"), "{error}");
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let why = cannot_write(Path::new("/h/a/b"), Path::new("/h/a"), &denied).to_string();
        assert_eq!(why, "cannot write /h/a/b; make /h/a writable, then run: tipme setup");
        assert!(
            std::fs::read_to_string("/proc/version").expect("it is there").starts_with("Linux")
        );
    }
}
