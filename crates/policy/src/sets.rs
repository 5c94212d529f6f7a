// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sets that are known, to which of them each process belongs, and what of it was told.

use crate::attention::AttentionState;
use crate::entry::{DisplayClient, RoleStanding, SetEntry, approach, deadline};
use crate::event::{Action, Assignment};
use crate::identity::{Identity, Member, SetId};
use crate::role::{Reason, Role};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::Nanos;

/// Clients of the display at a time.
pub const SETS_MAX: usize = 256;
/// Members of a set, as it is told.
pub const MEMBERS_MAX: usize = 512;
/// Processes of the session's core.
pub const CORE_MAX: usize = 64;
/// Processes that compute and belong to nobody's window.
pub const BUSY_MAX: usize = 64;

const NOBODY: Identity = Identity { pid: 0, start: 0 };
const LAST: SetId = SetId(Identity { pid: u32::MAX, start: u64::MAX });

#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    entries: BTreeMap<SetId, SetEntry>,
    /// Which sets list a process.
    claims: BTreeSet<(Identity, SetId)>,
    /// The set that a process belongs to.
    owners: BTreeMap<Identity, SetId>,
    /// Processes whose claims, and sets whose members, have changed since they were told.
    touched: BTreeSet<Identity>,
    revised: BTreeSet<SetId>,
    /// Sets that were told and are gone.
    gone: Vec<SetId>,
    pub(crate) dropped: u64,
}

impl Sets {
    pub(crate) fn get(&self, id: SetId) -> Option<&SetEntry> {
        self.entries.get(&id)
    }

