// SPDX-License-Identifier: MIT OR Apache-2.0
//! Incidents of the folder, and their selection by name.

use anyhow::{Context, Result, bail};
use rustix::process::geteuid;
use std::path::{Path, PathBuf};
use tipme_store::{IncidentFolder, Listed};

/// Maximum number of ids listed for an ambiguous prefix.
const NAMED_MAX: usize = 5;
/// Number of digits of the year at the start of an id.
const YEAR: usize = 4;

/// Returns the file of an incident, named by its path, its id, or a prefix of its id; by default
/// this user's newest.
pub fn find(folder: &IncidentFolder, name: Option<&str>) -> Result<PathBuf> {
    let place = folder.path().display();
    if let Some(file) = name.map(Path::new).filter(|file| file.is_file()) {
        return Ok(file.to_owned());
    }
    if name.is_some_and(str::is_empty) {
        bail!("the name of the incident is empty; see: tipme incidents");
    }
    let listed = all(folder)?;
    let Some(name) = name else {
        let newest = listed.into_iter().rfind(is_own);
        return newest.map(|one| one.path).with_context(|| {
            format!(
                "no incident of yours in {place}; press the hot key, or mark one with: tipme mark"
            )
        });
    };
    let found: Vec<&Listed> = listed.iter().filter(|one| one.id.starts_with(name)).collect();
    match found[..] {
        [one] => Ok(one.path.clone()),
        [] if Path::new(name).exists() => {
            bail!("{name} is not an incident file; see: tipme incidents")
        }
        [] => bail!(
            "{name:?} is neither a file nor the beginning of an id in {place}; see: tipme incidents"
        ),
        _ => {
            let ids: Vec<&str> =
                found.iter().rev().map(|one| one.id.as_str()).take(NAMED_MAX).collect();
            let newest = if found.len() > NAMED_MAX { ", the newest of which are" } else { "" };
            bail!(
                "{} ids begin with {name:?}; give more of it{newest}: {}",
                found.len(),
                ids.join(" ")
            )
        }
    }
}

/// Returns `true` if a word names an incident rather than starting a note: a file, or a prefix of
/// an id.
pub fn is_name(word: &str) -> bool {
    Path::new(word).is_file()
        || (word.len() >= YEAR
            && word.starts_with("20")
            && word.chars().all(|letter| letter.is_ascii_digit() || "T.Z".contains(letter)))
}

/// Returns all incidents, oldest first.
pub fn all(folder: &IncidentFolder) -> Result<Vec<Listed>> {
    folder.list().with_context(|| format!("cannot read {}", folder.path().display()))
}

/// Returns `true` if this user may read it.
pub fn is_own(listed: &Listed) -> bool {
    let user = geteuid();
    user.is_root() || listed.owner == user.as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinguished_from_words() {
        assert!(
            ["2026", "20260131T12", "20260131T230000.000Z", "/proc/self/status"]
                .into_iter()
                .all(is_name)
        );
        assert!(
            !["hello", "20", "200 ms late", "2026: it hung", "", "/nowhere.tipme"]
                .into_iter()
                .any(is_name)
        );
    }
}
