// SPDX-License-Identifier: MIT OR Apache-2.0
//! `memory.high` of the group `rest`: the one limit to the memory of all that nobody attends to.
//!
//! It follows the room that there is, both ways. Where that is less than what is used again and again, all in `rest`
//! would wait for memory and do little else: so a strained `rest` is not lowered further, and has half of what is kept
//! free besides. No more than that: a guest's display server, which had its memory before there was a group to
//! protect it, lost pages to a load that was given all.

use crate::engine::Engine;
use crate::journal::Log;
use crate::memory::{NOBODY, PAGE_BYTES};
use crate::why::Applied;
use crate::world::{KnobPlace, Value, World};

/// A limit is rewritten where it differs by this part of it.
const NEAR_DIVISOR: u64 = 64;
/// A group whose tasks all wait for memory for a larger share of ten seconds is strained: of many, one is soon at work.
const STRAINED_PERCENT: f32 = 40.0;
/// Then this part of all memory is added to its room: half of what the policy keeps free.
const RELIEF_DIVISOR: u64 = 32;
const PAGE: i64 = PAGE_BYTES as i64;

impl<W: World, L: Log> Engine<W, L> {
    /// Limits `rest` to what it has and so much more, but not below what the kernel cannot take from it. A limit that is
    /// nearly the same stays.
    pub(crate) fn limit_rest(&mut self, more: i64, least: u64, applied: &mut Applied) {
        let subtree = self.own_subtree().filter(|subtree| self.has_group(subtree, &subtree.rest()));
        let Some(path) = subtree.map(|subtree| subtree.rest()) else { return };
        let file = format!("{path}/memory.high");
        let has = self.ledger.world.get(&KnobPlace::File { path: format!("{path}/memory.current") });
        // Without the controller there is nothing to limit.
        let Ok(Value::Number(has)) = has else { return };
        let strained = self.ledger.world.full_percent(&path) > STRAINED_PERCENT;
        let relief = if strained { signed(self.ledger.world.memory().total / RELIEF_DIVISOR) } else { 0 };
        let least = signed(least).max(self.fixed(&path, has));
        let room = (more < i64::MAX).then(|| has.saturating_add(more).saturating_add(relief));
        let bytes = room.map(|bytes| bytes.max(least) / PAGE * PAGE);
        let told = self.ledger.cell(&KnobPlace::File { path: file.clone() }).and_then(|cell| cell.applied.number());
        let stays = told.zip(bytes).is_some_and(|(told, bytes)| {
            let near = told.abs_diff(bytes) < told.unsigned_abs() / NEAR_DIVISOR;
            near || strained && bytes < told
        });
        if !stays {
            self.write(&file, bytes, NOBODY, applied);
        }
    }

    /// Bytes of a group that has so many which cannot be taken: all but its file pages and what there is swap for.
    fn fixed(&self, group: &str, has: i64) -> i64 {
        let free = self.ledger.world.file_bytes(group).saturating_add(self.ledger.world.memory().swap);
        has.saturating_sub(signed(free)).max(0)
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
