// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values inherited by children and threads, so that a restore covers them too.
//!
//! The kernel passes nice value, slice, policy and I/O priority on to every child and thread. An
//! inherited value is not the user's choice. All of these distinguish it from a value set by the
//! user: the mechanism has applied this value to some process; the thread was forked after that;
//! and its origin is shown by one of four facts. The thread descends from that process; it or one
//! of its ancestors shares the session of that process; it could not have set a negative nice value
//! itself; or it has a slice applied by the mechanism. Hardly any program sets slices, and a daemon
//! keeps its slice whatever else it leaves, so one of our slices also shows the origin of the other
//! values. On a kernel without slices, a child that leaves its session and loses its parent, with a
//! value that the user could have set, counts as set by the user.
//!
//! `nice -n 5` adds to the inherited nice value. If a process has one of our slices and a nice
//! value that was never applied, the difference from the value that comes with the slice is the
//! user's *wish*, relative to the baseline. The reference is the nearest listed ancestor with that
//! slice, else any listed process with it. A single thread with a value of its own has no such
//! wish: programs set thread values outright.
//!
//! Inherited values of another user's process are restored as well if it descends from ours. Its
//! slice and session prove nothing, since that user may run a manager, too.
//!
//! The process from which a value was inherited may be gone, or have another value since. Each
//! value applied to a session therefore leaves a *trace* in the ledger and the journal until
//! everything is restored.

use crate::journal::Cell;
use crate::why::SkipReason;
use crate::world::{KnobPlace, ThreadKnob, ThreadSettings, Value, World};
use std::collections::{BTreeMap, BTreeSet};
use tipme_policy::Identity;

/// Range of nice values.
const NICE_MIN: i64 = -20;
const NICE_MAX: i64 = 19;

/// Values that may have been inherited.
#[derive(Default, Debug)]
pub(crate) struct Marks {
    by_process: BTreeMap<(Identity, ThreadKnob), Vec<Cell>>,
    by_session: BTreeMap<(u32, ThreadKnob), Vec<Cell>>,
    processes: BTreeSet<Identity>,
    /// All applied values.
    values: BTreeSet<(ThreadKnob, i64)>,
    first: Option<u64>,
}

/// Ancestors and sessions of a thread with an unexpected value; read only then.
struct Ancestry {
    lineage: Vec<Identity>,
    /// Its session and those of its ancestors.
    sessions: BTreeSet<u32>,
    unprivileged: bool,
    /// The process may be changed, not only restored.
    admitted: bool,
}

