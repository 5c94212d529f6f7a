// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives the values of each process from assignments and compares them with the present ones.
//!
//! The engine remembers the assignment of each set. A process in several sets has the most favoured
//! of their roles. At the end of each call the engine settles all affected processes: their
//! threads, sessions and groups, each with the knobs of the policy's table for the backend.

use crate::journal::Log;
use crate::ledger::{Done, Ledger};
use crate::memory_requests::MemoryRequests;
use crate::placements::Units;
use crate::subtree::Subtree;
use crate::units_bus::is_down;
use crate::units_names::Property;
use crate::why::{Applied, Knob, Notes, Restored, SkipReason};
use crate::world::{Autogroup, KnobPlace, ThreadKnob, World};
use std::collections::{BTreeMap, BTreeSet};
use tipme_policy::{
    Action, Assignment, Backend, Identity, Knobs, MemoryAction, Role, SetId, Strength,
};

/// Maximum number of remembered sets, twice that of the policy.
pub(crate) const SETS_MAX: usize = 512;
/// Maximum number of members of a set, the same as in the policy.
pub(crate) const MEMBERS_MAX: usize = 512;

/// Role of a process, from the most favoured of its sets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Standing {
    pub(crate) set: SetId,
    pub(crate) role: Role,
    pub(crate) faded: f32,
}

pub(crate) struct Engine<W, L> {
    pub(crate) ledger: Ledger<W, L>,
    pub(crate) backend: Backend,
    pub(crate) strength: Strength,
    pub(crate) subtree: Option<Subtree>,
    pub(crate) units: Option<Units>,
    pub(crate) memory_requests: MemoryRequests,
    /// Sets nice values as well, because the active scheduler ignores weights.
    pub(crate) nice_too: bool,
    pub(crate) sets: BTreeMap<SetId, Assignment>,
    pub(crate) roles: BTreeMap<Identity, Standing>,
    /// Unlisted processes, each with the listed process that it follows.
    pub(crate) followers: BTreeMap<Identity, Identity>,
    pub(crate) autogroups: BTreeMap<Identity, Autogroup>,
    /// Processes deferred by the kernel.
    pub(crate) later: BTreeSet<Identity>,
    pub(crate) notes: Notes,
}

impl<W: World, L: Log> Engine<W, L> {
    pub(crate) fn new(ledger: Ledger<W, L>, backend: Backend, strength: Strength) -> Engine<W, L> {
        Engine {
            ledger,
            backend,
            strength,
            subtree: None,
            units: None,
            memory_requests: MemoryRequests::default(),
            nice_too: false,
            sets: BTreeMap::new(),
            roles: BTreeMap::new(),
            followers: BTreeMap::new(),
            autogroups: BTreeMap::new(),
            later: BTreeSet::new(),
            notes: Notes::default(),
        }
    }

    /// Applies the actions; an empty list retries deferred changes.
    pub(crate) fn apply(&mut self, actions: &[Action]) -> Applied {
        self.ledger.begin();
        let mut applied = Applied::default();
        let (mut affected, mut memory) = (BTreeSet::new(), Vec::new());
        let mut touched = std::mem::take(&mut self.later);
        for action in actions {
            match action {
                Action::Assign(assignment) => {
                    affected.insert(assignment.set);
                    self.assign(assignment, &mut touched, &mut applied);
                }
                Action::Forget(set) => {
                    affected.insert(*set);
                    touched.extend(self.sets.remove(set).iter().flat_map(listed));
                }
                Action::Memory(action) => memory.push(action),
            }
        }
        self.settle(&affected, &touched, &mut applied);
        memory
            .into_iter()
            .for_each(|action: &MemoryAction| self.settle_memory(action, &mut applied));
        self.settle_limits(&mut applied);
        applied
    }

    /// Changes the strength and applies its values to all sets.
    pub(crate) fn set_strength(&mut self, strength: Strength) -> Applied {
        self.ledger.begin();
        self.strength = strength;
        let (affected, mut touched): (BTreeSet<SetId>, _) =
            (self.sets.keys().copied().collect(), BTreeSet::new());
        touched.extend(self.sets.values().flat_map(listed));
        let mut applied = Applied::default();
        self.settle(&affected, &touched, &mut applied);
        self.settle_limits(&mut applied);
        applied
    }

    /// Restores everything and forgets all assignments.
    pub(crate) fn restore(&mut self) -> Restored {
        self.sets.clear();
        self.roles.clear();
        self.followers.clear();
        self.autogroups.clear();
        self.later.clear();
        self.memory_requests = MemoryRequests::default();
        if let Some(subtree) = &mut self.subtree {
            subtree.forget();
        }
        if let Some(units) = &mut self.units {
            units.forget();
        }
        self.ledger.restore()
    }

    /// Returns the knobs of a role from the policy's table.
    pub(crate) fn knobs(&self, standing: Standing) -> Knobs {
        let [own, plain] = [self.backend, Backend::Nice].map(|backend| {
            tipme_policy::knobs(backend, self.strength, standing.role, standing.faded)
        });
        match self.backend {
            Backend::Systemd | Backend::Cgroup if self.nice_too => {
                Knobs { nice: plain.nice, ..own }
            }
            _ => own,
        }
    }

