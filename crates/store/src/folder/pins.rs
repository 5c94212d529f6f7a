// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removal and pinning on behalf of owners, since the folder belongs to root.

use super::IncidentFolder;
use super::bounds::{Listed, PINNED_BYTES_MAX, PINNED_MAX, kept};
use crate::error::WriteError;
use crate::id::{ENDING, is_plain_id, pin_name};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

impl IncidentFolder {
    /// Removes an incident and its pin on behalf of user `uid`.
    ///
    /// # Errors
    /// If there is no such incident, or it belongs to another user (root may remove all).
    pub fn remove(&self, id: &str, uid: u32) -> Result<(), WriteError> {
        let incident = self.of(id, uid)?;
        fs::remove_file(&incident.path).map_err(|error| WriteError::io(&incident.path, error))?;
        self.take_pin(id)
    }

    /// Pins or unpins an incident on behalf of user `uid`; pruning spares pinned ones.
    ///
    /// # Errors
    /// Those of [`IncidentFolder::remove`], and a pin over the owner's limits: [`PINNED_MAX`] or
    /// `PINNED_BYTES_MAX`.
    pub fn pin(&self, id: &str, uid: u32, pinned: bool) -> Result<(), WriteError> {
        let mut incident = self.of(id, uid)?;
        if !pinned {
            return self.take_pin(id);
        }
        let unfit = |why: String| WriteError::Unfit { path: incident.path.clone(), why };
        let mut all = self.list().map_err(|error| WriteError::io(self.path(), error))?;
        all.retain(|other| other.owner == incident.owner && other.pinned && other.id != id);
        let path = self.path().join(pin_name(id));
        incident.pinned = true;
        all.push(incident.clone());
        if kept(&all).len() < all.len() {
            let mib = PINNED_BYTES_MAX >> 20;
            return Err(unfit(format!(
                "a user may pin {PINNED_MAX} incidents and {mib} MiB; let another go with: tipme incidents unpin ID"
            )));
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o644).open(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(WriteError::io(&path, error))
            }
            _ => Ok(()),
        }
    }

    fn take_pin(&self, id: &str) -> Result<(), WriteError> {
        let path = self.path().join(pin_name(id));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(WriteError::io(&path, error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the incident with this id if user `uid` may change it.
    fn of(&self, id: &str, uid: u32) -> Result<Listed, WriteError> {
        let unfit =
            |why: &str| WriteError::Unfit { path: Path::new(id).to_owned(), why: why.to_owned() };
        let path = self.path().join(format!("{id}{ENDING}"));
        let listed = Some(id)
            .filter(|id| is_plain_id(id))
            .and_then(|id| self.listed(&format!("{id}{ENDING}"), path));
        let listed =
            listed.ok_or_else(|| unfit("there is no such incident; see: tipme incidents"))?;
        if uid != 0 && uid != listed.owner {
            return Err(unfit("it belongs to another user"));
        }
        Ok(listed)
    }
}
