// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much may lie in the folder, and what goes when it is more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Incidents that one user may have pinned.
pub const PINNED_MAX: usize = 20;

/// Bytes that the pinned incidents of one user may take.
pub(crate) const PINNED_BYTES_MAX: u64 = 512 << 20;

/// So much, and no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Bytes that incidents take, without the newest and those that are pinned.
    pub bytes: u64,
    /// Number of incidents, without those that are pinned.
    pub count: usize,
}

/// How much may lie in the folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FolderBounds {
    /// Of everybody together.
    pub all: Room,
    /// Of each user.
    pub user: Room,
}

impl Default for FolderBounds {
    /// 2 GiB and 200 incidents, of one user half of that.
    fn default() -> FolderBounds {
        FolderBounds { all: Room { bytes: 2 << 30, count: 200 }, user: Room { bytes: 1 << 30, count: 100 } }
    }
}

/// An incident in the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    pub id: String,
    pub path: PathBuf,
    /// The user who marked.
    pub owner: u32,
    /// The room that it takes on the disk.
    pub bytes: u64,
    /// A `<id>.pin` lies beside it.
    pub pinned: bool,
}

/// What goes next beside the incident of `writer` that was just written: the oldest of a user who has too many, else of
/// the one who has most, while all together have too many.
pub(super) fn first_to_go(others: &[Listed], writer: Option<u32>, bounds: FolderBounds) -> Option<usize> {
    let mut shares: BTreeMap<u32, Room> = BTreeMap::new();
    for incident in others {
        let share = shares.entry(incident.owner).or_insert(Room { bytes: 0, count: 0 });
        *share = Room { bytes: share.bytes + incident.bytes, count: share.count + 1 };
    }
    let exceeds = |owner: u32, share: &Room| {
        share.bytes > bounds.user.bytes || share.count + usize::from(writer == Some(owner)) > bounds.user.count
    };
    if let Some((greedy, _)) = shares.iter().find(|(owner, share)| exceeds(**owner, share)) {
        return others.iter().position(|incident| incident.owner == *greedy);
    }
    let too_large = shares.values().map(|share| share.bytes).sum::<u64>() > bounds.all.bytes;
    if !too_large && others.len() < bounds.all.count {
        return None;
    }
    let weight = |share: &Room| if too_large { share.bytes } else { share.count as u64 };
    let most = shares.values().map(weight).max();
    others.iter().position(|incident| shares.get(&incident.owner).map(weight) == most)
}

/// The pinned incidents that stay, the oldest of each user first: as many as the user may pin, as large as they are now.
pub(super) fn kept(all: &[Listed]) -> BTreeSet<String> {
    let mut shares: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    let within = |incident: &&Listed| {
        let (count, bytes) = shares.entry(incident.owner).or_default();
        let fits = *count < PINNED_MAX && *bytes + incident.bytes <= PINNED_BYTES_MAX;
        if fits {
            (*count, *bytes) = (*count + 1, *bytes + incident.bytes);
        }
        fits
    };
    let pinned = all.iter().filter(|incident| incident.pinned);
    pinned.filter(within).map(|incident| incident.id.clone()).collect()
}
