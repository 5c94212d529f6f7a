// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incidents of the folder, and which of them is meant.

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use std::path::{Path, PathBuf};
use tipme_store::{IncidentFolder, Listed};

/// Ids that are named where the beginning of an id fits several, at most.
const NAMED_MAX: usize = 5;

/// The file of an incident: named by its path, its id, or the beginning of its id; else the newest that is this user's.
pub fn find(folder: &IncidentFolder, name: Option<&str>) -> Result<PathBuf> {
    let place = folder.path().display();
    if let Some(file) = name.map(Path::new).filter(|file| file.is_file()) {
        return Ok(file.to_owned());
    }
    if name.is_some_and(str::is_empty) {
        bail!("an empty name names no incident; see: tipme incidents");
    }
    let listed = all(folder)?;
    let Some(name) = name else {
        let newest = listed.into_iter().rfind(is_own);
        return newest.map(|one| one.path).with_context(|| format!("no incident of yours in {place}; mark one first"));
    };
    let found: Vec<&Listed> = listed.iter().filter(|one| one.id.starts_with(name)).collect();
    match found[..] {
        [one] => Ok(one.path.clone()),
        [] if Path::new(name).exists() => bail!("{name} is not an incident file; see: tipme incidents"),
        [] => bail!("no file {name:?}, and no incident in {place} whose id begins so; see: tipme incidents"),
        _ => {
            let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).take(NAMED_MAX).collect();
            bail!("{} ids begin with {name:?}; give more of it: {}", found.len(), ids.join(" "))
        }
    }
}

/// All that are there, the oldest first.
pub fn all(folder: &IncidentFolder) -> Result<Vec<Listed>> {
    folder.list().with_context(|| format!("cannot read {}", folder.path().display()))
}

/// Whether this user may read it.
pub fn is_own(listed: &Listed) -> bool {
    let user = geteuid();
    user.is_root() || listed.owner == user.as_raw()
}
