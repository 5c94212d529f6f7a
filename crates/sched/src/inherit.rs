// SPDX-License-Identifier: MIT OR Apache-2.0
//! What children and threads inherit, so that taking back reaches them too.
//!
//! The kernel hands nice value, slice, policy and I/O priority on to every child and thread. Such a value is
//! nobody's wish. It is told from one that the user has set by all of: it is a value that was put
//! into a process here; the thread that has it was forked after that; and one of these says that it came from there:
//! the thread descends from that process; it, or one above it, shares the session of that process; it could not have
//! got a negative nice value by itself; it has a slice that was put into a process here. Next to nobody sets slices, and
//! a daemon keeps its own whatever it leaves, so a slice of ours says where the other values come from, too.
//! On a kernel without slices, a child that leaves its session and loses its parent, and whose value the user could
//! have set, is taken for the user's own.
//!
//! `nice -n 5` adds to what it has inherited. So where a process has a slice of ours and a nice value that was not put
//! anywhere, the difference from what comes with the slice is what the user *wishes*, counted from the baseline: the
//! value of the nearest listed process above it that has the slice, else of those that are listed with it. A thread with
//! a value of its own has no such wish: programs set theirs outright.
//!
//! What a process of another user has inherited goes back as well, where it descends from ours. Its slice and its session
//! say nothing, since that user may have a manager, too.
//!
//! The process that a value came from may be gone, or have another value since. So each value that is put
//! into a session leaves a *trace* in the ledger and the journal, until everything is taken back.

use crate::journal::Cell;
use crate::why::SkipReason;
use crate::world::{KnobPlace, ThreadKnob, ThreadSettings, Value, World};
use std::collections::{BTreeMap, BTreeSet};
use tipme_policy::Identity;

/// What nice values there are.
const NICE_MIN: i64 = -20;
const NICE_MAX: i64 = 19;

/// The values that could have been inherited.
#[derive(Default, Debug)]
pub(crate) struct Marks {
    by_process: BTreeMap<(Identity, ThreadKnob), Vec<Cell>>,
    by_session: BTreeMap<(u32, ThreadKnob), Vec<Cell>>,
    processes: BTreeSet<Identity>,
    /// All values that there are.
    values: BTreeSet<(ThreadKnob, i64)>,
    first: Option<u64>,
}

/// The ancestors and sessions of a thread with an unexpected value; asked for only then.
struct Ancestry {
    lineage: Vec<Identity>,
    /// Its session and those of the processes above it.
    sessions: BTreeSet<u32>,
    unprivileged: bool,
    /// It may be changed, and not only lose what it inherited.
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

