// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation of events into actions.

use crate::attention::{AttentionState, WILL_NEED};
use crate::event::{Action, DesktopEvent, GroupMemory, MemoryAction, MemoryGroup, MemorySample};
use crate::identity::SetId;
use crate::knobs::Strength;
use crate::memory::{GROUPS_MAX, MemoryLook, MemorySubject, Throttle, sum};
use crate::protection::Protection;
use crate::role::{Reason, Role};
use crate::sets::Sets;
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::Nanos;

/// The manager's decisions. The same events always lead to the same actions.
#[derive(Clone, Debug)]
pub struct Policy {
    strength: Strength,
    /// Latest time seen in an event.
    now: Nanos,
    attention: AttentionState,
    sets: Sets,
    throttle: Throttle,
    protection: Protection,
    /// Room last assigned to the rest; during a shortage, with the time of that assignment.
    room: Option<(MemoryAction, Option<Nanos>)>,
    dropped: u64,
}

impl Policy {
    /// Returns a policy without any known sets.
    pub fn new(strength: Strength) -> Policy {
        Policy {
            strength,
            now: Nanos(0),
            attention: AttentionState::default(),
            sets: Sets::default(),
            throttle: Throttle::default(),
            protection: Protection::default(),
            room: None,
            dropped: 0,
        }
    }

    /// Handles an event and returns the actions to take now, in this order; empty if nothing
    /// changes. A time before the latest one counts as the latest one.
    pub fn handle(&mut self, now: Nanos, event: DesktopEvent) -> Vec<Action> {
        self.now = self.now.max(now);
        if let DesktopEvent::Memory(sample) = event {
            return self.look(&sample);
        }
        let memory = self.take_in(event);
        self.settle(memory)
    }

    /// Returns the time at which the policy wants [`DesktopEvent::Time`]; always later than the
    /// latest time seen.
    pub fn next(&self) -> Option<Nanos> {
        if self.strength == Strength::Off {
            return None;
        }
        let away = self.attention.deadline().filter(|due| *due > self.now);
        [away, self.sets.deadline(self.now)].into_iter().flatten().min()
    }

    /// Returns the role of the process that has this id, with its reason. Returns `None` for a
    /// process in no set, and while the policy is off.
    pub fn role(&self, pid: u32) -> Option<(Role, &Reason)> {
        self.sets.role(pid)
    }

    /// Number of sets, members, core processes, busy processes, memory groups and hogs dropped at
    /// the bounds.
    pub fn dropped(&self) -> u64 {
        self.dropped + self.sets.dropped + self.throttle.dropped
    }

    fn take_in(&mut self, event: DesktopEvent) -> Vec<MemoryAction> {
        match event {
            DesktopEvent::Gone(id) => return self.remove(id),
            DesktopEvent::Keyboard(id) => return self.focus(id),
            DesktopEvent::Presence(present) => return self.presence(present),
            DesktopEvent::Core(core) => self.sets.set_core(&core, self.now),
            DesktopEvent::Set { id, members, visible } => {
                self.sets.put(id, members, visible, self.now);
            }
            DesktopEvent::Pointer(id) => self.attention.pointer = id,
            DesktopEvent::Busy(busy) => self.sets.set_busy(&busy, self.now),
            DesktopEvent::Strength(strength) => self.strength = strength,
            DesktopEvent::Memory(_) | DesktopEvent::Time => {}
        }
        Vec::new()
    }

    fn remove(&mut self, id: SetId) -> Vec<MemoryAction> {
        self.attention.forget(id);
        self.sets.remove_client(id);
        self.throttle.release(|hog| hog == id)
    }

    fn focus(&mut self, id: Option<SetId>) -> Vec<MemoryAction> {
        let was = std::mem::replace(&mut self.attention.keyboard, id);
        if was == id {
            return Vec::new();
        }
        if let Some(was) = was {
            self.sets.lose_focus(was, self.now);
        }
        let cold = id.filter(|id| {
            let entry = self.sets.get_firm(*id);
            entry.is_some_and(|entry| self.now.since(entry.out_since()) >= WILL_NEED)
        });
        cold.map(MemoryAction::WillNeed).into_iter().collect()
    }

    fn presence(&mut self, present: bool) -> Vec<MemoryAction> {
        if !present {
            self.attention.absent.get_or_insert(self.now);
            return Vec::new();
        }
        let left = self.attention.absent.take().filter(|since| self.now.since(*since) >= WILL_NEED);
        let focused = self
            .attention
            .keyboard
            .filter(|id| left.is_some() && self.sets.get_firm(*id).is_some());
        focused.map(MemoryAction::WillNeed).into_iter().collect()
    }

    /// Evaluates a memory sample by the roles of this moment, even if a deadline was missed. The
    /// sizes of sets are learned by the roles that result: a released hog is no longer a set.
    fn look(&mut self, sample: &MemorySample) -> Vec<Action> {
        let mut actions = self.settle(Vec::new());
        if self.strength == Strength::Off || sample.total == 0 {
            return actions;
        }
        let memory = self.throttle(sample);
        actions.extend(self.settle(memory));
        self.learn(sample);
        actions.extend(self.protection.settle(&self.protected()).into_iter().map(Action::Memory));
        actions
    }

