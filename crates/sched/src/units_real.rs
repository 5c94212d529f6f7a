// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units on the real machine: what is asked of systemd, and what is read from the hierarchy beside it.

use crate::cgroup;
use crate::linux::Linux;
use crate::units_names::{self, Property, Unit};
use crate::why::Why;
use crate::world::{Fault, World};
use std::path::Path;
use std::time::Duration;
use tipme_policy::Identity;

/// Looks for a scope that was asked for, and the time from one to the next.
const LOOKS_MAX: u32 = 100;
const LOOK: Duration = Duration::from_millis(5);
/// Processes of a unit whose rights are looked at before the unit is changed.
const ADMITTED_MAX: usize = 512;

/// What the unit has now. One whose group is gone is gone.
pub(crate) fn get(linux: &Linux, folder: &str, property: Property) -> Result<i64, Fault> {
    linux.bus.get(&there(folder)?, property)
}

pub(crate) fn set(linux: &Linux, folder: &str, property: Property, number: i64) -> Result<(), Fault> {
    linux.bus.set(&there(folder)?, property, number)
}

/// Begins a scope, and waits until the process is in it.
pub(crate) fn begin(linux: &Linux, folder: &str, root: &str, first: Identity) -> Result<(), Fault> {
    linux.bus.start(&Unit::of(folder).ok_or(Fault::Refused(libc::EINVAL))?, first.pid)?;
    for _ in 0..LOOKS_MAX {
        let group = cgroup::group_of(linux.proc(), first.pid, root).ok_or(Fault::Vanished)?;
        if group == folder {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    linux.bus.close();
    Err(Fault::Refused(libc::ETIMEDOUT))
}

/// A scope ends by itself some moments after its last process has left. Nobody waits for it: no other has its name.
pub(crate) fn end(folder: &str) -> Result<(), Fault> {
    if cgroup::members(folder).is_empty() { Ok(()) } else { Err(Fault::Refused(libc::EBUSY)) }
}

/// Whether a unit may be changed: of a user's slice only that of the owner; elsewhere, and where only a tree may be
/// changed, each process in it has to be one that may be changed.
pub(crate) fn admit(linux: &Linux, folder: &str, owner: Option<u32>, under: Option<Identity>) -> Result<(), Why> {
    let root = cgroup::root_of(Path::new(folder)).unwrap_or_default();
    let root = root.to_string_lossy();
    let above = units_names::above(&root, folder);
    let users = above.iter().map(String::as_str).chain([folder]);
    let user = users.filter_map(|folder| units_names::user_slice(&root, folder)).next();
    match (under, owner, user) {
        (None, None, _) => Ok(()),
        (None, Some(owner), Some(user)) if owner == user => Ok(()),
        (None, Some(_), Some(user)) => Err(Why::NotOwner(user)),
        // What all users are in carries the protection of each of them.
        (None, Some(_), None) if folder.ends_with("/user.slice") && above.is_empty() => Ok(()),
        _ => linux.tree(folder).into_iter().take(ADMITTED_MAX).try_for_each(|who| linux.admit_process(who)),
    }
}

fn there(folder: &str) -> Result<Unit, Fault> {
    let unit = Unit::of(folder).ok_or(Fault::Refused(libc::EINVAL))?;
    if Path::new(folder).is_dir() { Ok(unit) } else { Err(Fault::Vanished) }
}
