// SPDX-License-Identifier: MIT OR Apache-2.0
//! The incident folder, bounded in bytes and in number of files.
//!
//! An incident belongs to the marking user, which may modify it: its length and times are not
//! trusted. Incidents are therefore ordered by id, and charged by the blocks that they occupy. A
//! user over the limit loses their own oldest incident; if the folder as a whole is over the limit,
//! the heaviest user's oldest incident goes first. The incident just written stays, and so does one
//! with a `<id>.pin` beside it, within the limits for pins: see [`PINNED_MAX`] and
//! `PINNED_BYTES_MAX`.

mod bounds;
mod pins;

use crate::encode::write_open;
use crate::error::WriteError;
use crate::file::{self, memory_file};
use crate::id::{ENDING, PARTIAL_ENDING, id_ago, is_plain_id, pin_name};
use bounds::first_to_go;
pub use bounds::{FolderBounds, Listed, PINNED_MAX, Room};
use rustix::fs::statvfs;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tipme_record::incident::{Incident, Meta, Section, Words};

/// Unit of a file's block count.
const BLOCK_BYTES: u64 = 512;

/// Extra bytes that a file system may need for an incident.
const SLACK_BYTES: u64 = 64 << 10;

const OTHER_USER: &str = "it belongs to another user";

/// A folder of incidents. Only one process at a time may write to it; the recorder's lock ensures
/// that.
#[derive(Clone, Debug)]
pub struct IncidentFolder {
    path: PathBuf,
    bounds: FolderBounds,
    /// Incidents that are being written; no other mark may remove them.
    fresh: Arc<Mutex<BTreeSet<String>>>,
}

impl IncidentFolder {
    /// Opens the folder for writing: creates it if it is missing, and removes leftovers of
    /// interrupted writes.
    ///
    /// # Errors
    /// If it can neither be opened nor created.
    pub fn open(path: &Path) -> Result<IncidentFolder, WriteError> {
        let folder = IncidentFolder::at(path);
        let created = DirBuilder::new().recursive(true).mode(0o755).create(path);
        let files = created.and_then(|()| folder.files());
        for (name, partial) in files.map_err(|error| WriteError::io(path, error))? {
            if name.ends_with(PARTIAL_ENDING) {
                fs::remove_file(&partial).map_err(|error| WriteError::io(&partial, error))?;
            }
        }
        Ok(folder)
    }

    /// Returns the folder for reading; it need not exist.
    pub fn at(path: &Path) -> IncidentFolder {
        IncidentFolder {
            path: path.to_owned(),
            bounds: FolderBounds::default(),
            fresh: Arc::default(),
        }
    }

