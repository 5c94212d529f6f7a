// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain control groups (version 2) below one delegated group.
//!
//! Each set gets a group of its own, and its processes are moved once; afterwards only weights are
//! written. Processes in the delegated group itself move to its child `rest`, since a group with
//! processes of its own cannot enable controllers for its children. A forgotten process returns to
//! its origin (or to `rest` for now, if that was the delegated group), and an empty group is
//! removed.

use crate::engine::{Engine, Standing};
use crate::journal::{Cell, Log};
use crate::ledger::LedgerStep;
use crate::subtree::Subtree;
use crate::why::{Applied, Knob, SkipReason};
use crate::world::{KnobFault, KnobPlace, Value, World};
use std::collections::BTreeSet;
use tipme_policy::{Assignment, Backend, Identity, Reason, Role, SetId};

/// Controllers to enable for the children of the delegated group.
const CONTROLLERS: [&str; 3] = ["cpu", "io", "memory"];
/// Clock ticks between two attempts to enable the controllers: ten seconds with 10 ms ticks.
const RETRY_TICKS: u64 = 1_000;
/// Maximum number of passes over the delegated group for children forked in it while their parents
/// moved out.
const LOOKS_MAX: usize = 8;

impl<W: World, L: Log> Engine<W, L> {
    pub(crate) fn settle_groups(
        &mut self,
        affected: &BTreeSet<SetId>,
        touched: &BTreeSet<Identity>,
        applied: &mut Applied,
    ) {
        let Some(subtree) = self.subtree.clone().filter(|_| self.backend == Backend::Cgroup) else {
            return;
        };
        let active: Vec<SetId> =
            affected.iter().copied().filter(|set| self.can_have_group(&subtree, *set)).collect();
        let late = !active.is_empty() && !subtree.prepared && self.prepare(&subtree, applied);
        // Groups created without the controllers have no weights and no protection yet.
        let made: Vec<SetId> = self
            .sets
            .keys()
            .copied()
            .filter(|set| late && self.has_group(&subtree, &subtree.group(*set)))
            .collect();
        for set in &active {
            self.make_group(&subtree, &subtree.group(*set), set.0, applied);
        }
        self.move_members(&subtree, touched, applied);
        for (set, bytes) in subtree.protected.iter().filter(|_| late) {
            self.protect(*set, *bytes, applied);
        }
        for set in active.iter().copied().chain(made).collect::<BTreeSet<_>>() {
            self.weigh(&subtree, set, applied);
        }
        for set in affected.iter().filter(|set| !active.contains(set)) {
            self.remove_group(&subtree, &subtree.group(*set), set.0, applied);
        }
        let roles = &self.roles;
        let hogs = self
            .hogs(&subtree)
            .into_iter()
            .filter(|who| touched.contains(who) && !roles.contains_key(who));
        for who in hogs.collect::<Vec<_>>() {
            self.remove_group(&subtree, &subtree.hog(who), who, applied);
        }
        self.release_controllers(applied);
    }

    /// Returns `true` if a set has weights, and has a group or a process that may be moved into
    /// one.
    fn can_have_group(&self, subtree: &Subtree, set: SetId) -> bool {
        let path = subtree.group(set);
        let members = self.sets.get(&set).into_iter().flat_map(|set| &set.members);
        self.weights(set) != [None, None]
            && (self.has_group(subtree, &path)
                || members.map(|member| member.who).any(|who| {
                    self.roles.get(&who).is_some_and(|standing| standing.set == set)
                        && self.ledger.world.admit(&subtree.member(who)).is_ok()
                        && matches!(self.plan_move(subtree, who, path.clone()), Ok(Some(_)))
                }))
    }

    pub(crate) fn has_group(&self, subtree: &Subtree, path: &str) -> bool {
        self.ledger.knows(&subtree.place(path))
    }

    /// Disables the controllers once no group needs them.
    fn release_controllers(&mut self, applied: &mut Applied) {
        let groups = self.ledger.places(
            |place| matches!(place, KnobPlace::Group { path, .. } if !path.ends_with("/rest")),
        );
        if !groups.is_empty() {
            return;
        }
        let who = self.roles.keys().next().copied().unwrap_or(crate::memory::NOBODY);
        let off = self.controllers_on().into_iter().map(LedgerStep::remove);
        self.commit_for(who, off.collect(), applied);
        if let Some(subtree) = &mut self.subtree {
            subtree.prepared = false;
        }
    }

