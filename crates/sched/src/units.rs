// SPDX-License-Identifier: MIT OR Apache-2.0
//! systemd units: a set gets its weight through a unit of its own.
//!
//! A process runs in a unit, its *origin unit*, and gets a *placement*. The placement is the origin
//! unit, if it holds only the set of the process; a scope beside it, started for the set and its
//! origin unit; or the shared origin unit, unweighed, if nothing else is wanted or possible. Rules
//! for a set to keep an origin unit to itself:
//!
//! - The scope of a program belongs to the set of its oldest process; the other sets in it are
//!   split out. Processes without a role stay.
//! - The scope of a login belongs to no set: sets with other weights than the rest are split out. A
//!   login scope in which every process has a role is treated as that of a program, since an empty
//!   scope ends, and the login with it.
//! - No process is taken out of a service, because its manager would consider the service ended. If
//!   all its processes have the same role, the service itself gets the weight; otherwise it is left
//!   alone and reported.
//!
//! Weights count among siblings only, so everything between the user's slice and a favoured unit is
//! weighed as well. The slice of one program gets the weight of its most favoured unit. The user's
//! manager and the slices directly below it, which divide a whole session, all get the weight of
//! the core. The user's slice itself is not touched: other users and system services compete with
//! all of it.

use crate::engine::Engine;
use crate::journal::Log;
use crate::ledger::LedgerStep;
use crate::placements::{Placement, Units};
use crate::units_names::{self, Property};
use crate::why::{Applied, Knob, SkipReason};
use crate::world::{KnobPlace, Value, World};
use std::collections::{BTreeMap, BTreeSet};
use tipme_policy::{Backend, Identity, Role, SetId};

const NO_UNIT: &str = "it is in no systemd unit";
/// Default weight of siblings.
const PLAIN: u32 = 100;

/// Target placement of a process.
enum PlacementTarget {
    /// No role: returns to its origin unit.
    Nothing,
    /// Stays in its shared origin unit.
    Shared,
    /// In its origin unit, which its set has to itself.
    Own(SetId),
    /// In a scope of the set.
    Apart(SetId),
    /// The weight of its role is unavailable.
    Refused(SkipReason),
}

/// An origin unit with its processes, including those moved out of it.
struct UnitMembers<'a> {
    origin_unit: &'a str,
    all: BTreeSet<Identity>,
    holder: Option<SetId>,
}

impl<W: World, L: Log> Engine<W, L> {
    /// Places the processes, and sets the weights of their units.
    pub(crate) fn settle_units(&mut self, touched: &BTreeSet<Identity>, applied: &mut Applied) {
        let Some(mut units) = self.units.take() else { return };
        if self.backend == Backend::Systemd {
            for (origin_unit, news) in self.find_news(&units, touched, applied) {
                self.settle_unit(&mut units, &origin_unit, &news, applied);
            }
            self.settle_properties(&units, applied);
            self.close_scopes(&units, applied);
        }
        self.units = Some(units);
    }

    /// Returns the misplaced processes by origin unit.
    fn find_news(
        &mut self,
        units: &Units,
        touched: &BTreeSet<Identity>,
        applied: &mut Applied,
    ) -> BTreeMap<String, Vec<Identity>> {
        let mut news: BTreeMap<String, Vec<Identity>> = BTreeMap::new();
        let unsettled: Vec<Identity> =
            touched.iter().copied().filter(|who| !self.is_settled(units, *who)).collect();
        for who in unsettled {
            let origin_unit = self
                .origin_of(units, who)
                .map(|origin| units_names::unit_folder(&units.root, &origin));
            match origin_unit {
                Some(Some(origin_unit)) => news.entry(origin_unit).or_default().push(who),
                Some(None) => {
                    self.skip(who, Knob::Group, SkipReason::Unsupported(NO_UNIT), applied)
                }
                None => applied.vanished += 1,
            }
            if let Some(placement) = units.placements.get(&who) {
                news.entry(placement.origin_unit.clone()).or_default();
            }
        }
        news
    }

    fn is_settled(&self, units: &Units, who: Identity) -> bool {
        let weights =
            self.roles.get(&who).map(|standing| (standing.set, self.weights(standing.set)));
        match (units.placements.get(&who), weights) {
            (None, None) => !self.ledger.knows(&units.member(who)),
            (None, Some((_, weights))) => weights == [None, None],
            (Some(_), None) => units.limited.contains(&who),
            (Some(placement), Some((set, _))) if placement.set != set => {
                placement.set == SetId(who) && units.limited.contains(&who)
            }
            (Some(placement), Some((_, weights))) => match weights {
                [None, None] => false,
                weights => placement.unit.is_some() || is_plain(weights),
            },
        }
    }

