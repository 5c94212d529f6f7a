// SPDX-License-Identifier: MIT OR Apache-2.0
//! All known sets: the owner of each process, and the assignments made so far.

use crate::attention::AttentionState;
use crate::entry::{DisplayClient, RoleStanding, SetEntry, approach, deadline};
use crate::event::{Action, Assignment};
use crate::identity::{Identity, Member, SetId};
use crate::role::{Reason, Role};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::Nanos;

/// Maximum number of display clients.
pub const SETS_MAX: usize = 256;
/// Maximum number of members of a set, as reported.
pub const MEMBERS_MAX: usize = 512;
/// Maximum number of processes in the session's core.
pub const CORE_MAX: usize = 64;
/// Maximum number of busy processes outside of all windows.
pub const BUSY_MAX: usize = 64;

const NOBODY: Identity = Identity { pid: 0, start: 0 };
const LAST: SetId = SetId(Identity { pid: u32::MAX, start: u64::MAX });

#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    entries: BTreeMap<SetId, SetEntry>,
    /// Sets that list a process.
    claims: BTreeSet<(Identity, SetId)>,
    /// The owning set of each process.
    owners: BTreeMap<Identity, SetId>,
    /// Processes with changed claims, and sets with changed members, since the last assignment.
    touched: BTreeSet<Identity>,
    revised: BTreeSet<SetId>,
    /// Assigned sets that no longer exist.
    gone: Vec<SetId>,
    pub(crate) dropped: u64,
}

impl Sets {
    pub(crate) fn get(&self, id: SetId) -> Option<&SetEntry> {
        self.entries.get(&id)
    }

    /// Returns a set that is more than a hog or busy.
    pub(crate) fn get_firm(&self, id: SetId) -> Option<&SetEntry> {
        self.get(id).filter(|entry| !entry.is_loose())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SetId, &SetEntry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// Updates a client.
    pub(crate) fn put(&mut self, id: SetId, mut members: Vec<Member>, visible: bool, now: Nanos) {
        let clients = self.entries.values().filter(|entry| entry.client.is_some()).count();
        let known = self.get(id).is_some_and(|entry| entry.client.is_some());
        if (!known && clients >= SETS_MAX) || id.0.pid == 0 {
            self.dropped += 1;
            return;
        }
        self.dropped += members.len().saturating_sub(MEMBERS_MAX) as u64;
        members.truncate(MEMBERS_MAX);
        members.retain(|member| member.who.pid != 0);
        members.sort_unstable();
        members.dedup_by_key(|member| member.who);
        self.entries.entry(id).or_insert_with(|| SetEntry::new(now)).client =
            Some(DisplayClient { members, visible });
        self.revise(id);
    }

    pub(crate) fn remove_client(&mut self, id: SetId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.client = None;
            entry.lost = None;
            self.revise(id);
        }
    }

    pub(crate) fn set_core(&mut self, core: &[Identity], now: Nanos) {
        self.set_named(core, CORE_MAX, now, |entry| &mut entry.core);
    }

    /// Marks exactly these processes as busy sets.
    pub(crate) fn set_busy(&mut self, busy: &[Identity], now: Nanos) {
        self.set_named(busy, BUSY_MAX, now, |entry| &mut entry.busy);
    }

    /// Sets the flag selected by `flag` for exactly these processes, at most `most` of them.
    fn set_named(
        &mut self,
        named: &[Identity],
        most: usize,
        now: Nanos,
        flag: fn(&mut SetEntry) -> &mut bool,
    ) {
        self.dropped += named.len().saturating_sub(most) as u64;
        let named = named.iter().take(most).filter(|who| who.pid != 0);
        let named: BTreeSet<SetId> = named.copied().map(SetId).collect();
        let were = self.entries.iter_mut().filter_map(|(id, entry)| flag(entry).then_some(*id));
        for id in were.collect::<BTreeSet<SetId>>().symmetric_difference(&named) {
            *flag(self.entries.entry(*id).or_insert_with(|| SetEntry::new(now))) =
                named.contains(id);
            self.revise(*id);
        }
    }

