// SPDX-License-Identifier: MIT OR Apache-2.0
//! `memory.high`: requested for one process, and set for all processes of its group or unit.
//!
//! The limit of each folder is the sum of the requests for its limited processes and the present
//! memory of all others in it. It is recomputed whenever a request changes, is withdrawn, or its
//! process ends or moves; the last withdrawal restores the baseline. Removing a limit creates and
//! moves nothing: an unwanted limit is removed in this call, or in the next one that succeeds.

use crate::engine::Engine;
use crate::journal::Log;
use crate::memory::{NOBODY, signed, whole_pages};
use crate::memory_requests::{FolderLimit, RequestedLimit};
use crate::units_names::Property;
use crate::why::{Applied, Knob, SkipReason};
use crate::world::{KnobPlace, Value, World};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tipme_policy::{Backend, Identity, MemoryGroup};

/// Maximum number of limited processes and groups, twice the policy's bound.
const LIMITS_MAX: usize = 512;
/// Fraction of all memory that a limited folder keeps.
const LEAST_DIVISOR: u64 = 32;
const FILE: &str = "/memory.high";

impl<W: World, L: Log> Engine<W, L> {
    /// Requests a limit, which [`Engine::settle_limits`] applies.
    pub(crate) fn limit(&mut self, group: &MemoryGroup, bytes: u64, applied: &mut Applied) {
        if self.memory_requests.asked.len() >= LIMITS_MAX
            && !self.memory_requests.asked.contains_key(group)
        {
            return self.skip(
                identity_of(group),
                Knob::MemoryHigh,
                SkipReason::TooMany("memory limits"),
                applied,
            );
        }
        let folder = match self.backend {
            Backend::Systemd => self.unit_to_limit(group, applied),
            _ => self.group_to_limit(group, applied),
        };
        if let Some(folder) = folder {
            self.memory_requests
                .asked
                .insert(group.clone(), RequestedLimit { folder, bytes: whole_pages(bytes) });
        }
    }

    /// Raises or removes the requested limit, if there is one.
    pub(crate) fn relieve(&mut self, group: &MemoryGroup, bytes: u64) {
        if i64::try_from(bytes).is_err() {
            self.memory_requests.asked.remove(group);
        } else if let Some(asked) = self.memory_requests.asked.get_mut(group) {
            asked.bytes = whole_pages(bytes);
        }
    }

    /// Applies the requested limits and removes obsolete ones, including changes refused earlier.
    pub(crate) fn settle_limits(&mut self, applied: &mut Applied) {
        if !self.has_limits() {
            return;
        }
        self.follow_limited();
        self.reckon();
        let rest = self.subtree.as_ref().map(|subtree| subtree.rest());
        let limited = self.ledger.cells().filter_map(|(place, _)| limited_folder(place));
        let unwanted = limited.filter(|folder| {
            Some(*folder) != rest.as_deref() && !self.memory_requests.folders.contains_key(*folder)
        });
        for folder in unwanted.map(str::to_owned).collect::<Vec<_>>() {
            self.put(self.high(folder), None, NOBODY, applied);
        }
        for (folder, limit) in self.memory_requests.folders.clone() {
            let who = limit.asked.keys().next().map_or(NOBODY, identity_of);
            self.put(self.high(folder), Some(limit.bytes), who, applied);
        }
        self.free_limited(applied);
    }

    pub(crate) fn has_limits(&self) -> bool {
        match self.backend {
            Backend::Systemd => self.units.is_some(),
            Backend::Cgroup => self.subtree.is_some(),
            Backend::Autogroup | Backend::Nice => false,
        }
    }

    /// Returns `true` for a process with a requested limit.
    pub(crate) fn is_limited(&self, who: Identity) -> bool {
        self.memory_requests.asked.contains_key(&MemoryGroup::Process(who))
    }

    /// Updates the groups of limited processes, and forgets those that are gone or have no group of
    /// ours.
    fn follow_limited(&mut self) {
        let mut asked = std::mem::take(&mut self.memory_requests.asked);
        asked.retain(|group, asked| match self.group_folder_of(group, &asked.folder) {
            Some(folder) => {
                asked.folder = folder;
                true
            }
            None => false,
        });
        self.memory_requests.asked = asked;
    }

