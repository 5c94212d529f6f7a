// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nice value, time slice, scheduling policy and I/O priority, per thread.
//!
//! The kernel keeps them per thread, and passes them on to threads and children forked later. A
//! process is therefore settled in rounds until nothing was forked meanwhile, or a round finds
//! nothing to do: first the listed threads, then those forked with the old value. Unlisted children
//! *follow* the process from which they inherited the value: they change and are restored together
//! with it.
//!
//! A process just forked with its parent's values is left alone for half a second: `nice`, which
//! runs before a program, adds to the inherited value. A value set or read in between would be
//! misinterpreted.
//!
//! A process with a foreign value (neither the default nor ours) in its first thread is left alone
//! as a whole. A foreign value in another thread exempts only that thread; many programs lower some
//! of their own.

use crate::engine::Engine;
use crate::inherit::Marks;
use crate::journal::Log;
use crate::ledger::{CellDetails, LedgerStep};
use crate::why::{Applied, Knob, SkipReason};
use crate::world::{KnobFault, KnobPlace, ThreadKnob, ThreadSettings, Value, World};
use std::collections::{BTreeMap, BTreeSet};
use tipme_policy::{Identity, Knobs};

/// Maximum number of rounds that search for threads and children forked meanwhile.
const ROUNDS_MAX: usize = 4;
/// Upper bound of a short slice in nanoseconds: above the slices of favoured roles, below those of
/// the rest.
const SHORT_SLICE_MAX: i64 = 1_000_000;
/// Maximum number of remembered followers; further ones are found again by the restore.
const FOLLOWERS_MAX: usize = 4_096;

/// Target values of the threads of a process; `None` is the baseline.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Wants([Option<i64>; 4]);

impl Wants {
    fn new(knobs: &Knobs) -> Wants {
        let policy = knobs.is_idle.then_some(libc::SCHED_IDLE.into());
        let io = knobs.io_level.map(|level| 2 << 13 | i64::from(level.min(7)));
        let slice = knobs.slice_us.map(|slice_us| i64::from(slice_us) * 1_000);
        Wants([knobs.nice.map(i64::from), slice, policy, io])
    }

    fn get(&self, knob: ThreadKnob) -> Option<i64> {
        self.0[knob as usize]
    }
}

/// Origin of a thread's value.
enum Claim {
    /// The default, or the original value that has come back.
    Untouched,
    /// Applied here, or inherited from a process to which it was applied; its baseline.
    Ours(Value),
    /// The user's wish after subtraction of the inherited favour.
    Wish(Value),
    /// Set by another program. A cell remains: the place is theirs even if they set it to the
    /// default.
    Foreign,
}

impl Claim {
    fn ours(knob: ThreadKnob, baseline: Value) -> Claim {
        if knob.is_wish(&baseline) { Claim::Wish(baseline) } else { Claim::Ours(baseline) }
    }
}

/// Returns `true` for slice changes that come first. A short slice is set after its nice value and
/// restored before it, so that no child forked meanwhile has a short slice with another nice value.
fn comes_first(step: &LedgerStep) -> bool {
    let is_slice = matches!(step.place, KnobPlace::Thread { knob: ThreadKnob::Slice, .. });
    is_slice && step.to.number().is_none_or(|nanos| nanos == 0 || nanos > SHORT_SLICE_MAX)
}

fn has_wish(inherited: &BTreeMap<(usize, ThreadKnob), Value>) -> bool {
    inherited.iter().any(|((_, knob), baseline)| knob.is_wish(baseline))
}

#[derive(Default)]
struct ThreadPlan {
    steps: Vec<LedgerStep>,
    /// Processes with a wish in an inherited value. They are settled first, while the inherited
    /// value still exists.
    wishing: BTreeSet<Identity>,
    /// Processes with inherited values, which they may have passed on.
    heirs: BTreeSet<Identity>,
    /// Places that are gone.
    abandoned: Vec<KnobPlace>,
    left: Vec<(Identity, Knob, SkipReason)>,
    vanished: Vec<Identity>,
    /// Processes just forked with their parent's values, which may be about to add to them.
    young: BTreeSet<Identity>,
}

impl<W: World, L: Log> Engine<W, L> {
    /// Applies the roles to the threads of the processes and their followers.
    pub(crate) fn settle_threads(&mut self, touched: &BTreeSet<Identity>, applied: &mut Applied) {
        let idle = touched.iter().all(|who| self.wants(*who) == Wants::default());
        if idle && self.ledger.marks().first().is_none() {
            return;
        }
        let mut last_pid = self.ledger.world.last_pid();
        for round in 0..ROUNDS_MAX {
            let mut plan = self.plan(touched);
            let steps = std::mem::take(&mut plan.steps);
            self.take_notes(plan, round == 0, applied);
            if steps.is_empty() {
                break;
            }
            let done = self.ledger.commit(steps);
            let stuck = done.changed == 0;
            self.report(done, applied);
            let before = std::mem::replace(&mut last_pid, self.ledger.world.last_pid());
            if stuck || (last_pid.is_some() && last_pid == before) {
                break;
            }
        }
        self.forget_followers();
    }