    /// Drops the busy mark of processes that a client or the core lists.
    fn leave_busy_to_clients(&mut self) {
        let busy = self.iter().filter(|(id, entry)| entry.busy && self.is_superseded(*id));
        for id in busy.map(|(id, _)| id).collect::<Vec<SetId>>() {
            self.entries.entry(id).and_modify(|entry| entry.busy = false);
            self.revise(id);
        }
    }

    /// Makes exactly these sets hogs, each with its size in bytes.
    pub(crate) fn set_hogs(&mut self, hogs: &BTreeMap<SetId, u64>, now: Nanos) {
        let was: BTreeSet<SetId> =
            self.iter().filter(|(_, entry)| entry.hog.is_some()).map(|(id, _)| id).collect();
        for id in was.into_iter().chain(hogs.keys().copied()).collect::<BTreeSet<SetId>>() {
            let hog = hogs.get(&id).copied();
            if self.get(id).and_then(|entry| entry.hog) != hog {
                self.entries.entry(id).or_insert_with(|| SetEntry::new(now)).hog = hog;
                self.revise(id);
            }
        }
    }

    pub(crate) fn lose_focus(&mut self, id: SetId, now: Nanos) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.lost = Some(now);
        }
    }

    /// Returns the set that owns a process.
    pub(crate) fn owner(&self, who: Identity) -> Option<SetId> {
        self.owners.get(&who).copied()
    }

    /// Returns `true` if a set is only a hog or busy, and another set lists its process meanwhile.
    pub(crate) fn is_superseded(&self, id: SetId) -> bool {
        let loose = self.get(id).is_some_and(SetEntry::is_loose);
        loose && self.claimants(id.0).any(|other| self.get_firm(other).is_some())
    }

    /// Returns the assigned role of the process that has this id now.
    pub(crate) fn role(&self, pid: u32) -> Option<(Role, &Reason)> {
        let (first, last) = (Identity { pid, start: 0 }, Identity { pid, start: u64::MAX });
        let (_, owner) = self.owners.range(first..=last).next_back()?;
        let standing = self.entries.get(owner)?.standing.as_ref()?;
        Some((standing.role, &standing.reason))
    }

    /// Returns the next time at which anything changes without an event.
    pub(crate) fn deadline(&self, now: Nanos) -> Option<Nanos> {
        self.entries
            .values()
            .filter_map(|entry| deadline(entry, now))
            .filter(|due| *due > now)
            .min()
    }

    /// Revokes all assignments; known sets remain.
    pub(crate) fn forget_all(&mut self) -> Vec<Action> {
        let mut actions: Vec<Action> = self.gone.drain(..).map(Action::Forget).collect();
        for (id, entry) in &mut self.entries {
            entry.falls = None;
            entry.assigned.clear();
            actions.extend(entry.standing.take().map(|_| Action::Forget(*id)));
        }
        self.owners.clear();
        self.touched.clear();
        self.revised.clear();
        actions
    }

    /// Returns the changed assignments: sets that are gone, then sets that lose processes to
    /// others, then the rest, most favoured first. A process is thus never in two assignments.
    pub(crate) fn settle(&mut self, attention: &AttentionState, now: Nanos) -> Vec<Action> {
        self.leave_busy_to_clients();
        let moved = self.move_on(attention, now);
        let dirty = self.share_out(&moved);
        let plans: Vec<SetPlan> =
            dirty.into_iter().filter_map(|id| self.plan(id, moved.contains(&id))).collect();
        let mut actions: Vec<Action> = self.gone.drain(..).map(Action::Forget).collect();
        actions.extend(in_order(&plans).into_iter().map(Action::Assign));
        for plan in plans {
            self.entries.entry(plan.id).and_modify(|entry| entry.assigned = plan.members);
        }
        actions
    }

    /// Updates the members and claims of a set.
    fn revise(&mut self, id: SetId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let members = entry.listed(id);
        let old = std::mem::replace(&mut entry.members, members.clone());
        let (old, new) = (names(&old), names(&members));
        for who in old.symmetric_difference(&new) {
            let claim = (*who, id);
            if !self.claims.remove(&claim) {
                self.claims.insert(claim);
            }
        }
        // Includes processes that stay: a set that leaves the core, for example, has a different
        // claim to them.
        self.touched.extend(old.union(&new));
        self.revised.insert(id);
        if let Some(gone) = self.entries.get(&id).filter(|entry| !entry.has_ground()) {
            self.gone.extend(gone.standing.as_ref().map(|_| id));
            self.entries.remove(&id);
        }
    }

    /// Moves each set towards its role; returns those that changed.
    fn move_on(&mut self, attention: &AttentionState, now: Nanos) -> BTreeSet<SetId> {
        let mut moved = BTreeSet::new();
        for (id, entry) in &mut self.entries {
            let target = attention.wanted(*id, entry, now);
            if approach(entry, target, now) {
                moved.insert(*id);
            }
            let standing = entry.standing.as_ref().filter(|standing| standing.role != Role::Hog);
            if let Some(standing) = standing {
                entry.claim = Some(standing.height());
            }
        }
        moved
    }

    /// Assigns each affected process to one set; returns the sets to review.
    fn share_out(&mut self, moved: &BTreeSet<SetId>) -> BTreeSet<SetId> {
        let mut concerned = std::mem::take(&mut self.touched);
        let members =
            moved.iter().filter_map(|id| self.entries.get(id)).flat_map(|entry| &entry.members);
        concerned.extend(members.map(|member| member.who));
        let mut dirty: BTreeSet<SetId> = std::mem::take(&mut self.revised);
        dirty.extend(moved);
        for who in concerned {
            let owner = self.best_owner(who);
            let was = match owner {
                Some(owner) => self.owners.insert(who, owner),
                None => self.owners.remove(&who),
            };
            if was != owner {
                dirty.extend(was.into_iter().chain(owner));
            }
        }
        dirty
    }

    fn claimants(&self, who: Identity) -> impl Iterator<Item = SetId> + '_ {
        self.claims.range((who, SetId(NOBODY))..=(who, LAST)).map(|(_, id)| *id)
    }

    fn best_owner(&self, who: Identity) -> Option<SetId> {
        self.claimants(who).max_by_key(|id| {
            let entry = self.entries.get(id)?;
            let firm = !entry.is_loose();
            Some((firm && id.0 == who, firm, entry.claim, Reverse(*id)))
        })
    }

    /// Returns the new assignment of a set, if it differs from the last one.
    fn plan(&self, id: SetId, moved: bool) -> Option<SetPlan> {
        let entry = self.entries.get(&id)?;
        let mut members = entry.members.clone();
        members.retain(|member| self.owners.get(&member.who) == Some(&id));
        let assigned = names(&entry.assigned);
        let plan = SetPlan {
            id,
            standing: entry.standing.clone()?,
            gains: &names(&members) - &assigned,
            assigned,
            members,
        };
        (moved || plan.members != entry.assigned).then_some(plan)
    }
}