    /// Clock ticks of the oldest mark; `None` where there is none.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    pub(crate) fn knows(&self, who: Identity) -> bool {
        self.processes.contains(&who)
    }

    pub(crate) fn knows_session(&self, session: u32) -> bool {
        self.by_session.range((session, ThreadKnob::Nice)..=(session, ThreadKnob::Io)).next().is_some()
    }

    /// The thread knobs of a process that are inherited, with their baselines, or with what is wished for; but for
    /// places that are known.
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

    /// The same for threads that were listed already, by their index and knob.
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
                let known = |thread: &ThreadSettings| is_known(&thread.place(who, knob));
                if !(put || wished) || !born_since || known(thread) {
                    continue;
                }
                let ancestry = ancestry.get_or_insert_with(|| Ancestry::new(world, who));
                let Some(ancestry) = &*ancestry else { return found };
                // Who was given nice value or slice here has not inherited it.
                let first = |knob| is_known(&threads[0].place(who, knob));
                let given = first(ThreadKnob::Slice) || first(ThreadKnob::Nice) && !self.is_wishing(who);
                let put = || self.baseline(ancestry, thread, knob);
                let above = Some(ancestry).filter(|_| wished && !given);
                let baseline = match above.map(|ancestry| self.wish_from_above(world, ancestry, thread)) {
                    None => put(),
                    Some(Some(wish)) => wish.or_else(put),
                    Some(None) => put().or_else(|| self.wish_from_others(world, ancestry, thread)),
                };
                found.extend(baseline.map(|baseline| ((index, knob), baseline)));
            }
        }
        found
    }

    fn baseline(&self, ancestry: &Ancestry, thread: &ThreadSettings, knob: ThreadKnob) -> Option<Value> {
        let value = Value::Number(thread.value(knob));
        let fits = |cell: &&Cell| cell.since <= thread.start && cell.lent(&value);
        let family = ancestry.lineage.iter().filter_map(|&who| self.by_process.get(&(who, knob))).flatten();
        let sessions = ancestry.sessions.iter().filter(|_| ancestry.admitted);
        let session = sessions.filter_map(|&session| self.by_session.get(&(session, knob))).flatten();
        let below_zero = knob == ThreadKnob::Nice && thread.nice < 0 && ancestry.unprivileged;
        let alone = ancestry.admitted && (below_zero || self.has_our_slice(thread));
        let any = self.by_session.iter().filter(|((_, of), _)| alone && *of == knob).flat_map(|(_, cells)| cells);
        family.chain(session).chain(any).find(fits).map(|cell| cell.baseline.clone())
    }

    fn is_wishing(&self, who: Identity) -> bool {
        let mut cells = self.by_process.get(&(who, ThreadKnob::Nice)).into_iter().flatten();
        cells.any(|cell| ThreadKnob::Nice.is_wish(&cell.baseline))
    }

    fn has_our_slice(&self, thread: &ThreadSettings) -> bool {
        !ThreadKnob::Slice.is_default(thread.slice) && self.values.contains(&(ThreadKnob::Slice, thread.slice))
    }

    /// Whether a nice value can be of `nice`, which is run before the program is: all of its threads have it then.
    fn may_be_wish(&self, thread: &ThreadSettings, first: &ThreadSettings) -> bool {
        self.has_our_slice(thread) && thread.nice == first.nice
    }

    /// What was wished for by who has added to the nice value that came with the slice from a process above. What that
    /// has now counts, and not another value that was put somewhere and happens to be the sum. `Some(None)` where it is
    /// not clear; `None` where no process above has the slice.
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
                Origin::Favoured { baseline, nice } => return Some(Some(wished(baseline, nice, thread.nice))),
            }
        }
        None
    }

    /// The same of one whose parents have gone, from whoever else has the slice.
    fn wish_from_others(&self, world: &impl World, ancestry: &Ancestry, thread: &ThreadSettings) -> Option<Value> {
        let others = self.by_process.keys().filter(|(_, knob)| *knob == ThreadKnob::Slice && ancestry.admitted);
        others.map(|(who, _)| self.favour(world, *who, thread.slice)).find_map(|origin| match origin {
            Origin::Favoured { baseline, nice } => Some(wished(baseline, nice, thread.nice)),
            Origin::Other | Origin::Unclear => None,
        })
    }

    /// What came with a slice to those that have it from this process.
    fn favour(&self, world: &impl World, who: Identity, slice: i64) -> Origin {
        let cells = |knob| self.by_process.get(&(who, knob));
        let first = world.threads(who).ok().and_then(|threads| threads.into_iter().next());
        let Some(first) = first else { return Origin::Other };
        let nice = Value::Number(first.nice);
        let baseline = match cells(ThreadKnob::Nice) {
            Some(nices) => match nices.iter().find(|cell| cell.put(&nice)) {
                Some(cell) => cell.baseline.number(),
                None => return Origin::Unclear,
            },
            None => Some(0).filter(|_| first.nice == 0),
        };
        match (cells(ThreadKnob::Slice), baseline) {
            (Some(slices), Some(baseline)) if first.slice == slice => {
                let settled = slices.iter().any(|cell| cell.applied == Value::Number(slice));
                if settled { Origin::Favoured { baseline, nice: first.nice } } else { Origin::Unclear }
            }
            _ => Origin::Other,
        }
    }
}

/// What a process says of a slice that those below it have.
enum Origin {
    /// They have it from it, with a nice value in place of a baseline.
    Favoured { baseline: i64, nice: i64 },
    /// It has another nice value than was put there, or a change of it was stopped half-way.
    Unclear,
    /// They have it from elsewhere.
    Other,
}

/// As far from the baseline as a value is from the one that came with the slice.
fn wished(baseline: i64, inherited: i64, nice: i64) -> Value {
    Value::Number(baseline.saturating_add(nice.saturating_sub(inherited)).clamp(NICE_MIN, NICE_MAX))
}

impl Ancestry {
    /// `None` of a process that nothing is done to.
    fn new(world: &impl World, who: Identity) -> Option<Ancestry> {
        let first = KnobPlace::Thread { process: who, tid: who.pid, start: who.start, knob: ThreadKnob::Nice };
        let admitted = match world.admit(&first) {
            Ok(()) => true,
            Err(SkipReason::NotOwner(_)) => false,
            Err(_) => return None,
        };
        let (lineage, sessions) = world.lineage(who).into_iter().unzip();
        Some(Ancestry { lineage, sessions, unprivileged: world.is_unprivileged(who), admitted })
    }
}