    /// Returns the original group of a process: its own from before it was moved, or that of its
    /// moved ancestor.
    pub(crate) fn origin_of(&self, units: &Units, who: Identity) -> Option<String> {
        let Ok(Value::Text(present)) = self.ledger.world.get(&units.member(who)) else {
            return None;
        };
        Some(self.origin_from(units, who, present))
    }

    /// Same for a process with the known group `present`.
    fn origin_from(&self, units: &Units, who: Identity, present: String) -> String {
        let scope = self
            .scope_place(&present)
            .and_then(|scope| self.ledger.cell(&scope)?.return_to.clone());
        let moved = scope.is_some() || self.ledger.knows(&units.member(who));
        let known = moved.then(|| self.ledger.origin(who, &units.root)).flatten();
        known.or(scope).unwrap_or(present)
    }

    /// Returns our scope with this folder.
    fn scope_place(&self, group: &str) -> Option<KnobPlace> {
        let mut places = self.ledger.cells().map(|(place, _)| place);
        places
            .find(|place| matches!(place, KnobPlace::Scope { folder, .. } if folder == group))
            .cloned()
    }

    /// Places each process of an origin unit again.
    pub(crate) fn settle_unit(
        &mut self,
        units: &mut Units,
        origin_unit: &str,
        news: &[Identity],
        applied: &mut Applied,
    ) {
        let members = self.find_members(units, origin_unit, news);
        // Processes that are gone need no placement.
        units.placements.retain(|who, placement| {
            placement.origin_unit != origin_unit || members.all.contains(who)
        });
        let mut steps = Vec::new();
        for &who in &members.all {
            let placed = match self.target_of(units, who, &members) {
                PlacementTarget::Nothing => None,
                PlacementTarget::Shared => {
                    self.roles.get(&who).map(|standing| (standing.set, None))
                }
                PlacementTarget::Own(set) => Some((set, Some(origin_unit.to_owned()))),
                PlacementTarget::Apart(set) => self
                    .scope_for(units, set, who, origin_unit, applied)
                    .map(|unit| (set, Some(unit))),
                PlacementTarget::Refused(why) => {
                    self.skip(who, Knob::Group, why, applied);
                    None
                }
            };
            let unit = placed.as_ref().and_then(|(_, unit)| unit.clone());
            let away = unit.filter(|unit| unit != origin_unit);
            match self.plan_placement(units, who, away) {
                Ok(step) => steps.extend(step),
                Err(why) => self.skip(who, Knob::Group, why, applied),
            }
            units.placements.remove(&who);
            units.placements.extend(placed.map(|(set, unit)| {
                (who, Placement { set, origin_unit: origin_unit.to_owned(), unit })
            }));
        }
        let done = self.ledger.commit(steps);
        let refused = done.failed.iter().filter_map(|(place, _)| place.process());
        done.vanished
            .iter()
            .copied()
            .chain(refused)
            .for_each(|who| drop(units.placements.remove(&who)));
        self.report(done, applied);
    }