    /// A set that is more than a hog or busy.
    pub(crate) fn get_firm(&self, id: SetId) -> Option<&SetEntry> {
        self.get(id).filter(|entry| !entry.is_loose())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SetId, &SetEntry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// Takes in what is told of a client.
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
        self.entries.entry(id).or_insert_with(|| SetEntry::new(now)).client = Some(DisplayClient { members, visible });
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

    /// Makes these processes, and no others, sets for their computing.
    pub(crate) fn set_busy(&mut self, busy: &[Identity], now: Nanos) {
        self.set_named(busy, BUSY_MAX, now, |entry| &mut entry.busy);
    }

    /// Says of these processes, of so many at most, and of no others, what `says` tells of an entry.
    fn set_named(&mut self, named: &[Identity], most: usize, now: Nanos, says: fn(&mut SetEntry) -> &mut bool) {
        self.dropped += named.len().saturating_sub(most) as u64;
        let named = named.iter().take(most).filter(|who| who.pid != 0);
        let named: BTreeSet<SetId> = named.copied().map(SetId).collect();
        let were = self.entries.iter_mut().filter_map(|(id, entry)| says(entry).then_some(*id));
        for id in were.collect::<BTreeSet<SetId>>().symmetric_difference(&named) {
            *says(self.entries.entry(*id).or_insert_with(|| SetEntry::new(now))) = named.contains(id);
            self.revise(*id);
        }
    }

    /// A busy process that a client or the core lists has its place there.
    fn leave_busy_to_clients(&mut self) {
        let busy = self.iter().filter(|(id, entry)| entry.busy && self.is_superseded(*id));
        for id in busy.map(|(id, _)| id).collect::<Vec<SetId>>() {
            self.entries.entry(id).and_modify(|entry| entry.busy = false);
            self.revise(id);
        }
    }

    /// Makes these sets the hogs, with the bytes that each had.
    pub(crate) fn set_hogs(&mut self, hogs: &BTreeMap<SetId, u64>, now: Nanos) {
        let was: BTreeSet<SetId> = self.iter().filter(|(_, entry)| entry.hog.is_some()).map(|(id, _)| id).collect();
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

    /// The set that a process belongs to.
    pub(crate) fn owner(&self, who: Identity) -> Option<SetId> {
        self.owners.get(&who).copied()
    }

    /// Whether a set is known as a hog, or as busy, only, and its process is listed by another set meanwhile.
    pub(crate) fn is_superseded(&self, id: SetId) -> bool {
        let loose = self.get(id).is_some_and(SetEntry::is_loose);
        loose && self.claimants(id.0).any(|other| self.get_firm(other).is_some())
    }

    /// The role of the process that has this id now, as it was told.
    pub(crate) fn role(&self, pid: u32) -> Option<(Role, &Reason)> {
        let (first, last) = (Identity { pid, start: 0 }, Identity { pid, start: u64::MAX });
        let (_, owner) = self.owners.range(first..=last).next_back()?;
        let standing = self.entries.get(owner)?.standing.as_ref()?;
        Some((standing.role, &standing.reason))
    }

    /// When time alone changes something next.
    pub(crate) fn deadline(&self, now: Nanos) -> Option<Nanos> {
        self.entries.values().filter_map(|entry| deadline(entry, now)).filter(|due| *due > now).min()
    }

    /// Takes everything back that was told; what is known stays.
    pub(crate) fn forget_all(&mut self) -> Vec<Action> {
        let mut actions: Vec<Action> = self.gone.drain(..).map(Action::Forget).collect();
        for (id, entry) in &mut self.entries {
            entry.falls = None;
            entry.told.clear();
            actions.extend(entry.standing.take().map(|_| Action::Forget(*id)));
        }
        self.owners.clear();
        self.touched.clear();
        self.revised.clear();
        actions
    }

    /// Tells what has changed: first what is gone, then sets that lose processes to others, then the rest, the
    /// most favoured first. So no process is in two assignments, at no time.
    pub(crate) fn settle(&mut self, attention: &AttentionState, now: Nanos) -> Vec<Action> {
        self.leave_busy_to_clients();
        let moved = self.move_on(attention, now);
        let dirty = self.share_out(&moved);
        let plans: Vec<SetPlan> = dirty.into_iter().filter_map(|id| self.plan(id, moved.contains(&id))).collect();
        let mut actions: Vec<Action> = self.gone.drain(..).map(Action::Forget).collect();
        actions.extend(in_order(&plans).into_iter().map(Action::Assign));
        for plan in plans {
            self.entries.entry(plan.id).and_modify(|entry| entry.told = plan.members);
        }
        actions
    }

    /// Brings the members of a set and the claims up to date with what is known of it.
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
        // Also those that stay: a set that stops being one of the core, say, has another right to them.
        self.touched.extend(old.union(&new));
        self.revised.insert(id);
        if let Some(gone) = self.entries.get(&id).filter(|entry| !entry.has_ground()) {
            self.gone.extend(gone.standing.as_ref().map(|_| id));
            self.entries.remove(&id);
        }
    }

    /// Lets each set go towards its role; those that have changed.
    fn move_on(&mut self, attention: &AttentionState, now: Nanos) -> BTreeSet<SetId> {
        let step = |(id, entry): (&SetId, &mut SetEntry)| {
            let target = attention.wanted(*id, entry, now);
            let changed = approach(entry, target, now);
            if let Some(standing) = entry.standing.as_ref().filter(|standing| standing.role != Role::Hog) {
                entry.claim = Some(standing.height());
            }
            changed.then_some(*id)
        };
        self.entries.iter_mut().filter_map(step).collect()
    }

    /// Gives each process that is concerned to one set; the sets that need a look.
    fn share_out(&mut self, moved: &BTreeSet<SetId>) -> BTreeSet<SetId> {
        let mut concerned = std::mem::take(&mut self.touched);
        let members = moved.iter().filter_map(|id| self.entries.get(id)).flat_map(|entry| &entry.members);
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
        let right = |id: &SetId| {
            let entry = self.entries.get(id)?;
            let firm = !entry.is_loose();
            Some((firm && id.0 == who, firm, entry.claim, Reverse(*id)))
        };
        self.claimants(who).max_by_key(right)
    }

    /// What is to be told of a set, if that is anything new.
    fn plan(&self, id: SetId, moved: bool) -> Option<SetPlan> {
        let entry = self.entries.get(&id)?;
        let own = |member: &&Member| self.owners.get(&member.who) == Some(&id);
        let members: Vec<Member> = entry.members.iter().filter(own).copied().collect();
        let told = names(&entry.told);
        let plan = SetPlan { id, standing: entry.standing.clone()?, gains: &names(&members) - &told, told, members };
        (moved || plan.members != entry.told).then_some(plan)
    }
}

/// What is to be told of a set.
struct SetPlan {
    id: SetId,
    standing: RoleStanding,
    members: Vec<Member>,
    told: BTreeSet<Identity>,
    gains: BTreeSet<Identity>,
}

impl SetPlan {
    fn assignment(&self, members: Vec<Member>) -> Assignment {
        let RoleStanding { role, reason, faded } = self.standing.clone();
        Assignment { set: self.id, role, reason, faded, members }
    }

    /// Those that it had before and keeps.
    fn kept(&self) -> Vec<Member> {
        self.members.iter().filter(|member| self.told.contains(&member.who)).copied().collect()
    }
}

fn names(members: &[Member]) -> BTreeSet<Identity> {
    members.iter().map(|member| member.who).collect()
}

/// The assignments in an order in which no process is in two: whoever loses a process to another set goes first,
/// and a set that also gains some is told twice.
fn in_order(plans: &[SetPlan]) -> Vec<Assignment> {
    let gained: BTreeSet<Identity> = plans.iter().flat_map(|plan| plan.gains.iter().copied()).collect();
    let gives = |plan: &&SetPlan| plan.told.iter().any(|who| gained.contains(who));
    let (givers, takers): (Vec<&SetPlan>, Vec<&SetPlan>) = plans.iter().partition(gives);
    let mut assignments: Vec<Assignment> = givers.iter().map(|plan| plan.assignment(plan.kept())).collect();
    let mut rest: Vec<&SetPlan> = takers;
    rest.extend(givers.into_iter().filter(|plan| !plan.gains.is_empty()));
    rest.sort_by_key(|plan| (plan.standing.role, plan.id));
    assignments.extend(rest.into_iter().map(|plan| plan.assignment(plan.members.clone())));
    assignments
}