    /// Creates a group if it does not exist; the origin of the process becomes the group to return
    /// to.
    pub(crate) fn make_group(
        &mut self,
        subtree: &Subtree,
        path: &str,
        who: Identity,
        applied: &mut Applied,
    ) {
        if self.has_group(subtree, path) {
            return;
        }
        let origin = self.origin(subtree, who).unwrap_or_else(|| subtree.dir.clone());
        let return_to = if origin == subtree.dir { self.fallback_group(subtree) } else { origin };
        let step = LedgerStep::create(subtree.place(path), return_to);
        self.commit_for(who, vec![step], applied);
    }

    /// Plans the move of a process, unless a systemd unit holds it.
    pub(crate) fn plan_move(
        &self,
        subtree: &Subtree,
        who: Identity,
        to: String,
    ) -> Result<Option<LedgerStep>, SkipReason> {
        let place = subtree.member(who);
        if let Some(cell) = self.ledger.cell(&place) {
            return self.plan_next_move(place, cell, Value::Text(to));
        }
        let Some(origin) = self.origin(subtree, who) else { return Ok(None) };
        let Ok(from) = self.ledger.world.get(&place) else { return Ok(None) };
        match subtree.unit(&origin) {
            Some(unit) => Err(SkipReason::Unit(unit)),
            None => {
                let step = LedgerStep::first(place, Value::Text(to), Value::Text(origin));
                Ok(Some(LedgerStep { from, ..step }))
            }
        }
    }

    /// Plans a further move, unless the process is already there, another program has moved it, or
    /// it is gone.
    fn plan_next_move(
        &self,
        place: KnobPlace,
        cell: &Cell,
        to: Value,
    ) -> Result<Option<LedgerStep>, SkipReason> {
        if cell.applied == to {
            return Ok(None);
        }
        match self.ledger.world.get(&place) {
            Ok(from) if cell.has_applied(&from) => {
                let step = LedgerStep::first(place, to, cell.baseline.clone());
                Ok(Some(LedgerStep { from, ..step }))
            }
            Ok(present) => Err(SkipReason::ChangedByOther(present.to_string())),
            Err(_) => Ok(None),
        }
    }

    /// Returns the origin of a process: its group, or the group to return to if it is in one of
    /// ours.
    fn origin(&self, subtree: &Subtree, who: Identity) -> Option<String> {
        let Ok(Value::Text(present)) = self.ledger.world.get(&subtree.member(who)) else {
            return None;
        };
        match self.ledger.cell(&subtree.place(&present)) {
            Some(cell) => self.ledger.origin(who, &subtree.root).or_else(|| cell.return_to.clone()),
            None => Some(present),
        }
    }

    /// Returns `rest` if it exists, else the delegated group.
    fn fallback_group(&self, subtree: &Subtree) -> String {
        let rest = subtree.rest();
        if self.has_group(subtree, &rest) { rest } else { subtree.dir.clone() }
    }

    /// Empties the delegated group into `rest` and enables the available controllers. Returns
    /// `true` if one was newly enabled; if some are still missing, a later change tries again.
    fn prepare(&mut self, subtree: &Subtree, applied: &mut Applied) -> bool {
        let (first, now) = (self.roles.keys().next().copied(), self.ledger.world.ticks());
        let rests = subtree.failed.is_some_and(|failed| now.saturating_sub(failed) < RETRY_TICKS);
        let Some(first) = first.filter(|_| !rests) else { return false };
        let before = self.controllers_on().len();
        self.empty(subtree, applied);
        let on = CONTROLLERS.map(|name| self.turn_on(subtree, name, first, applied));
        let prepared = on.into_iter().all(|on| on);
        if let Some(subtree) = &mut self.subtree {
            (subtree.prepared, subtree.failed) = (prepared, (!prepared).then_some(now));
        }
        self.controllers_on().len() > before
    }

    fn controllers_on(&self) -> Vec<KnobPlace> {
        self.ledger.places(|place| matches!(place, KnobPlace::Controller { .. }))
    }

    /// Moves all processes into `rest`. A child forked meanwhile may be left behind and would block
    /// the controllers.
    fn empty(&mut self, subtree: &Subtree, applied: &mut Applied) {
        let mut tried = BTreeSet::new();
        for _ in 0..LOOKS_MAX {
            let inside: Vec<Identity> = self
                .ledger
                .world
                .members(&subtree.dir)
                .into_iter()
                .filter(|who| tried.insert(*who))
                .collect();
            let Some(&who) = inside.first() else { return };
            let place = subtree.place(&subtree.rest());
            if !self.ledger.knows(&place) {
                let step = LedgerStep::create(place, subtree.dir.clone());
                self.commit_for(who, vec![step], applied);
            }
            let mut moves = Vec::new();
            for member in inside {
                match self.plan_move(subtree, member, subtree.rest()) {
                    Ok(step) => moves.extend(step),
                    Err(why) => self.skip(member, Knob::Group, why, applied),
                }
            }
            self.commit_for(who, moves, applied);
        }
    }