    pub fn with_bounds(self, bounds: FolderBounds) -> IncidentFolder {
        IncidentFolder { bounds, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if the folder has an incident with this id.
    pub fn has(&self, id: &str) -> bool {
        self.path.join(format!("{id}{ENDING}")).exists()
    }

    /// Writes an incident; see [`crate::write()`].
    pub fn write(&self, incident: &Incident, owner: u32) -> Result<PathBuf, WriteError> {
        file::write(&self.path, incident, owner)
    }

    /// Adds words to an incident of this folder on behalf of user `uid`; see
    /// [`crate::append_words`].
    ///
    /// # Errors
    /// Those of [`crate::append_words`], a path that does not name an incident directly in this
    /// folder, and an incident of another user (root may add to all). A path from a socket is
    /// therefore safe to pass on.
    pub fn append_words(&self, path: &Path, words: &Words, uid: u32) -> Result<(), WriteError> {
        let Some(inside) = self.own(path) else {
            let why = format!("it is not an incident in {}", self.path.display());
            return Err(WriteError::unfit(path, why));
        };
        let owner =
            fs::symlink_metadata(&inside).map_err(|error| WriteError::io(path, error))?.uid();
        if uid != 0 && uid != owner {
            return Err(WriteError::unfit(path, OTHER_USER));
        }
        file::append_words(&inside, words)
    }

    /// Lists all incidents, oldest first; the list is empty if the folder is missing.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        let files = match self.files() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut listed: Vec<Listed> =
            files.into_iter().filter_map(|(name, path)| self.listed(&name, path)).collect();
        listed.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(listed)
    }

    /// Writes an incident and prunes the folder; returns the path and any error of pruning. On a
    /// full disk, unpinned incidents of the same owner make room, oldest first, if they suffice; a
    /// mark by root may remove those of all users.
    ///
    /// # Errors
    /// Those of [`crate::write()`]. A failure to prune is not one: the incident was written.
    pub fn keep(
        &self,
        incident: &Incident,
        owner: u32,
    ) -> Result<(PathBuf, Option<io::Error>), WriteError> {
        let id = incident.json::<Meta>(Section::Meta).unwrap_or_default().id;
        self.keep_by(&id, owner, |file| write_open(file, incident))
    }

    /// Keeps an incident like [`IncidentFolder::keep`]; `fill` writes header and sections to an
    /// empty file, again if room had to be made.
    ///
    /// # Errors
    /// Those of [`IncidentFolder::keep`] and of `fill`.
    pub fn keep_by(
        &self,
        id: &str,
        owner: u32,
        fill: impl Fn(&mut File) -> io::Result<()>,
    ) -> Result<(PathBuf, Option<io::Error>), WriteError> {
        self.fresh().insert(id.to_owned());
        let written = self.write_making_room(id, owner, fill);
        let untidy = written.as_ref().ok().and_then(|path| self.prune(path).err());
        self.fresh().remove(id);
        written.map(|path| (path, untidy))
    }

    fn fresh(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_making_room(
        &self,
        id: &str,
        owner: u32,
        fill: impl Fn(&mut File) -> io::Result<()>,
    ) -> Result<PathBuf, WriteError> {
        match file::write_by(&self.path, id, owner, &fill) {
            Err(WriteError::Full { .. }) if self.make_room(owner, size(&fill).unwrap_or(0)) => {
                file::write_by(&self.path, id, owner, &fill)
            }
            done => done,
        }
    }

    /// Removes old incidents until `wanted` bytes are free. Removes none and returns `false` if all
    /// of them together would not suffice.
    fn make_room(&self, owner: u32, wanted: u64) -> bool {
        let mut others = self.others(Path::new("")).unwrap_or_default();
        others.retain(|incident| owner == 0 || incident.owner == owner);
        let free = statvfs(&self.path).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
        // If there seems to be room, a quota is exhausted.
        let mut missing = (wanted + SLACK_BYTES).checked_sub(free).unwrap_or(wanted);
        if wanted == 0 || others.iter().map(|incident| incident.bytes).sum::<u64>() < missing {
            return false;
        }
        for incident in others {
            if missing > 0 && fs::remove_file(&incident.path).is_ok() {
                missing = missing.saturating_sub(incident.bytes);
            }
        }
        true
    }

    /// Removes incidents until the rest is within the bounds, and returns them. `written` and
    /// pinned incidents stay and are not charged, since their owners may have enlarged them.
    ///
    /// # Errors
    /// If the folder cannot be read or a file cannot be removed.
    pub fn prune(&self, written: &Path) -> io::Result<Vec<Listed>> {
        let now = id_ago(Duration::ZERO);
        let mut others = self.others(written)?;
        // Ids in the future stem from a wrong clock: their age is unknown, so they go first.
        others.sort_by_key(|incident| incident.id <= now);
        let writer = fs::symlink_metadata(written).map(|meta| meta.uid()).ok();
        let mut removed = Vec::new();
        while let Some(first) = first_to_go(&others, writer, self.bounds) {
            let incident = others.remove(first);
            match fs::remove_file(&incident.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => removed.push(incident),
            }
        }
        Ok(removed)
    }

    /// Returns the incidents that may be removed: neither those being written nor those validly
    /// pinned.
    fn others(&self, written: &Path) -> io::Result<Vec<Listed>> {
        let mut others = self.list()?;
        let kept = bounds::kept(&others);
        let fresh = self.fresh();
        others.retain(|incident| {
            let new =
                fresh.contains(&incident.id) || incident.path.file_name() == written.file_name();
            !new && !kept.contains(&incident.id)
        });
        Ok(others)
    }

    /// Resolves `path` to an incident directly in this folder; returns `None` if it lies elsewhere.
    fn own(&self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?;
        let parent = path.parent()?.canonicalize().ok()?;
        let inside = name.strip_suffix(ENDING).is_some_and(is_plain_id)
            && parent == self.path.canonicalize().ok()?;
        inside.then(|| self.path.join(name))
    }

    fn listed(&self, name: &str, path: PathBuf) -> Option<Listed> {
        let id = name.strip_suffix(ENDING).filter(|id| is_plain_id(id))?.to_owned();
        // A file that has vanished since is not listed.
        let meta = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let pinned = self.path.join(pin_name(&id)).exists();
        Some(Listed { id, path, owner: meta.uid(), bytes: meta.blocks() * BLOCK_BYTES, pinned })
    }

    fn files(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            files.extend(entry.file_name().into_string().ok().map(|name| (name, entry.path())));
        }
        Ok(files)
    }
}

/// Returns the size of an incident that does not fit on the disk: it is written to memory once
/// more, which it occupies meanwhile.
fn size(fill: impl Fn(&mut File) -> io::Result<()>) -> io::Result<u64> {
    let mut memory = memory_file()?;
    fill(&mut memory)?;
    Ok(memory.metadata()?.len())
}
