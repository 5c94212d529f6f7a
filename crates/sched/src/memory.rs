// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies memory actions: limits and protection of groups, or advice for processes.
//!
//! With control groups, a set's group is protected or limited, and a single oversized process gets
//! a group of its own. Memory stays accounted to the group in which it was allocated, even after a
//! move: processes in `rest` are therefore limited there, together with all others in it. Without
//! groups there are no limits: the pages of a process to limit are marked cold, a reclaim becomes a
//! page-out, and protection is reported as unsupported.
//!
//! This module maps each action to groups or advice; `memory_high` holds the requested limits,
//! `memory_of_rest` the limit of `rest`, and `memory_of_units` the differences with systemd.

use crate::engine::Engine;
use crate::journal::Log;
use crate::subtree::Subtree;
use crate::why::{Applied, Knob, SkipReason};
use crate::world::{Advice, KnobFault, KnobPlace, Value, World};
use tipme_policy::{Backend, Identity, MemoryAction, MemoryGroup, SetId};

/// Maximum number of bytes that one action reclaims from a group: the kernel does it while the
/// caller waits.
const RECLAIM_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of bytes that one action advises: the kernel does it while the caller waits.
const ADVICE_BYTES_MAX: u64 = 256 << 20;
/// Identity reported for a group without an owner.
pub(crate) const NOBODY: Identity = Identity { pid: 0, start: 0 };
/// Granularity of numbers in memory files: whole pages of 4 KiB or a multiple.
pub(crate) const PAGE_BYTES: u64 = 4_096;

impl<W: World, L: Log> Engine<W, L> {
    pub(crate) fn settle_memory(&mut self, action: &MemoryAction, applied: &mut Applied) {
        let has_units = self.backend == Backend::Systemd && self.units.is_some();
        match action {
            MemoryAction::Protect { set, bytes } if has_units => {
                self.protect_unit(*set, *bytes, applied);
            }
            MemoryAction::Reclaim { group, bytes } if has_units => {
                self.reclaim_unit(group, *bytes, applied);
            }
            MemoryAction::Protect { set, bytes } => self.protect(*set, *bytes, applied),
            MemoryAction::High { group: MemoryGroup::Process(who), .. } if !self.has_limits() => {
                self.mark(*who, Advice::Cold, applied);
            }
            MemoryAction::High { group, bytes } => self.limit(group, *bytes, applied),
            MemoryAction::Relieve { group, bytes } => self.relieve(group, *bytes),
            MemoryAction::Reclaim { group, bytes } => self.reclaim(group, *bytes, applied),
            MemoryAction::Room { more, least } => self.limit_rest(*more, *least, applied),
            MemoryAction::Cold(who) => self.mark(*who, Advice::Cold, applied),
            MemoryAction::PageOut(who) => self.mark(*who, Advice::PageOut, applied),
            MemoryAction::WillNeed(set) => self.prefetch(*set, applied),
        }
    }

    /// Protects memory of a set's group. The protection is effective only if the delegated group
    /// above carries the sum.
    pub(crate) fn protect(&mut self, set: SetId, bytes: u64, applied: &mut Applied) {
        let Some(mut subtree) = self.own_subtree() else {
            return self.skip(set.0, Knob::MemoryLow, SkipReason::Unsupported(NO_GROUPS), applied);
        };
        if bytes == 0 {
            subtree.protected.remove(&set);
        } else {
            subtree.protected.insert(set, whole_pages(bytes));
        }
        let sum: u64 = subtree.protected.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
        for (group, bytes) in [(subtree.dir.clone(), sum), (subtree.group(set), whole_pages(bytes))]
        {
            let want = (bytes > 0).then(|| signed(bytes));
            self.write(&format!("{group}/memory.low"), want, set.0, applied);
        }
        self.subtree = Some(subtree);
    }

    pub(crate) fn mark(&mut self, who: Identity, advice: Advice, applied: &mut Applied) {
        self.advise(who, advice, ADVICE_BYTES_MAX, applied);
    }

    /// Prefetches the memory of a set; its processes share the bound of one call.
    fn prefetch(&mut self, set: SetId, applied: &mut Applied) {
        let members = self.sets.get(&set).map(|set| set.members.clone());
        let mut left = ADVICE_BYTES_MAX;
        for member in members.into_iter().flatten() {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(self.advise(member.who, Advice::WillNeed, left, applied));
        }
    }

    /// Returns `true` if a process must be left alone: it is gone, or its memory is accounted in
    /// `rest` and would stay there after a move.
    fn is_left_alone(&self, group: &MemoryGroup, applied: &mut Applied) -> bool {
        let (MemoryGroup::Process(who), Some(subtree)) = (group, self.own_subtree()) else {
            return false;
        };
        match self.ledger.world.get(&subtree.member(*who)) {
            Ok(present) => present == Value::Text(subtree.rest()),
            Err(_) => {
                applied.vanished += 1;
                true
            }
        }
    }