    fn group_folder_of(&self, group: &MemoryGroup, folder: &str) -> Option<String> {
        let MemoryGroup::Process(who) = group else {
            let place = KnobPlace::Group { path: folder.to_owned(), root: String::new() };
            return (self.ledger.world.get(&place) == Ok(1.into())).then(|| folder.to_owned());
        };
        if self.backend == Backend::Systemd {
            let units = self.units.as_ref()?;
            let present = self.ledger.world.get(&units.member(*who)).ok()?.to_string();
            let unit = units.own_unit(*who).filter(|unit| Path::new(&present).starts_with(unit));
            return unit.map(str::to_owned);
        }
        let subtree = self.subtree.as_ref()?;
        let present = self.ledger.world.get(&subtree.member(*who)).ok()?.to_string();
        (subtree.owns(&present) && present != subtree.rest()).then_some(present)
    }

    /// Recomputes the limits of folders with changed requests.
    fn reckon(&mut self) {
        let mut wanted: BTreeMap<String, BTreeMap<MemoryGroup, u64>> = BTreeMap::new();
        for (group, asked) in &self.memory_requests.asked {
            wanted.entry(asked.folder.clone()).or_default().insert(group.clone(), asked.bytes);
        }
        let mut known = std::mem::take(&mut self.memory_requests.folders);
        for (folder, asked) in wanted {
            let known = known.remove(&folder).filter(|limit| limit.asked == asked);
            let limit = known
                .unwrap_or_else(|| FolderLimit { bytes: self.bytes_for(&folder, &asked), asked });
            self.memory_requests.folders.insert(folder, limit);
        }
    }

    fn bytes_for(&self, folder: &str, asked: &BTreeMap<MemoryGroup, u64>) -> i64 {
        let (mut whole, mut may, mut have) = (u64::MAX, None, 0_u64);
        for (group, bytes) in asked {
            match group {
                MemoryGroup::Cgroup(_) => whole = whole.min(*bytes),
                MemoryGroup::Process(who) => {
                    may = Some(may.unwrap_or(0_u64).saturating_add(*bytes));
                    have = have.saturating_add(self.ledger.world.resident(*who));
                }
            }
        }
        // Memory from before a move is accounted elsewhere, so the remainder for the others can be
        // negative.
        let least = self.ledger.world.memory().total / LEAST_DIVISOR;
        let limit = may.map_or(u64::MAX, |may| {
            may.saturating_add(self.usage(folder).saturating_sub(have)).max(least)
        });
        signed(whole_pages(limit.min(whole)))
    }

    /// Returns the memory of a group; without a memory controller, that of its processes.
    fn usage(&self, folder: &str) -> u64 {
        let world = &self.ledger.world;
        match world.get(&KnobPlace::File { path: format!("{folder}/memory.current") }) {
            Ok(Value::Number(number)) => number.unsigned_abs(),
            _ => world
                .tree(folder)
                .into_iter()
                .fold(0, |sum, who| sum.saturating_add(world.resident(who))),
        }
    }

    fn high(&self, folder: String) -> KnobPlace {
        match self.backend {
            Backend::Systemd => KnobPlace::Unit { folder, property: Property::MemoryHigh },
            _ => KnobPlace::File { path: folder + FILE },
        }
    }

    /// Moves processes back that had a placement of their own for a withdrawn limit.
    fn free_limited(&mut self, applied: &mut Applied) {
        let Some(mut units) = self.units.take_if(|_| self.backend == Backend::Systemd) else {
            return;
        };
        let free: BTreeSet<Identity> =
            units.limited.iter().copied().filter(|who| !self.is_limited(*who)).collect();
        for who in &free {
            units.limited.remove(who);
            self.settle_again(&mut units, *who, applied);
        }
        if !free.is_empty() {
            self.close_scopes(&units, applied);
        }
        self.units = Some(units);
    }
}

/// Returns the folder to which a limit applies.
fn limited_folder(place: &KnobPlace) -> Option<&str> {
    match place {
        KnobPlace::Unit { folder, property: Property::MemoryHigh } => Some(folder),
        KnobPlace::File { path } => path.strip_suffix(FILE),
        _ => None,
    }
}

fn identity_of(group: &MemoryGroup) -> Identity {
    match group {
        MemoryGroup::Process(who) => *who,
        MemoryGroup::Cgroup(_) => NOBODY,
    }
}

#[cfg(test)]
mod tests;