/// A new assignment of a set.
struct SetPlan {
    id: SetId,
    standing: RoleStanding,
    members: Vec<Member>,
    /// Members as last assigned.
    assigned: BTreeSet<Identity>,
    gains: BTreeSet<Identity>,
}

impl SetPlan {
    fn assignment(&self, members: Vec<Member>) -> Assignment {
        let RoleStanding { role, reason, faded } = self.standing.clone();
        Assignment { set: self.id, role, reason, faded, members }
    }

    /// Returns the members that it had before and keeps.
    fn kept(&self) -> Vec<Member> {
        self.members.iter().filter(|member| self.assigned.contains(&member.who)).copied().collect()
    }
}

fn names(members: &[Member]) -> BTreeSet<Identity> {
    members.iter().map(|member| member.who).collect()
}

/// Orders assignments so that no process is in two of them: sets that lose a process to another
/// come first, and a set that also gains some is assigned twice.
fn in_order(plans: &[SetPlan]) -> Vec<Assignment> {
    let gained: BTreeSet<Identity> =
        plans.iter().flat_map(|plan| plan.gains.iter().copied()).collect();
    let (givers, mut rest): (Vec<&SetPlan>, Vec<&SetPlan>) =
        plans.iter().partition(|plan| !plan.assigned.is_disjoint(&gained));
    let mut assignments: Vec<Assignment> =
        givers.iter().map(|plan| plan.assignment(plan.kept())).collect();
    rest.extend(givers.into_iter().filter(|plan| !plan.gains.is_empty()));
    rest.sort_by_key(|plan| (plan.standing.role, plan.id));
    assignments.extend(rest.into_iter().map(|plan| plan.assignment(plan.members.clone())));
    assignments
}
