// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of units: protection of attended sets, limits for oversized ones.
//!
//! Protection is effective only as far as all ancestors carry it, so slices up to the root get the
//! sum of the protection below them. A process to limit gets a scope of its own if its unit holds
//! other processes as well; its earlier memory stays accounted to the old unit. If it cannot leave,
//! as from a service, its pages are marked cold instead.

use crate::engine::Engine;
use crate::journal::Log;
use crate::memory::whole_pages;
use crate::placements::Units;
use crate::units_names;
use crate::why::{Applied, Knob, SkipReason};
use crate::world::{Advice, World};
use tipme_policy::{Identity, MemoryGroup, SetId};

impl<W: World, L: Log> Engine<W, L> {
    pub(crate) fn protect_unit(&mut self, set: SetId, bytes: u64, applied: &mut Applied) {
        let Some(mut units) = self.units.take() else { return };
        units.protected.remove(&set);
        if bytes > 0 {
            units.protected.insert(set, whole_pages(bytes));
            if units.unit_of_set(set).is_none() {
                self.skip(set.0, Knob::MemoryLow, SkipReason::Unsupported(NO_UNIT), applied);
            }
        }
        self.settle_properties(&units, applied);
        self.units = Some(units);
    }

    /// Returns the unit to limit for a group or process. If there is none, marks the pages of the
    /// process cold.
    pub(crate) fn unit_to_limit(
        &mut self,
        group: &MemoryGroup,
        applied: &mut Applied,
    ) -> Option<String> {
        let mut units = self.units.take()?;
        let (who, unit) = match group {
            MemoryGroup::Process(who) => (*who, self.unit_of_process(&mut units, *who, applied)),
            MemoryGroup::Cgroup(path) => named(&units, path),
        };
        self.units = Some(units);
        if unit.is_none() {
            self.mark(who, Advice::Cold, applied);
        }
        unit
    }

    /// Returns the unit of a process alone; starts one if necessary.
    fn unit_of_process(
        &mut self,
        units: &mut Units,
        who: Identity,
        applied: &mut Applied,
    ) -> Option<String> {
        if units.own_unit(who).is_none() {
            if let Err(why) = self.ledger.world.admit(&units.member(who)) {
                self.skip(who, Knob::MemoryHigh, why, applied);
                return None;
            }
            units.limited.insert(who);
            self.settle_again(units, who, applied);
        }
        if units.own_unit(who).is_none() {
            units.limited.remove(&who);
        }
        units.own_unit(who).map(str::to_owned)
    }

    /// Places a process again after it has gained or lost a limit.
    pub(crate) fn settle_again(&mut self, units: &mut Units, who: Identity, applied: &mut Applied) {
        let origin = self
            .origin_of(units, who)
            .and_then(|origin| units_names::unit_folder(&units.root, &origin));
        if let Some(origin_unit) = origin {
            self.settle_unit(units, &origin_unit, &[who], applied);
        } else if let Some(placement) = units.placements.get(&who) {
            // The process is gone, and its placement with it.
            let origin_unit = placement.origin_unit.clone();
            self.settle_unit(units, &origin_unit, &[], applied);
        }
    }

    pub(crate) fn reclaim_unit(&mut self, group: &MemoryGroup, bytes: u64, applied: &mut Applied) {
        let Some(units) = &self.units else { return };
        let (who, unit) = match group {
            MemoryGroup::Process(who) => (*who, units.own_unit(*who).map(str::to_owned)),
            MemoryGroup::Cgroup(path) => named(units, path),
        };
        match unit {
            Some(folder) => self.reclaim_group(&folder, bytes, who, applied),
            None => {
                self.advise(who, Advice::PageOut, bytes, applied);
            }
        }
    }
}

const NO_UNIT: &str = "it shares its unit with others, so its memory cannot be protected";

/// Finds the unit of a set by its path in the hierarchy, and a process of it.
fn named(units: &Units, path: &str) -> (Identity, Option<String>) {
    let folder = crate::cgroup::folder(&units.root, path);
    let found =
        units.placements.iter().find(|(_, placement)| placement.unit.as_ref() == Some(&folder));
    found.map_or((crate::memory::NOBODY, None), |(who, _)| (*who, Some(folder)))
}