    /// Returns `true` if the controller is enabled now, or does not exist.
    fn turn_on(
        &mut self,
        subtree: &Subtree,
        name: &str,
        who: Identity,
        applied: &mut Applied,
    ) -> bool {
        let place = KnobPlace::Controller { group: subtree.dir.clone(), name: name.to_owned() };
        if self.ledger.knows(&place) || self.ledger.world.get(&place) != Ok(Value::Number(0)) {
            return true;
        }
        let step = LedgerStep::first(place.clone(), 1.into(), 0.into());
        self.commit_for(who, vec![step], applied);
        self.ledger.knows(&place)
    }

    fn move_members(
        &mut self,
        subtree: &Subtree,
        touched: &BTreeSet<Identity>,
        applied: &mut Applied,
    ) {
        let mut steps = Vec::new();
        for &who in touched {
            let step = match self.target(subtree, who) {
                Some(to) if self.has_group(subtree, &to) => self.plan_move(subtree, who, to),
                // The set has no group, perhaps because its processes may not be moved; this
                // reports the reason.
                Some(to) => {
                    self.plan_move(subtree, who, to).and_then(|_| self.plan_return(subtree, who))
                }
                None => self.plan_return(subtree, who),
            };
            match step {
                Ok(step) => steps.extend(step),
                Err(why) => self.skip(who, Knob::Group, why, applied),
            }
        }
        let done = self.ledger.commit(steps);
        self.report(done, applied);
    }

    /// Returns the target group of a process; `None` for its origin.
    fn target(&self, subtree: &Subtree, who: Identity) -> Option<String> {
        let standing =
            self.roles.get(&who).filter(|standing| self.weights(standing.set) != [None, None])?;
        Some(subtree.group(standing.set))
    }

    fn plan_return(
        &self,
        subtree: &Subtree,
        who: Identity,
    ) -> Result<Option<LedgerStep>, SkipReason> {
        let place = subtree.member(who);
        let Some(cell) = self.ledger.cell(&place) else { return Ok(None) };
        let direct = cell.baseline == Value::Text(subtree.dir.clone());
        let to =
            if direct { Value::Text(self.fallback_group(subtree)) } else { cell.baseline.clone() };
        self.plan_next_move(place, cell, to)
    }

    /// Returns the CPU and I/O weights of a set.
    pub(crate) fn weights(&self, set: SetId) -> [Option<u32>; 2] {
        let Some(assignment) =
            self.sets.get(&set).filter(|assignment| !self.stays_in_rest(assignment))
        else {
            return [None, None];
        };
        let (role, faded) = (assignment.role, assignment.faded);
        let knobs = self.knobs(Standing { set, role, faded });
        [knobs.cpu_weight, knobs.io_weight]
    }

    /// Returns the weights of a role.
    pub(crate) fn weights_of_role(&self, role: Role) -> [Option<u32>; 2] {
        let set = SetId(crate::memory::NOBODY);
        let knobs = self.knobs(Standing { set, role, faded: 0.0 });
        [knobs.cpu_weight, knobs.io_weight]
    }

    /// A process without a window stays in `rest` if it is there, since its memory is accounted and
    /// limited there.
    fn stays_in_rest(&self, assignment: &Assignment) -> bool {
        let is_loose = matches!(assignment.reason, Reason::Busy | Reason::MemoryHog { .. });
        let Some(subtree) = self.subtree.as_ref().filter(|_| is_loose) else { return false };
        let mut members = assignment.members.iter();
        let has_group = self.has_group(subtree, &subtree.group(assignment.set));
        !has_group && members.all(|member| self.is_in_rest(subtree, member.who))
    }

    pub(crate) fn is_in_rest(&self, subtree: &Subtree, who: Identity) -> bool {
        self.ledger.world.get(&subtree.member(who)) == Ok(Value::Text(subtree.rest()))
    }

    fn weigh(&mut self, subtree: &Subtree, set: SetId, applied: &mut Applied) {
        let group = subtree.group(set);
        for (name, weight) in ["cpu.weight", "io.weight"].into_iter().zip(self.weights(set)) {
            self.write(&format!("{group}/{name}"), weight.map(i64::from), set.0, applied);
        }
    }