    fn find_members<'a>(
        &self,
        units: &Units,
        origin_unit: &'a str,
        news: &[Identity],
    ) -> UnitMembers<'a> {
        let away = self.ledger.cells().filter_map(|(place, cell)| match (place, &cell.baseline) {
            (KnobPlace::Member { process, .. }, Value::Text(group)) => Some((*process, group)),
            _ => None,
        });
        let away = away.filter(|(who, group)| {
            units_names::unit_folder(&units.root, group).as_deref() == Some(origin_unit)
                && self.ledger.world.get(&units.member(*who)).is_ok()
        });
        let inside = self.ledger.world.tree(origin_unit);
        let all: BTreeSet<Identity> = inside
            .into_iter()
            .chain(away.map(|(who, _)| who))
            .chain(news.iter().copied())
            .collect();
        let holder = self.holder(origin_unit, &all);
        UnitMembers { origin_unit, all, holder }
    }

    /// Returns the set that may keep the origin unit to itself.
    fn holder(&self, origin_unit: &str, all: &BTreeSet<Identity>) -> Option<SetId> {
        let oldest = all.iter().min_by_key(|who| (who.start, who.pid))?;
        let first = self.roles.get(oldest)?;
        let mut roles = all.iter().map(|who| self.roles.get(who).map(|other| other.role));
        let suits = if units_names::is_service(origin_unit) {
            roles.all(|role| role == Some(first.role))
        } else {
            // A login's scope would end, and the login with it, if all processes left it.
            !units_names::is_login(origin_unit) || roles.all(|role| role.is_some())
        };
        suits.then_some(first.set)
    }

    fn target_of(&self, units: &Units, who: Identity, members: &UnitMembers) -> PlacementTarget {
        let limited = units.limited.contains(&who);
        let weights =
            self.roles.get(&who).map(|standing| (standing.set, self.weights(standing.set)));
        let Some((set, weights)) = weights.filter(|(_, weights)| *weights != [None, None]) else {
            return if limited {
                PlacementTarget::Apart(SetId(who))
            } else {
                PlacementTarget::Nothing
            };
        };
        let service = units_names::is_service(members.origin_unit);
        match members.holder {
            Some(holder) if holder == set || service => PlacementTarget::Own(set),
            _ if service && is_plain(weights) => PlacementTarget::Shared,
            _ if service => {
                let name = members.origin_unit.rsplit('/').next().unwrap_or_default();
                PlacementTarget::Refused(SkipReason::Unit(name.to_owned()))
            }
            None if is_plain(weights) && limited => PlacementTarget::Apart(SetId(who)),
            None if is_plain(weights) && units.scope(set, members.origin_unit).is_none() => {
                PlacementTarget::Shared
            }
            _ => PlacementTarget::Apart(set),
        }
    }

    /// Returns the set's scope beside an origin unit; starts it with this process if necessary.
    fn scope_for(
        &mut self,
        units: &Units,
        set: SetId,
        who: Identity,
        origin_unit: &str,
        applied: &mut Applied,
    ) -> Option<String> {
        if let Some(place) =
            units.scope(set, origin_unit).and_then(|folder| self.scope_place(folder))
        {
            if self.ledger.world.get(&place) == Ok(1.into()) {
                return place.group_folder().map(|(folder, _)| folder.to_owned());
            }
            self.abandon_scope(place);
        }
        if units_names::is_service(origin_unit) {
            return None;
        }
        let (slice, _) = origin_unit.rsplit_once('/')?;
        let started = self.ledger.world.ticks();
        let folder = format!("{slice}/tipme-{}-{}-{started}.scope", set.0.pid, set.0.start);
        let place =
            KnobPlace::Scope { folder: folder.clone(), root: units.root.clone(), first: who };
        let step = LedgerStep::create(place.clone(), self.origin_of(units, who)?);
        self.commit_for(who, vec![step], applied);
        // A scope that may still come cannot take a process.
        self.ledger.cell(&place).filter(|cell| cell.applied == 1.into()).map(|_| folder)
    }

    /// Plans the move of a process to another group, or back to its origin unit if `away` is
    /// `None`. A process that another program has moved stays.
    fn plan_placement(
        &mut self,
        units: &Units,
        who: Identity,
        away: Option<String>,
    ) -> Result<Option<LedgerStep>, SkipReason> {
        let place = units.member(who);
        let Ok(present) = self.ledger.world.get(&place) else {
            self.ledger.abandon([place]);
            return Ok(None);
        };
        let (baseline, known) = match self.ledger.cell(&place) {
            Some(cell) if !cell.has_applied(&present) && present != cell.baseline => {
                return Err(SkipReason::ChangedByOther(present.to_string()));
            }
            Some(cell) => (cell.baseline.clone(), true),
            None => (Value::Text(self.origin_from(units, who, present.to_string())), false),
        };
        let to = away.map_or_else(|| baseline.clone(), Value::Text);
        // The first process of a scope is in it already, and has no cell yet.
        let done = to == present && (known || to == baseline);
        Ok((!done || known && to == baseline)
            .then(|| LedgerStep { from: present, ..LedgerStep::first(place, to, baseline) }))
    }

    /// Sets the properties of all units and slices, and restores obsolete ones.
    pub(crate) fn settle_properties(&mut self, units: &Units, applied: &mut Applied) {
        let mut wanted = self.wanted_weights(units);
        wanted.extend(wanted_protection(units));
        let changed = self.ledger.cells().filter_map(|(place, _)| match place {
            // `settle_limits` handles these limits.
            KnobPlace::Unit { property: Property::MemoryHigh, .. } => None,
            KnobPlace::Unit { folder, property } => Some((folder.clone(), *property)),
            _ => None,
        });
        let unwanted: Vec<_> = changed.filter(|key| !wanted.contains_key(key)).collect();
        let someone = self.roles.keys().next().copied().unwrap_or(crate::memory::NOBODY);
        let back = unwanted.into_iter().map(|key| (key, (None, someone)));
        let forth = wanted.into_iter().map(|(key, (number, who))| (key, (Some(number), who)));
        for ((folder, property), (want, who)) in back.chain(forth) {
            self.put(KnobPlace::Unit { folder, property }, want, who, applied);
        }
    }

    fn wanted_weights(&self, units: &Units) -> BTreeMap<(String, Property), (i64, Identity)> {
        let mut wanted: BTreeMap<(String, Property), (i64, Identity)> = BTreeMap::new();
        let of_core = self.weights_of_role(Role::Core);
        for (who, placement) in &units.placements {
            let (Some(unit), Some(standing)) = (&placement.unit, self.roles.get(who)) else {
                continue;
            };
            let weights = self.weights(standing.set);
            let mut weighed = vec![(unit.clone(), weights)];
            if matches!(standing.role, Role::Core | Role::Focused) {
                for above in units_names::above_in_user_slice(&units.root, unit) {
                    let whole = units_names::divides_session(&above);
                    weighed.push((above, if whole { of_core } else { weights }));
                }
            }
            for (folder, weights) in weighed {
                let properties = [Property::CpuWeight, Property::IoWeight];
                for (property, weight) in properties.into_iter().zip(weights) {
                    let Some(weight) = weight.map(i64::from) else { continue };
                    let entry = wanted.entry((folder.clone(), property)).or_insert((weight, *who));
                    entry.0 = entry.0.max(weight);
                }
            }
        }
        wanted
    }

    /// Ends our scopes without placed processes.
    pub(crate) fn close_scopes(&mut self, units: &Units, applied: &mut Applied) {
        let used: BTreeSet<&str> =
            units.placements.values().filter_map(|placement| placement.unit.as_deref()).collect();
        let left = self.ledger.cells().filter(|(place, _)| match place {
            KnobPlace::Scope { folder, .. } => !used.contains(folder.as_str()),
            _ => false,
        });
        let left: Vec<(KnobPlace, String)> = left
            .map(|(place, cell)| (place.clone(), cell.return_to.clone().unwrap_or_default()))
            .collect();
        for (place, origin_unit) in left {
            let KnobPlace::Scope { folder, root, first } = &place else { continue };
            self.ledger.evacuate(folder, root, &origin_unit);
            self.commit_for(*first, vec![LedgerStep::remove(place.clone())], applied);
            if !self.ledger.knows(&place) {
                self.abandon_scope(place);
            }
        }
    }

    /// Forgets a scope that is gone, with its properties.
    fn abandon_scope(&mut self, scope: KnobPlace) {
        let Some((gone, _)) = scope.group_folder() else { return };
        let mut places = self
            .ledger
            .places(|place| matches!(place, KnobPlace::Unit { folder, .. } if folder == gone));
        places.push(scope);
        self.ledger.abandon(places);
    }
}

/// Returns the protection that sets need on their units and all ancestors.
fn wanted_protection(units: &Units) -> BTreeMap<(String, Property), (i64, Identity)> {
    let mut wanted: BTreeMap<(String, Property), (i64, Identity)> = BTreeMap::new();
    for (set, bytes) in &units.protected {
        let Some(unit) = units.unit_of_set(*set) else { continue };
        let bytes = crate::memory::signed(*bytes);
        for folder in units_names::above(&units.root, unit).into_iter().chain([unit.to_owned()]) {
            let entry = wanted.entry((folder, Property::MemoryLow)).or_insert((0, set.0));
            entry.0 = entry.0.saturating_add(bytes);
        }
    }
    wanted
}

/// Returns `true` for default weights, which need no unit.
fn is_plain(weights: [Option<u32>; 2]) -> bool {
    weights.iter().all(|weight| weight.is_none_or(|weight| weight == PLAIN))
}

#[cfg(test)]
mod tests;
