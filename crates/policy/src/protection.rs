// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory protection for the focused set and the core.
//!
//! Their whole memory is protected, up to half of all memory together, the focused set first. Their
//! sizes come from the last sample that listed them.

use crate::event::MemoryAction;
use crate::identity::SetId;
use std::collections::BTreeMap;

/// Upper bound of all protection together, as a fraction of memory.
const PROTECTED_DIVISOR: u64 = 2;
/// Minimum change of a set's size that updates its protection, as a fraction of memory.
const STEP_DIVISOR: u64 = 64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Protection {
    total: u64,
    /// Size of each set in the last sample that listed it.
    bytes: BTreeMap<SetId, u64>,
    /// Protection as last assigned.
    assigned: BTreeMap<SetId, u64>,
}

impl Protection {
    /// Records the sizes of sets; forgets sets that are not `known`.
    pub(crate) fn learn(
        &mut self,
        total: u64,
        bytes: BTreeMap<SetId, u64>,
        known: impl Fn(SetId) -> bool,
    ) {
        self.total = total;
        self.bytes.extend(bytes);
        self.bytes.retain(|id, _| known(*id));
    }

    /// Protects exactly these sets, in order of precedence.
    pub(crate) fn settle(&mut self, sets: &[SetId]) -> Vec<MemoryAction> {
        let mut left = self.total / PROTECTED_DIVISOR;
        let mut wanted = BTreeMap::new();
        for id in sets {
            let bytes = self.wanted(*id, left);
            if bytes > 0 && !wanted.contains_key(id) {
                wanted.insert(*id, bytes);
                left -= bytes;
            }
        }
        let ended = self.assigned.keys().filter(|id| !wanted.contains_key(id)).map(|id| (*id, 0));
        let raised = wanted
            .iter()
            .filter(|(id, bytes)| self.assigned.get(id) != Some(bytes))
            .map(|(id, bytes)| (*id, *bytes));
        let mut changes: Vec<(SetId, u64)> = ended.chain(raised).collect();
        // Shrink first, so that the sum never exceeds its bound.
        changes.sort_by_key(|(id, bytes)| *bytes > self.assigned.get(id).copied().unwrap_or(0));
        self.assigned = wanted;
        changes.into_iter().map(|(set, bytes)| MemoryAction::Protect { set, bytes }).collect()
    }

    /// Returns the size of the set, or the assigned protection if that is nearly the same.
    fn wanted(&self, id: SetId, left: u64) -> u64 {
        let bytes = self.bytes.get(&id).copied().unwrap_or(0).min(left);
        let assigned = self.assigned.get(&id).copied().filter(|assigned| {
            bytes > 0 && assigned.abs_diff(bytes) < self.total / STEP_DIVISOR && *assigned <= left
        });
        assigned.unwrap_or(bytes)
    }
}