    /// Writes a number into a file of a group; `None` restores the baseline.
    pub(crate) fn write(
        &mut self,
        path: &str,
        want: Option<i64>,
        who: Identity,
        applied: &mut Applied,
    ) {
        self.put(KnobPlace::File { path: path.to_owned() }, want, who, applied);
    }

    /// Sets a number of a group or unit, unless another program has set it; `None` restores the
    /// baseline.
    pub(crate) fn put(
        &mut self,
        place: KnobPlace,
        want: Option<i64>,
        who: Identity,
        applied: &mut Applied,
    ) {
        let knob = crate::engine::knob_of(&place);
        match self.plan_put(place, want.map(Value::Number), applied) {
            Ok(Some(step)) => self.commit_for(who, vec![step], applied),
            Ok(None) => {}
            Err(why) => self.skip(who, knob, why, applied),
        }
    }

    fn plan_put(
        &mut self,
        place: KnobPlace,
        want: Option<Value>,
        applied: &mut Applied,
    ) -> Result<Option<LedgerStep>, SkipReason> {
        let cell = self.ledger.cell(&place);
        if cell.map(|cell| &cell.applied) == want.as_ref() {
            return Ok(None);
        }
        // Checked before the request to systemd, which limits its time for us.
        if cell.is_none() {
            self.ledger.world.admit(&place)?;
        }
        let is_unit = matches!(place, KnobPlace::Unit { .. });
        let present = match self.ledger.world.get(&place) {
            Err(KnobFault::Vanished) if cell.is_some() || is_unit => {
                applied.vanished += 1;
                self.ledger.abandon([place]);
                return Ok(None);
            }
            present => present.map_err(|fault| fault.reason(NO_CONTROLLER))?,
        };
        let baseline = match cell {
            Some(cell) if cell.has_applied(&present) => cell.baseline.clone(),
            Some(_) => return Err(SkipReason::ChangedByOther(present.to_string())),
            None if is_set_by_other(&place, &present) => {
                return Err(SkipReason::SetByOther(present.to_string()));
            }
            None => present.clone(),
        };
        let to = want.unwrap_or_else(|| baseline.clone());
        Ok((to != present)
            .then(|| LedgerStep { from: present, ..LedgerStep::first(place, to, baseline) }))
    }

    /// Moves all processes of a group back to their origins, and removes it.
    pub(crate) fn remove_group(
        &mut self,
        subtree: &Subtree,
        path: &str,
        who: Identity,
        applied: &mut Applied,
    ) {
        let place = subtree.place(path);
        let Some(return_to) =
            self.ledger.cell(&place).map(|cell| cell.return_to.clone().unwrap_or_default())
        else {
            return;
        };
        self.ledger.evacuate(path, &subtree.root, &return_to);
        let inside = format!("{path}/");
        let files = self
            .ledger
            .places(|place| matches!(place, KnobPlace::File { path } if path.starts_with(&inside)));
        self.commit_for(who, vec![LedgerStep::remove(place.clone())], applied);
        if !self.ledger.knows(&place) {
            self.ledger.abandon(files);
        }
    }

    /// Returns the processes with a group of their own because of their memory.
    fn hogs(&self, subtree: &Subtree) -> Vec<Identity> {
        let groups = self.ledger.cells().filter_map(|(place, _)| match place {
            KnobPlace::Group { path, .. } => subtree.hog_of(path),
            _ => None,
        });
        groups.collect()
    }

    /// Commits steps. Failures at places without a process are reported for this process.
    pub(crate) fn commit_for(
        &mut self,
        who: Identity,
        steps: Vec<LedgerStep>,
        applied: &mut Applied,
    ) {
        let mut done = self.ledger.commit(steps);
        for (place, why) in std::mem::take(&mut done.failed) {
            self.skip(place.process().unwrap_or(who), crate::engine::knob_of(&place), why, applied);
        }
        self.report(done, applied);
    }
}

const NO_CONTROLLER: &str =
    "the group has no such controller: the kernel or the group above does not offer it";

/// Returns `true` for a unit with a non-default value. For group files only protection is checked:
/// groups created here start with the kernel's defaults, and above them only protection is set.
fn is_set_by_other(place: &KnobPlace, present: &Value) -> bool {
    match (place, present) {
        (KnobPlace::Unit { property, .. }, Value::Number(number)) => !property.is_default(*number),
        (KnobPlace::File { path }, Value::Number(number)) => {
            *number != 0 && path.ends_with("/memory.low")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
