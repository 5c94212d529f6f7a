// SPDX-License-Identifier: MIT OR Apache-2.0
//! Folders that no other user can modify, so that files of a privileged daemon end up where they
//! should.

use crate::accounts;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Mode of created folders.
const MODE: u32 = 0o755;
/// Write permission for others than the owner.
const WRITABLE: u32 = 0o022;
/// Sticky bit: only owners may remove or rename their entries.
const STICKY: u32 = 0o1000;

/// Reason to reject a folder.
#[derive(Debug, Error)]
pub enum FolderError {
    #[error("cannot use {}: {cause}; run as root, or choose another --state-dir", path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error(
        "{} belongs to another user, {}; choose a --state-dir that is yours, \
         including the folders above it", path.display(), accounts::in_words(*owner)
    )]
    Owner { path: PathBuf, owner: u32 },
    #[error(
        "others may write to {0}; forbid it (chmod go-w {0}), or choose another --state-dir",
        path.display()
    )]
    Writable { path: PathBuf },
}

/// Creates a folder if it is missing, and checks that only root and the caller can change the
/// target of its path, and only the caller its contents.
///
/// # Errors
/// If another user can, or if the folder can be neither created nor examined.
pub fn secure(path: &Path) -> Result<(), FolderError> {
    let wrap = |cause| FolderError::Io { path: path.to_owned(), cause };
    let path = std::path::absolute(path).map_err(wrap)?;
    // Checks the existing part first: its owner would control all that is created in it.
    let there =
        path.ancestors().find(|part| part.symlink_metadata().is_ok()).unwrap_or(Path::new("/"));
    check_way(there)?;
    DirBuilder::new().recursive(true).mode(MODE).create(&path).map_err(wrap)?;
    // Other users read their files in there, regardless of the caller's umask.
    let mut made = path.ancestors().take_while(|part| *part != there);
    made.try_for_each(|part| {
        fs::set_permissions(part, Permissions::from_mode(MODE)).map_err(wrap)
    })?;
    check_way(&path)?;
    let found = path.canonicalize().map_err(wrap)?;
    check_way(&found)?;
    let last = found.symlink_metadata().map_err(wrap)?;
    let me = rustix::process::geteuid().as_raw();
    if last.uid() != me {
        return Err(FolderError::Owner { path: found, owner: last.uid() });
    }
    if last.mode() & WRITABLE != 0 { Err(FolderError::Writable { path: found }) } else { Ok(()) }
}

/// Checks that every part of a path, including links, belongs to root or the caller, and that only
/// its owner can replace it.
fn check_way(path: &Path) -> Result<(), FolderError> {
    path.ancestors().try_for_each(|part| {
        let found = part
            .symlink_metadata()
            .map_err(|cause| FolderError::Io { path: part.to_owned(), cause })?;
        check(part, &found)
    })
}

fn check(part: &Path, found: &Metadata) -> Result<(), FolderError> {
    let me = rustix::process::geteuid().as_raw();
    let owner = found.uid();
    if owner != 0 && owner != me {
        return Err(FolderError::Owner { path: part.to_owned(), owner });
    }
    let writable = found.is_dir() && found.mode() & WRITABLE != 0 && found.mode() & STICKY == 0;
    if writable { Err(FolderError::Writable { path: part.to_owned() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink};

    const OTHER_UID: u32 = 4242;

    fn why(path: &Path) -> String {
        secure(path).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn own_folders_are_made_and_used() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(why(&dir.path().join("a/b")), "");
        assert_eq!(why(&dir.path().join("a/b")), "");
        symlink(dir.path().join("a"), dir.path().join("link")).unwrap();
        assert_eq!(why(&dir.path().join("link/b")), "");
    }

    #[test]
    fn folders_that_others_can_change_are_refused_and_unused() {
        let dir = tempfile::tempdir().unwrap();
        let [own, open, strange, link] =
            ["own", "open", "strange", "link"].map(|name| dir.path().join(name));
        for path in [&own, &open, &strange] {
            fs::create_dir(path).unwrap();
        }
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        chown(&strange, Some(OTHER_UID), None).expect("run the tests as root");
        symlink(&own, open.join("link")).unwrap();
        symlink(&own, &link).unwrap();
        lchown(&link, Some(OTHER_UID), None).unwrap();
        symlink(&strange, dir.path().join("to-strange")).unwrap();
        for name in ["strange", "strange/below", "link", "to-strange"] {
            assert!(why(&dir.path().join(name)).contains("belongs to another user, user 4242"));
        }
        for name in ["open", "open/link"] {
            assert!(why(&dir.path().join(name)).contains("others may write to"));
        }
        assert!(!strange.join("below").exists());
    }
}