impl Marks {
    pub(crate) fn new<'a>(cells: impl Iterator<Item = (&'a KnobPlace, &'a Cell)>) -> Marks {
        let mut marks = Marks::default();
        for (place, cell) in cells {
            let knob = match place {
                KnobPlace::Thread { process, knob, .. } => {
                    marks.by_process.entry((*process, *knob)).or_default().push(cell.clone());
                    marks.processes.insert(*process);
                    *knob
                }
                KnobPlace::Trace { session, knob, .. } => {
                    marks.by_session.entry((*session, *knob)).or_default().push(cell.clone());
                    *knob
                }
                _ => continue,
            };
            let values = [Some(&cell.applied), cell.before.as_ref()].into_iter().flatten();
            marks.values.extend(values.filter_map(|value| Some((knob, value.number()?))));
            marks.first = Some(marks.first.map_or(cell.since, |first| first.min(cell.since)));
        }
        marks
    }

    /// Returns the clock ticks of the oldest mark; `None` without marks.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    pub(crate) fn knows(&self, who: Identity) -> bool {
        self.processes.contains(&who)
    }

    pub(crate) fn knows_session(&self, session: u32) -> bool {
        self.by_session
            .range((session, ThreadKnob::Nice)..=(session, ThreadKnob::Io))
            .next()
            .is_some()
    }

    /// Returns the inherited thread knobs of a process, each with its baseline or the user's wish,
    /// except for places with a cell.
    pub(crate) fn inherited(
        &self,
        world: &impl World,
        who: Identity,
        is_known: impl Fn(&KnobPlace) -> bool,
    ) -> Vec<(KnobPlace, Value)> {
        let threads = world.threads(who).unwrap_or_default();
        let found = self.inherited_by(world, who, &threads, is_known).into_iter();
        found.map(|((index, knob), baseline)| (threads[index].place(who, knob), baseline)).collect()
    }

    /// Same for threads that are already listed; returns index and knob.
    pub(crate) fn inherited_by(
        &self,
        world: &impl World,
        who: Identity,
        threads: &[ThreadSettings],
        is_known: impl Fn(&KnobPlace) -> bool,
    ) -> BTreeMap<(usize, ThreadKnob), Value> {
        let mut ancestry = None;
        let mut found = BTreeMap::new();
        for (index, thread) in threads.iter().enumerate() {
            let born_since = self.first.is_some_and(|first| thread.start >= first);
            for knob in ThreadKnob::ALL {
                let put = self.values.contains(&(knob, thread.value(knob)));
                let wished = knob == ThreadKnob::Nice && self.may_be_wish(thread, &threads[0]);
                if !(put || wished) || !born_since || is_known(&thread.place(who, knob)) {
                    continue;
                }
                let ancestry = ancestry.get_or_insert_with(|| Ancestry::new(world, who));
                let Some(ancestry) = &*ancestry else { return found };
                // A nice value or slice applied to this process was not inherited.
                let [slice_given, nice_given] = [ThreadKnob::Slice, ThreadKnob::Nice]
                    .map(|knob| is_known(&threads[0].place(who, knob)));
                let given = slice_given || nice_given && !self.is_wishing(who);
                let baseline = if wished && !given {
                    self.wish(world, ancestry, thread)
                } else {
                    self.baseline(ancestry, thread, knob)
                };
                found.extend(baseline.map(|baseline| ((index, knob), baseline)));
            }
        }
        found
    }

    /// Returns the user's wish behind a nice value, else the baseline from which it was inherited.
    fn wish(
        &self,
        world: &impl World,
        ancestry: &Ancestry,
        thread: &ThreadSettings,
    ) -> Option<Value> {
        match self.wish_from_above(world, ancestry, thread) {
            Some(wish) => wish.or_else(|| self.baseline(ancestry, thread, ThreadKnob::Nice)),
            None => self
                .baseline(ancestry, thread, ThreadKnob::Nice)
                .or_else(|| self.wish_from_others(world, ancestry, thread)),
        }
    }

    fn baseline(
        &self,
        ancestry: &Ancestry,
        thread: &ThreadSettings,
        knob: ThreadKnob,
    ) -> Option<Value> {
        let value = Value::Number(thread.value(knob));
        let family =
            ancestry.lineage.iter().filter_map(|&who| self.by_process.get(&(who, knob))).flatten();
        let sessions = ancestry.sessions.iter().filter(|_| ancestry.admitted);
        let session =
            sessions.filter_map(|&session| self.by_session.get(&(session, knob))).flatten();
        let below_zero = knob == ThreadKnob::Nice && thread.nice < 0 && ancestry.unprivileged;
        let alone = ancestry.admitted && (below_zero || self.has_our_slice(thread));
        let any = self
            .by_session
            .iter()
            .filter(|((_, of), _)| alone && *of == knob)
            .flat_map(|(_, cells)| cells);
        let mut cells = family.chain(session).chain(any);
        cells
            .find(|cell| cell.since <= thread.start && cell.has_had(&value))
            .map(|cell| cell.baseline.clone())
    }

    fn is_wishing(&self, who: Identity) -> bool {
        let mut cells = self.by_process.get(&(who, ThreadKnob::Nice)).into_iter().flatten();
        cells.any(|cell| ThreadKnob::Nice.is_wish(&cell.baseline))
    }

    fn has_our_slice(&self, thread: &ThreadSettings) -> bool {
        !ThreadKnob::Slice.is_default(thread.slice)
            && self.values.contains(&(ThreadKnob::Slice, thread.slice))
    }

    /// Returns `true` if a nice value may result from `nice`, which runs before the program does:
    /// then all its threads have it.
    fn may_be_wish(&self, thread: &ThreadSettings, first: &ThreadSettings) -> bool {
        self.has_our_slice(thread) && thread.nice == first.nice
    }

    /// Returns the wish behind a nice value that adds to the one inherited with the slice from an
    /// ancestor. The ancestor's present value is the reference, not another applied value that
    /// happens to match. Returns `Some(None)` if the ancestor is unclear, `None` if no ancestor has
    /// the slice.
    fn wish_from_above(
        &self,
        world: &impl World,
        ancestry: &Ancestry,
        thread: &ThreadSettings,
    ) -> Option<Option<Value>> {
        for who in ancestry.lineage.iter().skip(1) {
            match self.favour(world, *who, thread.slice) {
                Origin::Other => {}
                Origin::Unclear => return Some(None),
                Origin::Favoured { baseline, nice } => {
                    return Some(Some(wished(baseline, nice, thread.nice)));
                }
            }
        }
        None
    }

    /// Same for a process without its parents, from any other process with the slice.
    fn wish_from_others(
        &self,
        world: &impl World,
        ancestry: &Ancestry,
        thread: &ThreadSettings,
    ) -> Option<Value> {
        let others = self
            .by_process
            .keys()
            .filter(|(_, knob)| *knob == ThreadKnob::Slice && ancestry.admitted);
        others.map(|(who, _)| self.favour(world, *who, thread.slice)).find_map(
            |origin| match origin {
                Origin::Favoured { baseline, nice } => Some(wished(baseline, nice, thread.nice)),
                Origin::Other | Origin::Unclear => None,
            },
        )
    }

    /// Returns the favour that a process passes on together with its slice.
    fn favour(&self, world: &impl World, who: Identity, slice: i64) -> Origin {
        let [nices, slices] =
            [ThreadKnob::Nice, ThreadKnob::Slice].map(|knob| self.by_process.get(&(who, knob)));
        let first = world.threads(who).ok().and_then(|threads| threads.into_iter().next());
        let Some(first) = first else { return Origin::Other };
        let nice = Value::Number(first.nice);
        let baseline = match nices {
            Some(nices) => match nices.iter().find(|cell| cell.has_applied(&nice)) {
                Some(cell) => cell.baseline.number(),
                None => return Origin::Unclear,
            },
            None => Some(0).filter(|_| first.nice == 0),
        };
        match (slices, baseline) {
            (Some(slices), Some(baseline)) if first.slice == slice => {
                let settled = slices.iter().any(|cell| cell.applied == Value::Number(slice));
                if settled {
                    Origin::Favoured { baseline, nice: first.nice }
                } else {
                    Origin::Unclear
                }
            }
            _ => Origin::Other,
        }
    }
}