    fn wants(&self, who: Identity) -> Wants {
        let Some(standing) = self.roles.get(&who) else { return Wants::default() };
        let mut knobs = self.knobs(*standing);
        knobs.slice_us = knobs.slice_us.filter(|_| self.ledger.world.has_slices());
        Wants::new(&knobs)
    }

    fn plan(&mut self, touched: &BTreeSet<Identity>) -> ThreadPlan {
        let (mut plan, marks) = (ThreadPlan::default(), self.ledger.marks());
        // Followers of a process that is left alone are left alone too.
        let mut wanted: BTreeMap<Identity, Wants> = BTreeMap::new();
        for who in touched {
            wanted.insert(*who, self.plan_process(*who, self.wants(*who), &marks, &mut plan));
        }
        for (who, leader) in &self.followers {
            if let Some(wants) = wanted.get(leader).filter(|_| !touched.contains(who)) {
                self.plan_process(*who, *wants, &marks, &mut plan);
            }
        }
        self.plan_followers(&wanted, &marks, &mut plan);
        let ThreadPlan { steps, wishing, .. } = &mut plan;
        steps.sort_by_key(|step| {
            (!step.place.process().is_some_and(|who| wishing.contains(&who)), !comes_first(step))
        });
        plan
    }

    /// Plans for one process; returns its target values, which are the baseline if it is left
    /// alone.
    fn plan_process(
        &self,
        who: Identity,
        mut wants: Wants,
        marks: &Marks,
        plan: &mut ThreadPlan,
    ) -> Wants {
        let threads = match self.ledger.world.threads(who) {
            Ok(threads) => threads,
            Err(fault) => {
                self.plan_missing(who, fault, plan);
                return wants;
            }
        };
        let ledger = &self.ledger;
        let inherited =
            marks.inherited_by(&ledger.world, who, &threads, |place| ledger.knows(place));
        plan.heirs.extend((!inherited.is_empty()).then_some(who));
        let new = !inherited.is_empty() && ledger.threads_of(who).next().is_none();
        if new && ledger.world.is_young(who) && !has_wish(&inherited) {
            plan.young.insert(who);
            return wants;
        }
        let claims: Vec<[Claim; 4]> = threads
            .iter()
            .enumerate()
            .map(|(index, thread)| {
                ThreadKnob::ALL
                    .map(|knob| self.claim(who, thread, knob, inherited.get(&(index, knob))))
            })
            .collect();
        let refused = threads
            .first()
            .filter(|_| !inherited.is_empty())
            .and_then(|first| self.refusal(who, first));
        if self.find_foreign(who, &threads, &claims, plan) || refused.is_some() {
            wants = Wants::default();
        }
        plan.left.extend(refused.map(|why| (who, Knob::Nice, why)));
        let live: BTreeSet<(u32, u64)> =
            threads.iter().map(|thread| (thread.tid, thread.start)).collect();
        plan.abandoned.extend(ledger.threads_of(who).filter_map(|(place, _)| match place {
            KnobPlace::Thread { tid, start, .. } if !live.contains(&(*tid, *start)) => {
                Some(place.clone())
            }
            _ => None,
        }));
        for (thread, claims) in threads.iter().zip(claims) {
            for (knob, claim) in ThreadKnob::ALL.into_iter().zip(claims) {
                self.plan_thread(who, thread, knob, claim, wants.get(knob), plan);
            }
        }
        wants
    }

    /// Returns the reason why a process only loses its inherited values.
    fn refusal(&self, who: Identity, first: &ThreadSettings) -> Option<SkipReason> {
        self.ledger.world.admit(&first.place(who, ThreadKnob::Nice)).err()
    }

    fn plan_missing(&self, who: Identity, fault: KnobFault, plan: &mut ThreadPlan) {
        if let KnobFault::Refused(code) = fault {
            return plan.left.push((who, Knob::Nice, SkipReason::Refused(code)));
        }
        plan.vanished.push(who);
        plan.abandoned.extend(self.ledger.threads_of(who).map(|(place, _)| place.clone()));
    }

    fn claim(
        &self,
        who: Identity,
        thread: &ThreadSettings,
        knob: ThreadKnob,
        inherited: Option<&Value>,
    ) -> Claim {
        let present = Value::Number(thread.value(knob));
        match (self.ledger.cell(&thread.place(who, knob)), inherited) {
            (Some(cell), _) if cell.has_applied(&present) => {
                Claim::ours(knob, cell.baseline.clone())
            }
            (Some(_), _) => Claim::Foreign,
            (None, Some(baseline)) => Claim::ours(knob, baseline.clone()),
            (None, None) if knob.is_default(thread.value(knob)) => Claim::Untouched,
            (None, None) => Claim::Foreign,
        }
    }