    fn throttle(&mut self, sample: &MemorySample) -> Vec<MemoryAction> {
        self.dropped += sample.groups.len().saturating_sub(GROUPS_MAX) as u64;
        let MemorySample { total, available, some_percent, .. } = *sample;
        let look = MemoryLook {
            now: self.now,
            total,
            available,
            some_percent,
            subjects: self.subjects(sample),
        };
        let (attention, sets) = (&self.attention, &self.sets);
        let mut actions = self.throttle.look(&look, |id| is_exempt(attention, sets, id));
        // Repeat the room at each sample during a shortage: the rest may wait for memory although
        // its room is the same as before.
        let room = (look.room(), self.throttle.is_short().then_some(self.now));
        if self.room.as_ref() != Some(&room) {
            actions.push(room.0.clone());
            self.room = Some(room);
        }
        actions
    }

    /// Records the memory of each set.
    fn learn(&mut self, sample: &MemorySample) {
        let sums =
            self.subjects(sample).into_iter().filter_map(|(subject, groups)| match subject {
                MemorySubject::Set(id) => Some((id, sum(&groups))),
                MemorySubject::Group(_) => None,
            });
        self.protection.learn(sample.total, sums.collect(), |id| self.sets.get(id).is_some());
    }

    /// Returns the groups of a sample, keyed by their current owners.
    fn subjects<'a>(
        &self,
        sample: &'a MemorySample,
    ) -> BTreeMap<MemorySubject, Vec<&'a GroupMemory>> {
        let mut subjects: BTreeMap<MemorySubject, Vec<&GroupMemory>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for group in sample.groups.iter().take(GROUPS_MAX) {
            if names_process(group) && seen.insert(&group.group) {
                subjects.entry(self.subject(group)).or_default().push(group);
            }
        }
        subjects
    }

    /// Returns the owner of a group: the set of the process, the client that the caller names, or
    /// the group itself.
    fn subject(&self, group: &GroupMemory) -> MemorySubject {
        let named = group.set.filter(|id| self.sets.get_firm(*id).is_some());
        match &group.group {
            MemoryGroup::Process(who) => {
                MemorySubject::Set(self.sets.owner(*who).or(named).unwrap_or(SetId(*who)))
            }
            MemoryGroup::Cgroup(path) => {
                named.map_or_else(|| MemorySubject::Group(path.clone()), MemorySubject::Set)
            }
        }
    }

    fn settle(&mut self, mut memory: Vec<MemoryAction>) -> Vec<Action> {
        if self.strength == Strength::Off {
            memory = self.throttle.stop();
            self.sets.set_hogs(&BTreeMap::new(), self.now);
            memory.extend(self.protection.settle(&[]));
            memory.extend(self.room.take().map(|_| NO_LIMIT));
            let memory = memory.into_iter().map(Action::Memory);
            return self.sets.forget_all().into_iter().chain(memory).collect();
        }
        let (attention, sets) = (&self.attention, &self.sets);
        memory.extend(
            self.throttle.release(|id| is_exempt(attention, sets, id) || sets.is_superseded(id)),
        );
        self.sets.set_hogs(&self.throttle.hogs(), self.now);
        let mut actions = self.sets.settle(&self.attention, self.now);
        let (attention, sets) = (&self.attention, &self.sets);
        memory.extend(self.throttle.release_processes(|process| {
            sets.owner(process).is_some_and(|id| is_exempt(attention, sets, id))
        }));
        memory.extend(self.protection.settle(&self.protected()));
        actions.extend(memory.into_iter().map(Action::Memory));
        actions
    }

    /// Returns the sets with protected memory: keyboard focus, core, and a focus lost just now.
    fn protected(&self) -> Vec<SetId> {
        let focused = self.attention.keyboard.filter(|id| self.sets.get_firm(*id).is_some());
        let mut protected: Vec<SetId> = focused.into_iter().collect();
        for role in [Role::Core, Role::Focused] {
            let sets = self.sets.iter().filter(|(_, entry)| entry.role() == Some(role));
            protected.extend(sets.map(|(id, _)| id));
        }
        protected
    }
}

/// Removes the limit of the rest.
const NO_LIMIT: MemoryAction = MemoryAction::Room { more: i64::MAX, least: 0 };

/// Returns `false` for process 0, which does not exist.
fn names_process(group: &GroupMemory) -> bool {
    !matches!(&group.group, MemoryGroup::Process(who) if who.pid == 0)
}

/// Returns `true` for a set that can never be a hog: part of the core, or with the keyboard focus
/// now or a moment ago.
fn is_exempt(attention: &AttentionState, sets: &Sets, id: SetId) -> bool {
    attention.keyboard == Some(id)
        || sets.get(id).is_some_and(|entry| {
            entry.core || matches!(entry.role(), Some(Role::Core | Role::Focused))
        })
}
