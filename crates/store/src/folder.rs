// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of incidents, bounded in bytes and in number.
//!
//! The oldest incidents go first. An incident stays where a file `<id>.pin` lies beside it, and the
//! newest stays always.

use crate::error::WriteError;
use crate::file;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tipme_record::incident::{Incident, Words};

pub(crate) const ENDING: &str = ".tipme";
pub(crate) const PARTIAL_ENDING: &str = ".tipme.partial";
const PIN_ENDING: &str = ".pin";
/// Bytes of an incident's id, at most; endings fit into a file name besides.
const MAX_ID_BYTES: usize = 128;

/// How much may lie in the folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Bytes of all incidents together.
    pub bytes: u64,
    /// Number of incidents.
    pub count: usize,
}

impl Default for Bounds {
    /// 2 GiB and 200 incidents.
    fn default() -> Bounds {
        Bounds { bytes: 2 << 30, count: 200 }
    }
}

/// An incident in the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    pub id: String,
    pub path: PathBuf,
    /// When the file was last written to.
    pub modified: SystemTime,
    pub bytes: u64,
    /// A `<id>.pin` lies beside it.
    pub pinned: bool,
}

/// A folder of incidents. One process may write to it at a time: the recorder's lock sees to that.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens the folder for writing: makes it where it is missing, and removes files that an interrupted write left.
    ///
    /// # Errors
    /// Where it can neither be opened nor made.
    pub fn open(path: &Path) -> Result<Folder, WriteError> {
        let wrap = |error| WriteError::io(path, error);
        DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(wrap)?;
        let folder = Folder { path: path.to_owned() };
        for (name, partial) in folder.files().map_err(wrap)? {
            if name.ends_with(PARTIAL_ENDING) {
                fs::remove_file(&partial).map_err(|error| WriteError::io(&partial, error))?;
            }
        }
        Ok(folder)
    }

    /// The folder as it is, for reading; it need not exist.
    pub fn at(path: &Path) -> Folder {
        Folder { path: path.to_owned() }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an incident; see [`crate::write()`].
    pub fn write(&self, incident: &Incident, owner: u32) -> Result<PathBuf, WriteError> {
        file::write(&self.path, incident, owner)
    }

    /// Adds words to an incident of this folder on behalf of user `uid`; see [`crate::append_words`].
    ///
    /// # Errors
    /// Those of [`crate::append_words`], a path that does not name an incident directly in this
    /// folder, and an incident of another user (root may add to all): so a path from a socket can
    /// be passed on.
    pub fn append_words(&self, path: &Path, words: &Words, uid: u32) -> Result<(), WriteError> {
        let unfit = |why: String| WriteError::Unfit { path: path.to_owned(), why };
        let inside = self.own(path).ok_or_else(|| unfit(format!("it is no incident in {}", self.path.display())))?;
        let owner = fs::symlink_metadata(&inside).map_err(|error| WriteError::io(path, error))?.uid();
        if uid != 0 && uid != owner {
            return Err(unfit("it belongs to another user".into()));
        }
        file::append_words(&inside, words)
    }

    /// All incidents, the oldest first; an empty list where the folder is missing.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        let files = match self.files() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut listed: Vec<Listed> = files.into_iter().filter_map(|(name, path)| self.listed(&name, path)).collect();
        listed.sort_by(|one, other| (one.modified, &one.id).cmp(&(other.modified, &other.id)));
        Ok(listed)
    }

    /// Removes the oldest unpinned incidents until the rest is within `bounds`; the newest stays.
    /// Returns those that were removed.
    ///
    /// # Errors
    /// Where the folder cannot be read or a file cannot be removed.
    pub fn prune(&self, bounds: Bounds) -> io::Result<Vec<Listed>> {
        let listed = self.list()?;
        let mut bytes: u64 = listed.iter().map(|incident| incident.bytes).sum();
        let mut count = listed.len();
        let newest = listed.last().map(|incident| incident.id.clone());
        let mut removed = Vec::new();
        for incident in listed {
            if incident.pinned || Some(&incident.id) == newest.as_ref() {
                continue;
            }
            if bytes <= bounds.bytes && count <= bounds.count {
                break;
            }
            fs::remove_file(&incident.path)?;
            bytes -= incident.bytes;
            count -= 1;
            removed.push(incident);
        }
        Ok(removed)
    }

    /// The incident that `path` names, as a path made from this folder's own; `None` where it lies elsewhere.
    fn own(&self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?;
        let parent = path.parent()?.canonicalize().ok()?;
        let inside = name.strip_suffix(ENDING).is_some_and(is_plain_id) && parent == self.path.canonicalize().ok()?;
        inside.then(|| self.path.join(name))
    }

    fn listed(&self, name: &str, path: PathBuf) -> Option<Listed> {
        let id = name.strip_suffix(ENDING).filter(|id| is_plain_id(id))?.to_owned();
        // A file that vanishes meanwhile is no longer part of the list.
        let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let pinned = self.path.join(format!("{id}{PIN_ENDING}")).exists();
        Some(Listed { id, path, modified: meta.modified().ok()?, bytes: meta.len(), pinned })
    }

    fn files(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let named = |entry: fs::DirEntry| entry.file_name().into_string().ok().map(|name| (name, entry.path()));
        let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(&self.path)?.collect();
        Ok(entries?.into_iter().filter_map(named).collect())
    }
}

/// Whether an incident's id can be a file name and nothing else.
pub(crate) fn is_plain_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_ID_BYTES).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(plain)
}
