// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of the folder, and the choice of the incident to remove.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Maximum number of pinned incidents per user.
pub const PINNED_MAX: usize = 20;

/// Maximum bytes of a user's pinned incidents.
pub(crate) const PINNED_BYTES_MAX: u64 = 512 << 20;

/// Limits of bytes and count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Bytes of incidents, without the newest and the pinned ones.
    pub bytes: u64,
    /// Number of incidents, without the pinned ones.
    pub count: usize,
}

/// Limits of the folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FolderBounds {
    /// Limit of all users together.
    pub all: Room,
    /// Limit of each user.
    pub user: Room,
}

impl Default for FolderBounds {
    /// Returns 2 GiB and 200 incidents, half of that per user.
    fn default() -> FolderBounds {
        FolderBounds {
            all: Room { bytes: 2 << 30, count: 200 },
            user: Room { bytes: 1 << 30, count: 100 },
        }
    }
}

/// An incident in the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    pub id: String,
    pub path: PathBuf,
    /// Uid of the owner.
    pub owner: u32,
    /// Bytes that it occupies on the disk.
    pub bytes: u64,
    /// `true` if a `<id>.pin` lies beside it.
    pub pinned: bool,
}

/// Returns the index of the next incident to remove after `writer` wrote one: the oldest of a user
/// over the user limit, else that of the heaviest user while the folder is over its limit.
pub(super) fn first_to_go(
    others: &[Listed],
    writer: Option<u32>,
    bounds: FolderBounds,
) -> Option<usize> {
    let mut shares: BTreeMap<u32, Room> = BTreeMap::new();
    for incident in others {
        let share = shares.entry(incident.owner).or_insert(Room { bytes: 0, count: 0 });
        *share = Room { bytes: share.bytes + incident.bytes, count: share.count + 1 };
    }
    let greedy = shares.iter().find(|(owner, share)| {
        share.bytes > bounds.user.bytes
            || share.count + usize::from(writer == Some(**owner)) > bounds.user.count
    });
    if let Some((greedy, _)) = greedy {
        return others.iter().position(|incident| incident.owner == *greedy);
    }
    let too_large = shares.values().map(|share| share.bytes).sum::<u64>() > bounds.all.bytes;
    if !too_large && others.len() < bounds.all.count {
        return None;
    }
    let weights: BTreeMap<u32, u64> = shares
        .into_iter()
        .map(|(owner, share)| (owner, if too_large { share.bytes } else { share.count as u64 }))
        .collect();
    let most = weights.values().max();
    others.iter().position(|incident| weights.get(&incident.owner) == most)
}

/// Returns the pinned incidents that stay: oldest first for each user, up to the limits of count
/// and of current size.
pub(super) fn kept(all: &[Listed]) -> BTreeSet<String> {
    let mut shares: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    let mut kept = BTreeSet::new();
    for incident in all.iter().filter(|incident| incident.pinned) {
        let (count, bytes) = shares.entry(incident.owner).or_default();
        if *count < PINNED_MAX && *bytes + incident.bytes <= PINNED_BYTES_MAX {
            (*count, *bytes) = (*count + 1, *bytes + incident.bytes);
            kept.insert(incident.id.clone());
        }
    }
    kept
}
