// SPDX-License-Identifier: MIT OR Apache-2.0
//! Search for another program of tipme: beside the own executable, then in `PATH`.
//!
//! Root runs nothing that another user could have put there: neither the file nor any directory
//! above it may be writable by others. Beside the running program, those are trusted that could
//! have written the running program itself. A build in a user's own directory, started by sudo,
//! thus finds the programs built with it.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode bits: a directory in which users replace only their own files, and write permissions.
const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Non-root user, group or everybody with permission to write or replace a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Writer {
    User(u32),
    Group(u32),
    Everybody,
}

/// Directory in which programs are searched.
struct ProgramFolder {
    folder: PathBuf,
    /// Non-root writers that are trusted there if root searches; `None` if anything is trusted.
    trusted: Option<BTreeSet<Writer>>,
}

/// Returns the executable of the running program.
pub fn own() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find this program's own file")
}

/// Finds the executable of another program by name; returns `None` if there is none.
///
/// # Errors
/// If there are only files that root must not run.
pub fn find(name: &str) -> Result<Option<PathBuf>> {
    let own = own()?;
    let is_root = rustix::process::geteuid().is_root();
    let trusted = if is_root {
        Some(writers(&own).context("cannot check the permissions of this program")?)
    } else {
        None
    };
    let beside = own.parent().map(|folder| ProgramFolder { folder: folder.to_owned(), trusted });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let in_path =
        folders.map(|folder| ProgramFolder { folder, trusted: is_root.then(BTreeSet::new) });
    search(&beside.into_iter().chain(in_path).collect::<Vec<_>>(), name)
}

/// Returns the first file that may be run.
fn search(places: &[ProgramFolder], name: &str) -> Result<Option<PathBuf>> {
    let mut refused = None;
    for place in places {
        match program(&place.folder, name) {
            Some(path) if place.trusts(&path) => return Ok(Some(path)),
            found => refused = refused.or(found),
        }
    }
    if let Some(path) = refused {
        bail!(
            "{} is writable by users other than root, so root does not run it; install {name}",
            path.display()
        );
    }
    Ok(None)
}

impl ProgramFolder {
    fn trusts(&self, path: &Path) -> bool {
        let Some(trusted) = &self.trusted else { return true };
        writers(path).is_ok_and(|writers| writers.is_subset(trusted))
    }
}

/// Returns the file behind all links if it is executable and still has this name: a link could lead
/// to any program.
fn program(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = folder.join(name).canonicalize().ok()?;
    let about = path.metadata().ok()?;
    let runs = about.is_file() && about.permissions().mode() & 0o111 != 0;
    (runs && path.file_name().is_some_and(|found| found == name)).then_some(path)
}

/// Returns the writers of a file and of all directories above it.
fn writers(path: &Path) -> io::Result<BTreeSet<Writer>> {
    let mut all = BTreeSet::new();
    for place in path.ancestors() {
        all.extend(writers_of(&place.symlink_metadata()?));
    }
    Ok(all)
}

fn writers_of(about: &Metadata) -> impl Iterator<Item = Writer> {
    let mode = if about.mode() & STICKY != 0 && about.is_dir() { 0 } else { about.mode() };
    let owner = (about.uid() != 0).then_some(Writer::User(about.uid()));
    let group = (mode & GROUP_WRITES != 0).then_some(Writer::Group(about.gid()));
    let others = (mode & OTHERS_WRITE != 0).then_some(Writer::Everybody);
    [owner, group, others].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// Returns a directory owned by this user with a program in it.
    fn folder() -> (TempDir, PathBuf) {
        let folder = TempDir::new().expect("there is room");
        let program = folder.path().join("tipme-lab");
        fs::write(&program, "").expect("there is room");
        allow(&program, 0o755);
        allow(folder.path(), 0o755);
        (folder, program)
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is this user's own");
    }

    /// Searches as root does in `PATH`.
    fn find_in(folders: &[&Path]) -> Result<Option<PathBuf>> {
        let me = rustix::process::geteuid().as_raw();
        let trusted = if me == 0 { BTreeSet::new() } else { BTreeSet::from([Writer::User(me)]) };
        let folders: Vec<ProgramFolder> = folders
            .iter()
            .map(|folder| ProgramFolder {
                folder: folder.to_path_buf(),
                trusted: Some(trusted.clone()),
            })
            .collect();
        search(&folders, "tipme-lab")
    }

    #[test]
    fn the_first_executable_is_found() {
        let ((first, _), (second, program), (third, _)) = (folder(), folder(), folder());
        allow(&first.path().join("tipme-lab"), 0o644);
        let found =
            find_in(&[Path::new("/nonexistent"), first.path(), second.path(), third.path()]);
        assert_eq!(
            found.expect("nothing is refused"),
            Some(program.canonicalize().expect("it is there"))
        );
        assert_eq!(find_in(&[first.path()]).expect("nothing is refused"), None);
    }

    #[test]
    fn root_runs_nothing_that_others_may_write() {
        for (mode_of_file, mode_of_folder) in
            [(0o757, 0o755), (0o775, 0o755), (0o755, 0o757), (0o755, 0o775)]
        {
            let (folder, program) = folder();
            allow(&program, mode_of_file);
            allow(folder.path(), mode_of_folder);
            let refused = find_in(&[folder.path()]).expect_err("others may write it").to_string();
            assert!(refused.contains("is writable by users other than root"), "{refused}");
        }
    }

    #[test]
    fn an_untrusted_program_is_skipped_for_a_trusted_one() {
        let ((open, program), (shut, good)) = (folder(), folder());
        allow(&program, 0o777);
        let found = find_in(&[open.path(), shut.path()]).expect("there is a good one");
        assert_eq!(found, Some(good.canonicalize().expect("it is there")));
    }

    #[test]
    fn links_are_resolved_before_the_check() {
        let ((open, _), (links, program)) = (folder(), folder());
        allow(open.path(), 0o777);
        fs::remove_file(&program).expect("it is there");
        symlink(open.path().join("tipme-lab"), &program).expect("there is room");
        assert!(find_in(&[links.path()]).is_err());
        fs::remove_file(&program).expect("it is there");
        symlink("/bin/sh", &program).expect("there is room");
        assert_eq!(find_in(&[links.path()]).expect("nothing is refused"), None);
    }

    #[test]
    fn writers_of_the_own_program_are_trusted_beside_it() {
        let (folder, program) = folder();
        allow(&program, 0o775);
        assert!(find_in(&[folder.path()]).is_err());
        let beside =
            ProgramFolder { folder: folder.path().to_owned(), trusted: writers(&program).ok() };
        assert!(search(&[beside], "tipme-lab").expect("nothing is refused").is_some());
    }
}
