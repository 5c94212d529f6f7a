// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs and files installed by root.
//!
//! A process chooses its own name, and its user can name a copy of any program at will. The check
//! therefore uses the executable file: owned by root, in folders that only root can change, and
//! identical to the file found by its path. A program that was replaced while it runs does not
//! count until it is restarted.

use std::fs::{Metadata, symlink_metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Permission bits for writing by the group, and by others.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// Permission bits by which everyone can read a file, and traverse a folder.
const OTHERS_READ: u32 = 0o004;
const OTHERS_SEARCH: u32 = 0o001;
/// Bit of a folder in which users cannot rename files of others.
const STICKY: u32 = 0o1000;

/// Returns the executable of a process, from its `exe` link.
pub(crate) fn file(proc: &Path, pid: u32) -> Option<PathBuf> {
    std::fs::read_link(link(proc, pid)).ok()
}

/// Returns the metadata of a file that root has installed for everyone: readable by all, writable
/// by root only. The path is checked from the root down, so that no symbolic link redirects it.
pub(crate) fn for_everybody(path: &Path) -> Option<Metadata> {
    let folders: Vec<&Path> = path.ancestors().skip(1).collect();
    for folder in folders.into_iter().rev() {
        let folder = symlink_metadata(folder).ok()?;
        if !is_safe_folder(&folder) || folder.mode() & OTHERS_SEARCH == 0 {
            return None;
        }
    }
    let found = symlink_metadata(path).ok()?;
    (is_roots(&found) && found.mode() & OTHERS_READ != 0).then_some(found)
}

/// Returns `true` if a process runs a program that root has installed under one of these names.
pub(crate) fn runs_one_of(proc: &Path, pid: u32, names: &[&str]) -> bool {
    file(proc, pid).is_some_and(|path| {
        path.file_name().is_some_and(|name| names.iter().any(|known| name == *known))
            && is_installed(&link(proc, pid), &path)
    })
}

fn link(proc: &Path, pid: u32) -> PathBuf {
    proc.join(pid.to_string()).join("exe")
}

fn is_installed(link: &Path, path: &Path) -> bool {
    // Compare the running file with the one found here: the process may have another mount
    // namespace.
    let (Ok(running), Ok(found)) = (std::fs::metadata(link), symlink_metadata(path)) else {
        return false;
    };
    let same = (running.dev(), running.ino()) == (found.dev(), found.ino());
    same && is_roots(&found)
        && path
            .ancestors()
            .skip(1)
            .all(|folder| symlink_metadata(folder).is_ok_and(|folder| is_safe_folder(&folder)))
}

/// Returns `true` for a file that only root can change.
fn is_roots(file: &Metadata) -> bool {
    file.is_file() && file.uid() == 0 && file.mode() & (GROUP_WRITES | OTHERS_WRITE) == 0
}

fn is_safe_folder(folder: &Metadata) -> bool {
    let mode = folder.mode();
    let shared = mode & GROUP_WRITES != 0 && mode & STICKY == 0;
    folder.uid() == 0 && mode & OTHERS_WRITE == 0 && !shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_copy_of_a_program_that_root_has_installed_does_not_count() {
        let root = tempfile::tempdir().expect("a folder can be made");
        let sleep = std::fs::canonicalize("/usr/bin/sleep").expect("it is installed");
        let copy = root.path().join("sleep");
        std::fs::copy(&sleep, &copy).expect("it can be copied");
        for (pid, program) in [("7", &sleep), ("8", &copy), ("9", &root.path().join("gone"))] {
            std::fs::create_dir(root.path().join(pid)).expect("it can be made");
            symlink(program, root.path().join(pid).join("exe")).expect("it can be made");
        }
        for (pid, name, runs) in [
            (7, "sleep", true),
            (7, "pipewire", false),
            // A copy below a folder that everybody can write to.
            (8, "sleep", false),
            (9, "gone", false),
            (10, "sleep", false),
        ] {
            assert_eq!(runs_one_of(root.path(), pid, &["other", name]), runs, "{pid} {name}");
        }
    }

    #[test]
    fn a_path_that_leads_to_another_file_here_does_not_count() {
        let sleep = std::fs::canonicalize("/usr/bin/sleep").expect("it is installed");
        assert!(is_installed(&sleep, &sleep));
        assert!(
            !is_installed(Path::new("/usr/bin/env"), &sleep),
            "in its own tree another file has this path"
        );
    }
}
