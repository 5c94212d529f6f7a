// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units on the real machine: requests to systemd, and reads from the hierarchy beside it.

use crate::cgroup;
use crate::held::HeldProcess;
use crate::linux::Linux;
use crate::processes;
use crate::units_names::{self, Property, Unit};
use crate::why::SkipReason;
use crate::world::KnobFault;
use std::path::Path;
use std::time::Duration;
use tipme_policy::Identity;

/// Number of polls for a requested scope, and the interval between them.
const LOOKS_MAX: u32 = 100;
const LOOK: Duration = Duration::from_millis(5);
/// Maximum number of a unit's processes checked before a change. A larger unit is left alone.
const ADMITTED_MAX: usize = 512;

/// Returns the present value of the property. A unit without its group is gone.
pub(crate) fn get(linux: &Linux, folder: &str, property: Property) -> Result<i64, KnobFault> {
    linux.bus.get(&existing_unit(folder)?, property)
}

pub(crate) fn set(
    linux: &Linux,
    folder: &str,
    property: Property,
    number: i64,
) -> Result<(), KnobFault> {
    linux.bus.set(&existing_unit(folder)?, property, number)
}

/// Starts a scope, and waits until the process is in it.
///
/// systemd only gets a PID. The connection is therefore opened first, and the process is checked
/// after that and again when the scope exists: a scope that holds another process by then is left
/// alone, and ends with that process.
pub(crate) fn begin(
    linux: &Linux,
    folder: &str,
    root: &str,
    first: Identity,
) -> Result<(), KnobFault> {
    let unit = Unit::from_folder(folder).ok_or(KnobFault::Refused(libc::EINVAL))?;
    linux.bus.open(unit.service_manager)?;
    let held = linux.held(first)?;
    linux.admit_process(first).map_err(|_| KnobFault::Refused(libc::EPERM))?;
    held.check()?;
    let outcome =
        linux.bus.start(&unit, first.pid).and_then(|()| await_scope(linux, folder, root, &held));
    if outcome == Err(KnobFault::Refused(libc::ETIMEDOUT)) {
        linux.bus.give_up(&unit, folder);
    }
    outcome
}

fn await_scope(
    linux: &Linux,
    folder: &str,
    root: &str,
    first: &HeldProcess,
) -> Result<(), KnobFault> {
    for _ in 0..LOOKS_MAX {
        let group = cgroup::group_of(linux.proc(), first.identity().pid, root)
            .ok_or(KnobFault::Vanished)?;
        first.check()?;
        if group == folder {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    Err(KnobFault::Refused(libc::ETIMEDOUT))
}

/// Returns 1 if a scope exists; [`KnobFault::Later`] if it may still appear.
pub(crate) fn exists(linux: &Linux, folder: &str) -> Result<i64, KnobFault> {
    match Path::new(folder).is_dir() {
        false if linux.bus.is_late(folder) => Err(KnobFault::Later),
        there => Ok(i64::from(there)),
    }
}

/// Ends a scope. It ends by itself some moments after its last process has left; there is no wait,
/// as its name is unique.
pub(crate) fn end(linux: &Linux, folder: &str) -> Result<(), KnobFault> {
    match exists(linux, folder) {
        Err(_) => Err(KnobFault::Refused(libc::EINPROGRESS)),
        Ok(_) if cgroup::members(folder).is_empty() => Ok(()),
        Ok(_) => Err(KnobFault::Refused(libc::EBUSY)),
    }
}

/// Checks whether a unit may be changed. In a user's slice, only the owner's units may be;
/// elsewhere, or if changes are restricted to a tree, every process of the unit must be admitted.
pub(crate) fn admit(
    linux: &Linux,
    folder: &str,
    owner: Option<u32>,
    under: Option<Identity>,
) -> Result<(), SkipReason> {
    let root = cgroup::root_of(Path::new(folder)).unwrap_or_default();
    let root = root.to_string_lossy();
    let above = units_names::above(&root, folder);
    let users = above.iter().map(String::as_str).chain([folder]);
    let user = users.filter_map(|folder| units_names::user_slice(&root, folder)).next();
    match (under, owner, user) {
        (None, None, _) => Ok(()),
        (None, Some(owner), Some(user)) if owner == user => Ok(()),
        (None, Some(_), Some(user)) => Err(SkipReason::NotOwner(user)),
        // The parent of all user slices carries the protection of each of them.
        (None, Some(_), None) if folder.ends_with("/user.slice") && above.is_empty() => Ok(()),
        _ => admit_all(linux, folder),
    }
}

fn admit_all(linux: &Linux, folder: &str) -> Result<(), SkipReason> {
    let all = cgroup::tree(folder);
    if all.len() > ADMITTED_MAX {
        return Err(SkipReason::TooMany("processes in the unit to check each of them"));
    }
    let all = all.into_iter().filter_map(|pid| processes::identity(linux.proc(), pid));
    all.map(|who| linux.admit_process(who)).find(Result::is_err).unwrap_or(Ok(()))
}

fn existing_unit(folder: &str) -> Result<Unit, KnobFault> {
    let unit = Unit::from_folder(folder).ok_or(KnobFault::Refused(libc::EINVAL))?;
    if Path::new(folder).is_dir() { Ok(unit) } else { Err(KnobFault::Vanished) }
}

#[cfg(test)]
mod tests;
