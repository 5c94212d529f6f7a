// SPDX-License-Identifier: MIT OR Apache-2.0
//! `memory.high` of the group `rest`: the single memory limit for all processes without attention.
//!
//! The limit follows the available room in both directions. If the room is smaller than the working
//! set, all processes in `rest` would wait for memory and do little else. A strained `rest` is
//! therefore not lowered further, and gets half of the memory that the policy keeps free in
//! addition. It gets no more than that: on a guest, the display server had its memory before there
//! was a group to protect it, and lost pages to a load that got everything.

use crate::engine::Engine;
use crate::journal::Log;
use crate::memory::{NOBODY, PAGE_BYTES, signed};
use crate::why::Applied;
use crate::world::{KnobPlace, Value, World};

/// Minimum relative difference for which a limit is rewritten.
const NEAR_DIVISOR: u64 = 64;
/// A group is strained if all its tasks wait for memory for a larger share of ten seconds: with
/// many tasks, one of them is usually running.
const STRAINED_PERCENT: f32 = 40.0;
/// Fraction of all memory added to the room of a strained group: half of what the policy keeps
/// free.
const RELIEF_DIVISOR: u64 = 32;
const PAGE: i64 = PAGE_BYTES as i64;

impl<W: World, L: Log> Engine<W, L> {
    /// Limits `rest` to its present size plus `more`, but not below the part that the kernel cannot
    /// reclaim. Keeps a limit that is nearly the same.
    pub(crate) fn limit_rest(&mut self, more: i64, least: u64, applied: &mut Applied) {
        let subtree = self.own_subtree().filter(|subtree| self.has_group(subtree, &subtree.rest()));
        let Some(path) = subtree.map(|subtree| subtree.rest()) else { return };
        let file = format!("{path}/memory.high");
        let has =
            self.ledger.world.get(&KnobPlace::File { path: format!("{path}/memory.current") });
        // Without the controller there is nothing to limit.
        let Ok(Value::Number(has)) = has else { return };
        let strained = self.ledger.world.full_percent(&path) > STRAINED_PERCENT;
        let relief =
            if strained { signed(self.ledger.world.memory().total / RELIEF_DIVISOR) } else { 0 };
        let least = signed(least).max(self.fixed(&path, has));
        let room = (more < i64::MAX).then(|| has.saturating_add(more).saturating_add(relief));
        let bytes = room.map(|bytes| bytes.max(least) / PAGE * PAGE);
        let cell = self.ledger.cell(&KnobPlace::File { path: file.clone() });
        let applied_bytes = cell.and_then(|cell| cell.applied.number());
        let stays = applied_bytes.zip(bytes).is_some_and(|(old, bytes)| {
            let near = old.abs_diff(bytes) < old.unsigned_abs() / NEAR_DIVISOR;
            near || strained && bytes < old
        });
        if !stays {
            self.write(&file, bytes, NOBODY, applied);
        }
    }

    /// Returns the part of a group's memory that cannot be reclaimed: all but its file pages and
    /// the amount of free swap.
    fn fixed(&self, group: &str, has: i64) -> i64 {
        let free =
            self.ledger.world.file_bytes(group).saturating_add(self.ledger.world.memory().swap);
        has.saturating_sub(signed(free)).max(0)
    }
}
