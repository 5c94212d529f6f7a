// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy with a mechanism that only records its orders.

use std::collections::{BTreeMap, BTreeSet};
use tipme_policy::{
    Action, Assignment, DesktopEvent, GroupMemory, Identity, Member, Membership, MemoryAction,
    MemoryGroup, Policy, Role, SetId, Strength,
};
use tipme_record::Nanos;

pub const MIB: u64 = 1 << 20;

/// Returns the process with this id; its start time is a hundred times the id.
pub fn process(pid: u32) -> Identity {
    Identity { pid, start: u64::from(pid) * 100 }
}

/// Returns the set of the client with this id.
pub fn set(pid: u32) -> SetId {
    SetId(process(pid))
}

/// Returns a client and its children.
pub fn members(pids: &[u32]) -> Vec<Member> {
    let reasons = [Membership::Client].into_iter().chain(std::iter::repeat(Membership::Child));
    pids.iter().zip(reasons).map(|(pid, because)| Member { who: process(*pid), because }).collect()
}

/// Returns the event of a new set; the client comes first.
pub fn shown(pids: &[u32], visible: bool) -> DesktopEvent {
    DesktopEvent::Set { id: set(pids[0]), members: members(pids), visible }
}

/// Returns a process that has this many bytes.
pub fn holder(pid: u32, bytes: u64) -> GroupMemory {
    GroupMemory { group: MemoryGroup::Process(process(pid)), bytes, full_percent: 0.0, set: None }
}

/// Returns a cgroup that has this many bytes.
pub fn cgroup(path: &str, bytes: u64, full_percent: f32, set: Option<SetId>) -> GroupMemory {
    GroupMemory { group: MemoryGroup::Cgroup(path.to_owned()), bytes, full_percent, set }
}

/// The policy, and the state that a mechanism would have established for it.
pub struct Fixture {
    pub policy: Policy,
    pub assigned: BTreeMap<SetId, Assignment>,
    pub protected: BTreeMap<SetId, u64>,
    pub limited: BTreeMap<MemoryGroup, u64>,
    /// Room of the rest as last assigned.
    pub room: Option<i64>,
}

impl Fixture {
    pub fn new(strength: Strength) -> Fixture {
        Fixture {
            policy: Policy::new(strength),
            assigned: BTreeMap::new(),
            protected: BTreeMap::new(),
            limited: BTreeMap::new(),
            room: None,
        }
    }

    /// Handles an event, performs the resulting actions and checks them.
    pub fn at(&mut self, ms: u64, event: DesktopEvent) -> Vec<Action> {
        let actions = self.policy.handle(Nanos::from_millis(ms), event);
        actions.iter().for_each(|action| self.perform(action));
        actions
    }

    /// Same as [`Fixture::at`], with the actions as lines of text. The room of the rest, which each
    /// memory sample updates, is left out.
    pub fn lines(&mut self, ms: u64, event: DesktopEvent) -> Vec<String> {
        let mut actions = self.at(ms, event);
        actions.retain(|action| !matches!(action, Action::Memory(MemoryAction::Room { .. })));
        actions.iter().map(line).collect()
    }

    /// Returns `true` if nothing is assigned, protected or limited.
    pub fn is_idle(&self) -> bool {
        self.assigned.is_empty() && self.protected.is_empty() && self.limited.is_empty()
    }

    pub fn role(&self, pid: u32) -> Option<Role> {
        self.policy.role(pid).map(|(role, _)| role)
    }

    pub fn next_ms(&self) -> Option<u64> {
        self.policy.next().map(|due| due.0 / 1_000_000)
    }

    fn perform(&mut self, action: &Action) {
        match action {
            Action::Assign(assignment) => {
                let old = self.assigned.insert(assignment.set, assignment.clone());
                assert_ne!(old.as_ref(), Some(assignment), "the same assignment twice");
                self.check_members();
            }
            Action::Forget(id) => {
                assert!(self.assigned.remove(id).is_some(), "{id} was never assigned")
            }
            Action::Memory(action) => self.perform_memory(action),
        }
    }

    fn perform_memory(&mut self, action: &MemoryAction) {
        match action {
            MemoryAction::Protect { set, bytes: 0 } => {
                assert!(self.protected.remove(set).is_some())
            }
            MemoryAction::Protect { set, bytes } => {
                assert_ne!(self.protected.insert(*set, *bytes), Some(*bytes))
            }
            MemoryAction::Relieve { group, bytes: tipme_policy::UNLIMITED } => {
                assert!(self.limited.remove(group).is_some(), "{group:?} had no limit");
            }
            MemoryAction::High { group, bytes } => {
                let old = self.limited.insert(group.clone(), *bytes);
                assert!(
                    old.is_none_or(|old| *bytes < old),
                    "a limit is lowered, from {old:?} to {bytes}"
                );
            }
            MemoryAction::Relieve { group, bytes } => {
                let old = self.limited.insert(group.clone(), *bytes);
                assert!(
                    old.is_some_and(|old| old < *bytes),
                    "a limit is raised, from {old:?} to {bytes}"
                );
            }
            MemoryAction::WillNeed(id) => {
                assert!(self.assigned.contains_key(id), "{id} is not assigned")
            }
            MemoryAction::Room { more, .. } => self.room = Some(*more),
            MemoryAction::Reclaim { .. } | MemoryAction::Cold(_) | MemoryAction::PageOut(_) => {}
        }
    }

    /// Asserts that each process is in at most one assignment.
    fn check_members(&self) {
        let mut seen = BTreeSet::new();
        for member in self.assigned.values().flat_map(|assignment| &assignment.members) {
            assert!(
                seen.insert(member.who),
                "{:?} is in two assignments: {:#?}",
                member.who,
                self.assigned
            );
        }
    }
}

fn line(action: &Action) -> String {
    match action {
        Action::Assign(assignment) => {
            let pids: Vec<String> =
                assignment.members.iter().map(|member| member.who.pid.to_string()).collect();
            let Assignment { set, role, faded, reason, .. } = assignment;
            let faded = if *faded > 0.0 { format!(" {faded:.1}") } else { String::new() };
            format!("{set} {role}{faded} [{}]: {reason}", pids.join(" "))
        }
        Action::Forget(set) => format!("{set} forgotten"),
        Action::Memory(action) => memory_line(action),
    }
}

fn memory_line(action: &MemoryAction) -> String {
    match action {
        MemoryAction::Protect { set, bytes } => format!("protect {set}: {} MiB", bytes / MIB),
        MemoryAction::High { group, bytes } => {
            format!("limit {}: {} MiB", name(group), bytes / MIB)
        }
        MemoryAction::Reclaim { group, bytes } => {
            format!("reclaim {}: {} MiB", name(group), bytes / MIB)
        }
        MemoryAction::Relieve { group, bytes: tipme_policy::UNLIMITED } => {
            format!("release {}", name(group))
        }
        MemoryAction::Relieve { group, bytes } => {
            format!("relieve {}: {} MiB", name(group), bytes / MIB)
        }
        MemoryAction::Room { more, .. } => format!("room: {} MiB", more >> 20),
        MemoryAction::Cold(who) => format!("cold {}", who.pid),
        MemoryAction::PageOut(who) => format!("page out {}", who.pid),
        MemoryAction::WillNeed(set) => format!("will need {set}"),
    }
}

fn name(group: &MemoryGroup) -> String {
    match group {
        MemoryGroup::Process(who) => who.pid.to_string(),
        MemoryGroup::Cgroup(path) => path.clone(),
    }
}
