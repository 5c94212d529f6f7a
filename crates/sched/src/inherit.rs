// SPDX-License-Identifier: MIT OR Apache-2.0
//! What children and threads inherit, so that taking back reaches them too.
//!
//! The kernel hands nice value, slice, policy and I/O priority on to every child and thread. Such a value is
//! nobody's wish. It is told from one that the user has set by all of: it is a value that was put
//! into a process here; the thread that has it was forked after that; and the thread that has it descends from that
//! process, or it or one above it shares its session, or it could not have got a negative nice value by itself. A
//! child that leaves its session and loses its parent, and whose value the user could have set, is taken for the
//! user's own.
//!
//! The process that a value came from may be gone, or have another value since. So each value that is put
//! into a session leaves a *trace* in the ledger and the journal, until everything is taken back.

use crate::journal::Cell;
use crate::world::{KnobPlace, ThreadKnob, ThreadSettings, Value, World};
use std::collections::{BTreeMap, BTreeSet};
use tipme_policy::Identity;

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

    /// The thread knobs of a process that are inherited, with their baselines.
    pub(crate) fn inherited(&self, world: &impl World, who: Identity) -> Vec<(KnobPlace, Value)> {
        let threads = world.threads(who).unwrap_or_default();
        let found = self.inherited_by(world, who, &threads, |_| false).into_iter();
        found.map(|((index, knob), baseline)| (threads[index].place(who, knob), baseline)).collect()
    }

    /// The same for threads that were listed already, by their index and knob, but for places that are known.
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
            for knob in ThreadKnob::ALL {
                let put = self.values.contains(&(knob, thread.value(knob)));
                let born_since = self.first.is_some_and(|first| thread.start >= first);
                if !put || !born_since || is_known(&thread.place(who, knob)) {
                    continue;
                }
                let ancestry = ancestry.get_or_insert_with(|| Ancestry::new(world, who));
                found.extend(self.baseline(ancestry, thread, knob).map(|baseline| ((index, knob), baseline)));
            }
        }
        found
    }

    fn baseline(&self, ancestry: &Ancestry, thread: &ThreadSettings, knob: ThreadKnob) -> Option<Value> {
        let value = Value::Number(thread.value(knob));
        let fits = |cell: &&Cell| cell.since <= thread.start && cell.put(&value);
        let family = ancestry.lineage.iter().filter_map(|&who| self.by_process.get(&(who, knob))).flatten();
        let session = ancestry.sessions.iter().filter_map(|&session| self.by_session.get(&(session, knob))).flatten();
        let alone = knob == ThreadKnob::Nice && thread.nice < 0 && ancestry.unprivileged;
        let any = self.by_session.iter().filter(|((_, of), _)| alone && *of == knob).flat_map(|(_, cells)| cells);
        family.chain(session).chain(any).find(fits).map(|cell| cell.baseline.clone())
    }
}

impl Ancestry {
    fn new(world: &impl World, who: Identity) -> Ancestry {
        let (lineage, sessions) = world.lineage(who).into_iter().unzip();
        Ancestry { lineage, sessions, unprivileged: world.is_unprivileged(who) }
    }
}