    /// Returns `true` if the process must be left alone, since the user or another program has set
    /// a value.
    fn find_foreign(
        &self,
        who: Identity,
        threads: &[ThreadSettings],
        claims: &[[Claim; 4]],
        plan: &mut ThreadPlan,
    ) -> bool {
        let (Some(thread), Some(first)) = (threads.first(), claims.first()) else { return false };
        let mut found = false;
        for (knob, claim) in ThreadKnob::ALL.into_iter().zip(first) {
            let present = Value::Number(thread.value(knob));
            let wish = match claim {
                Claim::Untouched | Claim::Ours(_) => continue,
                Claim::Wish(wish) => wish,
                Claim::Foreign => &present,
            };
            // A foreign slice does not exempt the process: it changes no share, and the default
            // depends on the number of CPUs.
            found |= knob != ThreadKnob::Slice;
            let place = thread.place(who, knob);
            let value = crate::explain::words(&place, wish);
            let why = match self.ledger.world.admit(&place) {
                Err(why) => why,
                Ok(()) if matches!(claim, Claim::Foreign) && self.ledger.knows(&place) => {
                    SkipReason::ChangedByOther(value)
                }
                Ok(()) => SkipReason::SetByOther(value),
            };
            plan.left.push((who, crate::engine::knob_of(&place), why));
        }
        found
    }

    fn plan_thread(
        &self,
        who: Identity,
        thread: &ThreadSettings,
        knob: ThreadKnob,
        claim: Claim,
        want: Option<i64>,
        plan: &mut ThreadPlan,
    ) {
        // Real-time threads have no slice.
        if knob == ThreadKnob::Slice && matches!(claim, Claim::Untouched) && !thread.is_fair() {
            return;
        }
        let place = thread.place(who, knob);
        let present = Value::Number(thread.value(knob));
        plan.wishing.extend(matches!(claim, Claim::Wish(_)).then_some(who));
        let (baseline, to) = match (claim, want) {
            (Claim::Foreign, _) | (Claim::Untouched, None) => return,
            (Claim::Untouched, Some(want)) => (present.clone(), Value::Number(want)),
            (Claim::Wish(wish), _) => (wish.clone(), wish),
            (Claim::Ours(baseline), want) => {
                (baseline.clone(), want.map_or(baseline, Value::Number))
            }
        };
        let known = self.ledger.cell(&place).is_some_and(|cell| cell.applied == to);
        if present != to || !(known || to == baseline) {
            let details = CellDetails { session: thread.session, return_to: None };
            plan.steps.push(LedgerStep { place, to, baseline, from: present, details });
        }
    }

    /// Plans unlisted descendants that have an old value of their ancestor.
    fn plan_followers(
        &mut self,
        wanted: &BTreeMap<Identity, Wants>,
        marks: &Marks,
        plan: &mut ThreadPlan,
    ) {
        let heirs = std::mem::take(&mut plan.heirs);
        let leaders = wanted.iter().filter(|(who, _)| marks.knows(**who) || heirs.contains(who));
        for (leader, wants) in leaders {
            // A process that has a role, or has just lost one, leads its own descendants.
            let below = self
                .ledger
                .world
                .below(*leader, &|who| self.roles.contains_key(&who) || wanted.contains_key(&who));
            for who in below {
                let follows = self.followers.contains_key(&who);
                if !follows && self.plan_follower(who, *wants, marks, plan) {
                    self.followers.insert(who, *leader);
                }
            }
        }
    }

    /// Returns `true` if it follows now. A child that already has the target value needs no change.
    fn plan_follower(
        &self,
        who: Identity,
        mut wants: Wants,
        marks: &Marks,
        plan: &mut ThreadPlan,
    ) -> bool {
        let Ok(threads) = self.ledger.world.threads(who) else { return false };
        let mut inherited = marks.inherited_by(&self.ledger.world, who, &threads, |_| false);
        let first = threads.first().filter(|_| !inherited.is_empty());
        if has_wish(&inherited) || first.is_some_and(|first| self.refusal(who, first).is_some()) {
            wants = Wants::default();
        }
        inherited.retain(|(index, knob), _| wants.get(*knob) != Some(threads[*index].value(*knob)));
        let follows = !inherited.is_empty() && self.followers.len() < FOLLOWERS_MAX;
        for ((index, knob), baseline) in inherited {
            let claim = Claim::ours(knob, baseline);
            self.plan_thread(who, &threads[index], knob, claim, wants.get(knob), plan);
        }
        follows
    }

    fn take_notes(&mut self, plan: ThreadPlan, first: bool, applied: &mut Applied) {
        self.ledger.abandon(plan.abandoned);
        for who in &plan.vanished {
            self.followers.remove(who);
        }
        applied.later |= !plan.young.is_empty();
        self.later.extend(plan.young);
        if first {
            applied.vanished += plan.vanished.len();
            plan.left.into_iter().for_each(|(who, knob, why)| self.skip(who, knob, why, applied));
        }
    }

    /// Forgets followers without a changed knob, or with a role of their own.
    fn forget_followers(&mut self) {
        let (ledger, roles) = (&self.ledger, &self.roles);
        self.followers
            .retain(|who, _| !roles.contains_key(who) && ledger.threads_of(*who).next().is_some());
    }
}

#[cfg(test)]
mod tests;