/// Role of a process in the origin of an inherited slice.
enum Origin {
    /// Descendants have the slice from it, with this nice value in place of the baseline.
    Favoured { baseline: i64, nice: i64 },
    /// Its nice value differs from the applied one, or a change was interrupted.
    Unclear,
    /// The slice has another origin.
    Other,
}

/// Returns the nice value at the same distance from the baseline as `nice` from the inherited
/// value.
fn wished(baseline: i64, inherited: i64, nice: i64) -> Value {
    Value::Number(baseline.saturating_add(nice.saturating_sub(inherited)).clamp(NICE_MIN, NICE_MAX))
}

impl Ancestry {
    /// Returns `None` for a process that the mechanism must not touch at all.
    fn new(world: &impl World, who: Identity) -> Option<Ancestry> {
        let first = KnobPlace::Thread {
            process: who,
            tid: who.pid,
            start: who.start,
            knob: ThreadKnob::Nice,
        };
        let admitted = match world.admit(&first) {
            Ok(()) => true,
            Err(SkipReason::NotOwner(_)) => false,
            Err(_) => return None,
        };
        let (lineage, sessions) = world.lineage(who).into_iter().unzip();
        Some(Ancestry { lineage, sessions, unprivileged: world.is_unprivileged(who), admitted })
    }
}
