// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of incidents, bounded in bytes and in number.
//!
//! An incident belongs to whoever marked, who may do with the file what owners may: its length and its times
//! say nothing. So incidents are ordered by their ids, and counted by the blocks that they take. A user who has too many
//! loses the own oldest; where all together have too many, the oldest of the user who has most goes first. What was just
//! written stays, and so does an incident that has a file `<id>.pin` beside it, as far as the owner may pin: see
//! [`PINNED_MAX`] and `PINNED_BYTES_MAX`.

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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tipme_record::incident::{Incident, Meta, Section, Words};

/// What a block of a file is counted in.
const BLOCK_BYTES: u64 = 512;

/// Bytes that a file system may need beside an incident.
const SLACK_BYTES: u64 = 64 << 10;

/// A folder of incidents. One process may write to it at a time: the recorder's lock sees to that.
#[derive(Clone, Debug)]
pub struct IncidentFolder {
    path: PathBuf,
    bounds: FolderBounds,
    /// Incidents that are being written, which no other mark may remove.
    fresh: Arc<Mutex<BTreeSet<String>>>,
}

impl IncidentFolder {
    /// Opens the folder for writing: makes it where it is missing, and removes files that an interrupted write left.
    ///
    /// # Errors
    /// Where it can neither be opened nor made.
    pub fn open(path: &Path) -> Result<IncidentFolder, WriteError> {
        let wrap = |error| WriteError::io(path, error);
        DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(wrap)?;
        let folder = IncidentFolder::at(path);
        for (name, partial) in folder.files().map_err(wrap)? {
            if name.ends_with(PARTIAL_ENDING) {
                fs::remove_file(&partial).map_err(|error| WriteError::io(&partial, error))?;
            }
        }
        Ok(folder)
    }

    /// The folder as it is, for reading; it need not exist.
    pub fn at(path: &Path) -> IncidentFolder {
        IncidentFolder { path: path.to_owned(), bounds: FolderBounds::default(), fresh: Arc::default() }
    }

    /// The folder with other bounds.
    pub fn with_bounds(self, bounds: FolderBounds) -> IncidentFolder {
        IncidentFolder { bounds, ..self }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether an incident of this id is there.
    pub fn has(&self, id: &str) -> bool {
        self.path.join(format!("{id}{ENDING}")).exists()
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
        let inside =
            self.own(path).ok_or_else(|| unfit(format!("it is not an incident in {}", self.path.display())))?;
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
        listed.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(listed)
    }

    /// Writes an incident, prunes, and says what could not be tidied. On a full disk the owner's oldest incidents that
    /// are not pinned make room, where that is enough; root's mark may take everybody's.
    ///
    /// # Errors
    /// Those of [`crate::write()`]. What cannot be tidied is none: the incident is there.
    pub fn keep(&self, incident: &Incident, owner: u32) -> Result<(PathBuf, Option<io::Error>), WriteError> {
        let id = incident.json::<Meta>(Section::Meta).unwrap_or_default().id;
        self.keep_by(&id, owner, |file| write_open(file, incident))
    }

    /// The same for an incident whose header and sections `fill` writes to an empty file, once more where room had to be
    /// made.
    ///
    /// # Errors
    /// As [`IncidentFolder::keep`], and those of `fill`.
    pub fn keep_by(
        &self,
        id: &str,
        owner: u32,
        fill: impl Fn(&mut File) -> io::Result<()>,
    ) -> Result<(PathBuf, Option<io::Error>), WriteError> {
        let fresh = || self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        fresh().insert(id.to_owned());
        let written = self.write_making_room(id, owner, fill);
        let untidy = written.as_ref().ok().and_then(|path| self.prune(path).err());
        fresh().remove(id);
        written.map(|path| (path, untidy))
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

    /// Removes old incidents until so many bytes are free; none, and false, where all of them do not make that much room.
    fn make_room(&self, owner: u32, wanted: u64) -> bool {
        let mut others = self.others(Path::new("")).unwrap_or_default();
        others.retain(|incident| owner == 0 || incident.owner == owner);
        let free = statvfs(&self.path).map_or(0, |disk| disk.f_bavail * disk.f_frsize);
        // Where there seems to be room, it is a quota that is full.
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

    /// Removes incidents until the rest is within the bounds, and returns them. `written` stays, and what is pinned;
    /// they take no room from others, since their owners may have made them large.
    ///
    /// # Errors
    /// Where the folder cannot be read or a file cannot be removed.
    pub fn prune(&self, written: &Path) -> io::Result<Vec<Listed>> {
        let now = id_ago(Duration::ZERO);
        let mut others = self.others(written)?;
        // From the future is what was marked while the clock was wrong: nobody knows how old it is.
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

    /// The incidents that may go: not what is being written, nor what is pinned and may be.
    fn others(&self, written: &Path) -> io::Result<Vec<Listed>> {
        let mut others = self.list()?;
        let kept = bounds::kept(&others);
        let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        others.retain(|incident| {
            let new = fresh.contains(&incident.id) || incident.path.file_name() == written.file_name();
            !new && !kept.contains(&incident.id)
        });
        Ok(others)
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
        let pinned = self.path.join(pin_name(&id)).exists();
        Some(Listed { id, path, owner: meta.uid(), bytes: meta.blocks() * BLOCK_BYTES, pinned })
    }

    fn files(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let named = |entry: fs::DirEntry| entry.file_name().into_string().ok().map(|name| (name, entry.path()));
        let entries: io::Result<Vec<fs::DirEntry>> = fs::read_dir(&self.path)?.collect();
        Ok(entries?.into_iter().filter_map(named).collect())
    }
}

/// Bytes of an incident that does not fit on the disk: it is made once more in memory, and takes as many there meanwhile.
fn size(fill: impl Fn(&mut File) -> io::Result<()>) -> io::Result<u64> {
    let mut memory = memory_file()?;
    fill(&mut memory)?;
    Ok(memory.metadata()?.len())
}
