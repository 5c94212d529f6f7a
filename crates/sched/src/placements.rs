// SPDX-License-Identifier: MIT OR Apache-2.0
//! Placements of the processes of sets in systemd units.

use crate::world::KnobPlace;
use std::collections::{BTreeMap, BTreeSet};
use tipme_policy::{Identity, SetId};

/// Placements of all processes.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// Mount point of the hierarchy.
    pub(crate) root: String,
    pub(crate) placements: BTreeMap<Identity, Placement>,
    /// Protected bytes of each set.
    pub(crate) protected: BTreeMap<SetId, u64>,
    /// Processes with a limit, and therefore a placement of their own.
    pub(crate) limited: BTreeSet<Identity>,
}

/// Placement of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placement {
    pub(crate) set: SetId,
    pub(crate) origin_unit: String,
    /// Folder of the unit used by its set alone.
    pub(crate) unit: Option<String>,
}

impl Units {
    pub(crate) fn new(root: String) -> Units {
        Units {
            root,
            placements: BTreeMap::new(),
            protected: BTreeMap::new(),
            limited: BTreeSet::new(),
        }
    }

    pub(crate) fn forget(&mut self) {
        self.placements.clear();
        self.protected.clear();
        self.limited.clear();
    }

    /// Returns the folder of the unit used by the set of this process alone.
    pub(crate) fn own_unit(&self, who: Identity) -> Option<&str> {
        self.placements.get(&who)?.unit.as_deref()
    }

    /// Returns the unit of the set's first process, else that of any process with a unit.
    pub(crate) fn unit_of_set(&self, set: SetId) -> Option<&str> {
        self.placements
            .get(&set.0)
            .into_iter()
            .chain(self.placements.values())
            .filter(|placement| placement.set == set)
            .find_map(|placement| placement.unit.as_deref())
    }

    pub(crate) fn scope(&self, set: SetId, origin_unit: &str) -> Option<&str> {
        self.placements
            .values()
            .filter(|placement| placement.set == set && placement.origin_unit == origin_unit)
            .filter_map(|placement| placement.unit.as_deref())
            .find(|unit| *unit != origin_unit)
    }

    pub(crate) fn member(&self, process: Identity) -> KnobPlace {
        KnobPlace::Member { process, root: self.root.clone() }
    }
}
