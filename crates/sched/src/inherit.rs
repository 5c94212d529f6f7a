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
//! `nice -n 5` adds to what it has inherited. So where a process has a slice of ours, and another nice value than the
//! default or what the process has that it has the slice from, the difference is what the user *wishes*, counted
//! from that one's baseline. A thread with a value of its own is none: programs set theirs outright.
//!
//! The process that a value came from may be gone, or have another value since. So each value that is put
//! into a session leaves a *trace* in the ledger and the journal, until everything is taken back.

use crate::journal::Cell;
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
                let put = self.baseline(ancestry, thread, knob);
                let wish = || self.wish(world, ancestry, thread).filter(|_| wished && !known(&threads[0]));
                found.extend(put.or_else(wish).map(|baseline| ((index, knob), baseline)));
            }
        }
        found
    }

    fn baseline(&self, ancestry: &Ancestry, thread: &ThreadSettings, knob: ThreadKnob) -> Option<Value> {
        let value = Value::Number(thread.value(knob));
        let fits = |cell: &&Cell| cell.since <= thread.start && cell.put(&value);
        let family = ancestry.lineage.iter().filter_map(|&who| self.by_process.get(&(who, knob))).flatten();
        let session = ancestry.sessions.iter().filter_map(|&session| self.by_session.get(&(session, knob))).flatten();
        let below_zero = knob == ThreadKnob::Nice && thread.nice < 0 && ancestry.unprivileged;
        let alone = below_zero || self.has_our_slice(thread);
        let any = self.by_session.iter().filter(|((_, of), _)| alone && *of == knob).flat_map(|(_, cells)| cells);
        family.chain(session).chain(any).find(fits).map(|cell| cell.baseline.clone())
    }

    fn has_our_slice(&self, thread: &ThreadSettings) -> bool {
        !ThreadKnob::Slice.is_default(thread.slice) && self.values.contains(&(ThreadKnob::Slice, thread.slice))
    }

    /// Whether a nice value can be of `nice`, which is run before the program is: all of its threads have it then.
    fn may_be_wish(&self, thread: &ThreadSettings, first: &ThreadSettings) -> bool {
        self.has_our_slice(thread) && thread.nice == first.nice && !ThreadKnob::Nice.is_default(thread.nice)
    }

    /// What was wished for by who has added to the nice value of the process that the slice was inherited from.
    fn wish(&self, world: &impl World, ancestry: &Ancestry, thread: &ThreadSettings) -> Option<Value> {
        for who in &ancestry.lineage[1..] {
            let first = world.threads(*who).ok()?.into_iter().next().filter(|first| first.slice == thread.slice);
            let Some(first) = first else { continue };
            let present = Value::Number(first.nice);
            let listed = self.by_process.get(&(*who, ThreadKnob::Nice));
            let baseline = match listed {
                Some(cells) => cells.iter().find(|cell| cell.put(&present)).and_then(|cell| cell.baseline.number()),
                None => (self.values.contains(&(ThreadKnob::Nice, first.nice)) || first.nice == 0).then_some(0),
            };
            if baseline.is_some() || listed.is_some() {
                let wish = |baseline: i64| baseline.saturating_add(thread.nice.saturating_sub(first.nice));
                return baseline.map(|baseline| Value::Number(wish(baseline).clamp(NICE_MIN, NICE_MAX)));
            }
        }
        None
    }
}

impl Ancestry {
    fn new(world: &impl World, who: Identity) -> Ancestry {
        let (lineage, sessions) = world.lineage(who).into_iter().unzip();
        Ancestry { lineage, sessions, unprivileged: world.is_unprivileged(who) }
    }
}
