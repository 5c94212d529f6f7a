// SPDX-License-Identifier: MIT OR Apache-2.0
//! Removal and pinning on behalf of owners, since the folder belongs to root.

use super::bounds::{Listed, PINNED_BYTES_MAX, PINNED_MAX, kept};
use super::{IncidentFolder, OTHER_USER};
use crate::error::WriteError;
use crate::id::{ENDING, pin_name};
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
        let incident = self.changeable(id, uid)?;
        fs::remove_file(&incident.path).map_err(|error| WriteError::io(&incident.path, error))?;
        self.take_pin(id)
    }

    /// Pins or unpins an incident on behalf of user `uid`; pruning spares pinned ones.
    ///
    /// # Errors
    /// Those of [`IncidentFolder::remove`], and a pin over the owner's limits: [`PINNED_MAX`] or
    /// `PINNED_BYTES_MAX`.
    pub fn pin(&self, id: &str, uid: u32, pinned: bool) -> Result<(), WriteError> {
        let mut incident = self.changeable(id, uid)?;
        if !pinned {
            return self.take_pin(id);
        }
        let mut all = self.list().map_err(|error| WriteError::io(self.path(), error))?;
        all.retain(|other| other.owner == incident.owner && other.pinned && other.id != id);
        let path = self.path().join(pin_name(id));
        incident.pinned = true;
        all.push(incident.clone());
        if kept(&all).len() < all.len() {
            let mib = PINNED_BYTES_MAX >> 20;
            let why = format!(
                "a user may pin {PINNED_MAX} incidents and {mib} MiB; \
                 unpin another with: tipme incidents unpin ID"
            );
            return Err(WriteError::unfit(&incident.path, why));
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
    fn changeable(&self, id: &str, uid: u32) -> Result<Listed, WriteError> {
        let name = format!("{id}{ENDING}");
        let why = match self.listed(&name, self.path().join(&name)) {
            None => "there is no such incident; see: tipme incidents",
            Some(listed) if uid != 0 && uid != listed.owner => OTHER_USER,
            Some(listed) => return Ok(listed),
        };
        Err(WriteError::unfit(Path::new(id), why))
    }
}