    /// Records the result of a commit in `applied` and the notes.
    pub(crate) fn report(&mut self, done: Done, applied: &mut Applied) {
        applied.changed += done.changed;
        applied.vanished += done.vanished.len();
        for (place, why) in done.failed {
            let who = place.process().or_else(|| self.someone_in(&place));
            if let Some(who) = who {
                self.skip(who, knob_of(&place), why, applied);
            }
        }
    }

    pub(crate) fn skip(
        &mut self,
        who: Identity,
        knob: Knob,
        why: SkipReason,
        applied: &mut Applied,
    ) {
        if why == SkipReason::Later {
            self.later.insert(who);
        }
        // Nothing applies weights any more: nice values remain.
        self.nice_too |= self.backend == Backend::Systemd
            && matches!(why, SkipReason::Refused(code) if is_down(code));
        self.notes.add(who, knob, why.clone());
        applied.skip(who, knob, why);
    }

    fn assign(
        &mut self,
        assignment: &Assignment,
        touched: &mut BTreeSet<Identity>,
        applied: &mut Applied,
    ) {
        let full = self.sets.len() >= SETS_MAX && !self.sets.contains_key(&assignment.set);
        if full {
            return applied.skip(assignment.set.0, Knob::Nice, SkipReason::TooMany("sets"));
        }
        let mut assignment = assignment.clone();
        if assignment.members.len() > MEMBERS_MAX {
            assignment.members.truncate(MEMBERS_MAX);
            applied.skip(assignment.set.0, Knob::Nice, SkipReason::TooMany("members in the set"));
        }
        touched.extend(listed(&assignment));
        touched.extend(self.sets.insert(assignment.set, assignment).iter().flat_map(listed));
    }

    fn settle(
        &mut self,
        affected: &BTreeSet<SetId>,
        touched: &BTreeSet<Identity>,
        applied: &mut Applied,
    ) {
        self.roles = best_roles(&self.sets);
        self.notes.begin(touched);
        self.settle_groups(affected, touched, applied);
        self.settle_units(touched, applied);
        self.settle_sessions(touched, applied);
        self.settle_threads(touched, applied);
        self.notes.keep(&self.roles);
    }

    /// Returns a process on which to report a failure for a session or a group.
    fn someone_in(&self, place: &KnobPlace) -> Option<Identity> {
        match place {
            KnobPlace::Autogroup { number, .. } => self
                .autogroups
                .iter()
                .find(|(_, group)| group.number == *number)
                .map(|(who, _)| *who),
            _ => self.roles.keys().next().copied(),
        }
    }
}

/// Returns the role of each process: the most favoured of the sets that list it.
fn best_roles(sets: &BTreeMap<SetId, Assignment>) -> BTreeMap<Identity, Standing> {
    let mut roles: BTreeMap<Identity, Standing> = BTreeMap::new();
    for assignment in sets.values() {
        let standing =
            Standing { set: assignment.set, role: assignment.role, faded: assignment.faded };
        for who in listed(assignment) {
            let best = roles.entry(who).or_insert(standing);
            if rank(standing) < rank(*best) {
                *best = standing;
            }
        }
    }
    roles
}

fn listed(assignment: &Assignment) -> impl Iterator<Item = Identity> + use<'_> {
    assignment.members.iter().map(|member| member.who)
}

/// Sort key of a standing; a smaller rank is more favoured.
pub(crate) fn rank(standing: Standing) -> (Role, u32) {
    (standing.role, (standing.faded.clamp(0.0, 1.0) * 1e6) as u32)
}

pub(crate) fn knob_of(place: &KnobPlace) -> Knob {
    match place {
        KnobPlace::Thread { knob, .. } | KnobPlace::Trace { knob, .. } => match knob {
            ThreadKnob::Nice => Knob::Nice,
            ThreadKnob::Slice => Knob::Slice,
            ThreadKnob::Scheduling => Knob::Scheduling,
            ThreadKnob::Io => Knob::Io,
        },
        KnobPlace::Autogroup { .. } => Knob::Autogroup,
        KnobPlace::File { path } => file_knob(path),
        KnobPlace::Unit { property, .. } => match property {
            Property::CpuWeight => Knob::CpuWeight,
            Property::IoWeight => Knob::IoWeight,
            Property::MemoryLow => Knob::MemoryLow,
            Property::MemoryHigh => Knob::MemoryHigh,
        },
        KnobPlace::Controller { .. }
        | KnobPlace::Member { .. }
        | KnobPlace::Group { .. }
        | KnobPlace::Scope { .. } => Knob::Group,
    }
}

fn file_knob(path: &str) -> Knob {
    match path.rsplit('/').next() {
        Some("cpu.weight") => Knob::CpuWeight,
        Some("io.weight") => Knob::IoWeight,
        Some("memory.low") => Knob::MemoryLow,
        _ => Knob::MemoryHigh,
    }
}