    /// Returns the folder to limit for a group or process.
    pub(crate) fn group_to_limit(
        &mut self,
        group: &MemoryGroup,
        applied: &mut Applied,
    ) -> Option<String> {
        if self.is_left_alone(group, applied) {
            return None;
        }
        let found = self.group_of(group, applied);
        found.map_err(|why| self.skip(self.named(group), Knob::MemoryHigh, why, applied)).ok()
    }

    fn reclaim(&mut self, group: &MemoryGroup, bytes: u64, applied: &mut Applied) {
        if self.is_left_alone(group, applied) {
            return;
        }
        let who = self.named(group);
        if let (MemoryGroup::Process(who), true) = (group, self.own_subtree().is_none()) {
            self.advise(*who, Advice::PageOut, bytes, applied);
            return;
        }
        match self.group_of(group, applied) {
            Ok(path) => self.reclaim_group(&path, bytes, who, applied),
            Err(why) => self.skip(who, Knob::Reclaim, why, applied),
        }
    }

    pub(crate) fn reclaim_group(
        &mut self,
        folder: &str,
        bytes: u64,
        who: Identity,
        applied: &mut Applied,
    ) {
        let bytes = whole_pages(bytes.min(RECLAIM_BYTES_MAX));
        match self.ledger.world.reclaim(folder, bytes) {
            Ok(()) => applied.changed += 1,
            Err(fault) => self.skip(who, Knob::Reclaim, fault.reason(NO_MEMORY), applied),
        }
    }

    /// Returns the folder of a group; creates one for a process that needs it.
    fn group_of(
        &mut self,
        group: &MemoryGroup,
        applied: &mut Applied,
    ) -> Result<String, SkipReason> {
        let subtree = self.own_subtree().ok_or(SkipReason::Unsupported(NO_GROUPS))?;
        match group {
            MemoryGroup::Cgroup(path) => {
                let path = crate::cgroup::folder(&subtree.root, path);
                if subtree.owns(&path) {
                    Ok(path)
                } else {
                    Err(SkipReason::Unsupported("the group was not created here"))
                }
            }
            MemoryGroup::Process(who) => self.group_of_process(&subtree, *who, applied),
        }
    }

    fn group_of_process(
        &mut self,
        subtree: &Subtree,
        who: Identity,
        applied: &mut Applied,
    ) -> Result<String, SkipReason> {
        let place = subtree.member(who);
        let present = self.ledger.world.get(&place);
        let present = present.map_err(|fault| fault.reason(NO_MEMORY))?.to_string();
        if subtree.owns(&present) {
            return Ok(present);
        }
        let path = subtree.hog(who);
        // Checked before the group is created: a process that may not be moved needs none.
        self.ledger.world.admit(&place)?;
        // It was in this group, and another program has moved it.
        let step = self
            .plan_move(subtree, who, path.clone())?
            .ok_or(SkipReason::ChangedByOther(present))?;
        self.make_group(subtree, &path, who, applied);
        self.commit_for(who, vec![step], applied);
        Ok(path)
    }

    /// Advises up to `bytes`; returns the number of bytes advised.
    pub(crate) fn advise(
        &mut self,
        who: Identity,
        advice: Advice,
        bytes: u64,
        applied: &mut Applied,
    ) -> u64 {
        let place = KnobPlace::Member { process: who, root: String::new() };
        let bytes = whole_pages(bytes.min(ADVICE_BYTES_MAX));
        let admitted =
            self.ledger.world.admit(&place).map(|()| self.ledger.world.advise(who, advice, bytes));
        match admitted {
            Ok(Ok(given)) => {
                applied.changed += 1;
                return given;
            }
            Ok(Err(KnobFault::Vanished)) => applied.vanished += 1,
            Ok(Err(fault)) => self.skip(who, Knob::Advice, fault.reason(NO_MEMORY), applied),
            Err(why) => self.skip(who, Knob::Advice, why, applied),
        }
        0
    }

    pub(crate) fn own_subtree(&self) -> Option<Subtree> {
        self.subtree.clone().filter(|_| self.backend == Backend::Cgroup)
    }

    /// Returns a process on which to report a group.
    fn named(&self, group: &MemoryGroup) -> Identity {
        match group {
            MemoryGroup::Process(who) => *who,
            MemoryGroup::Cgroup(path) => {
                let set = self.subtree.as_ref().and_then(|subtree| {
                    let folder = crate::cgroup::folder(&subtree.root, path);
                    self.sets.keys().find(|set| subtree.group(**set) == folder)
                });
                set.map_or(NOBODY, |set| set.0)
            }
        }
    }
}

const NO_MEMORY: &str = "the group has no memory controller";
const NO_GROUPS: &str = "without control groups there is no limit and no protection of memory";

pub(crate) fn whole_pages(bytes: u64) -> u64 {
    bytes / PAGE_BYTES * PAGE_BYTES
}

pub(crate) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
