// SPDX-License-Identifier: MIT OR Apache-2.0
//! All present changes, and the only path to make one: announced in the journal, then done.
//!
//! A *cell* remembers a place's original value (the baseline) and the applied one. A place is
//! restored only if it still has the applied value, so a value set by another program in between
//! stays. The journal holds the last two values of a place: after a kill between journal and change
//! the place still has the earlier one. The same is true while a request to systemd is unanswered:
//! the cell stays, since the change can come later.

use crate::inherit::Marks;
use crate::journal::{Cell, Contents, Journal, JournalLine, Log};
use crate::why::{Restored, SkipReason};
use crate::world::{KnobFault, KnobPlace, LATER_MS, LATER_TRIES_MAX, ThreadKnob, Value, World};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use tipme_policy::Identity;

/// Maximum number of simultaneously changed places.
pub(crate) const PLACES_MAX: usize = 16_384;
/// Maximum number of remembered session values, used to find inherited ones.
const TRACES_MAX: usize = 1_024;
/// Maximum number of searches, during a restore, for values inherited in the meantime.
const SEARCHES_MAX: usize = 4;

/// Journaled details of a change besides its values; see [`Cell`].
#[derive(Clone, Default, Debug)]
pub(crate) struct CellDetails {
    pub(crate) session: u32,
    pub(crate) return_to: Option<String>,
}

/// A planned change.
#[derive(Clone, Debug)]
pub(crate) struct LedgerStep {
    pub(crate) place: KnobPlace,
    pub(crate) to: Value,
    pub(crate) baseline: Value,
    /// Present value of the place.
    pub(crate) from: Value,
    pub(crate) details: CellDetails,
}

impl LedgerStep {
    /// Returns the first change of a place: its present value becomes the baseline.
    pub(crate) fn first(place: KnobPlace, to: Value, baseline: Value) -> LedgerStep {
        LedgerStep { place, to, from: baseline.clone(), baseline, details: CellDetails::default() }
    }

    /// Returns the creation of a group or scope with the group to which its processes return.
    pub(crate) fn create(place: KnobPlace, return_to: String) -> LedgerStep {
        let details = CellDetails { session: 0, return_to: Some(return_to) };
        LedgerStep { details, ..LedgerStep::first(place, 1.into(), 0.into()) }
    }

    /// Returns the removal of a group, scope or controller that was created or enabled here.
    pub(crate) fn remove(place: KnobPlace) -> LedgerStep {
        LedgerStep { from: 1.into(), ..LedgerStep::first(place, 0.into(), 0.into()) }
    }

    /// A pure restore favours no process, so it also applies to processes that may not be changed.
    fn only_takes_back(&self) -> bool {
        self.to == self.baseline
    }

    fn is_back(&self) -> bool {
        is_back(&self.place, &self.to, &self.baseline)
    }
}

/// Returns `true` if the place needs no cell once it has this value. A user's wish is remembered
/// for the lifetime of the process: the next look could not find its reference value.
fn is_back(place: &KnobPlace, to: &Value, baseline: &Value) -> bool {
    to == baseline && !is_wish(place, baseline)
}

fn is_wish(place: &KnobPlace, baseline: &Value) -> bool {
    matches!(place, KnobPlace::Thread { knob, .. } if knob.is_wish(baseline))
}

/// Result of committing steps.
#[derive(Default, Debug)]
pub(crate) struct Done {
    pub(crate) changed: usize,
    pub(crate) vanished: BTreeSet<Identity>,
    pub(crate) failed: Vec<(KnobPlace, SkipReason)>,
}

pub(crate) struct Ledger<W, L> {
    pub(crate) world: W,
    journal: Journal<L>,
    cells: BTreeMap<KnobPlace, Cell>,
    /// Cells restored since [`Ledger::begin`]: a child forked just before still has the value.
    recent: Vec<(KnobPlace, Cell)>,
}

impl<W: World, L: Log> Ledger<W, L> {
    /// Opens the journal and restores the leftovers of a dead predecessor.
    pub(crate) fn open(world: W, log: L) -> io::Result<(Ledger<W, L>, Restored)> {
        let (mut ledger, unreadable) = Ledger::read(world, log)?;
        let restored = ledger.restore();
        Ok((ledger, Restored { unreadable, ..restored }))
    }

    /// Restores the listed leftovers of a dead predecessor. Inherited values are left to
    /// [`Ledger::open`], which knows the admitted processes.
    pub(crate) fn take_back_listed(world: W, log: L) -> io::Result<Restored> {
        let (mut ledger, unreadable) = Ledger::read(world, log)?;
        ledger.world.begin_call();
        ledger.world.begin_restore();
        let mut restored = Restored { unreadable, ..Restored::default() };
        for place in
            ledger.in_order().into_iter().filter(|place| !matches!(place, KnobPlace::Trace { .. }))
        {
            ledger.take_back(place, &mut restored);
        }
        ledger.journal.compact(&ledger.cells)?;
        ledger.world.end_call();
        Ok(restored)
    }

    /// Reads the ledger from the journal; also returns the number of unreadable lines.
    fn read(world: W, log: L) -> io::Result<(Ledger<W, L>, usize)> {
        let (journal, Contents { cells, unreadable }) = Journal::open(log, world.boot())?;
        Ok((Ledger { world, journal, cells, recent: Vec::new() }, unreadable))
    }

    /// Starts a call: forgets the cells restored by the last one.
    pub(crate) fn begin(&mut self) {
        self.recent.clear();
        self.world.begin_call();
    }

    /// Ends a call.
    pub(crate) fn finish(&mut self) {
        self.world.end_call();
    }

    pub(crate) fn cell(&self, place: &KnobPlace) -> Option<&Cell> {
        self.cells.get(place)
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (&KnobPlace, &Cell)> {
        self.cells.iter()
    }

    pub(crate) fn knows(&self, place: &KnobPlace) -> bool {
        self.cells.contains_key(place)
    }

    /// Returns the changed places that match.
    pub(crate) fn places(&self, matches: impl Fn(&KnobPlace) -> bool) -> Vec<KnobPlace> {
        self.cells.keys().filter(|place| matches(place)).cloned().collect()
    }

    /// Returns the changed thread knobs of a process.
    pub(crate) fn threads_of(
        &self,
        process: Identity,
    ) -> impl Iterator<Item = (&KnobPlace, &Cell)> {
        let [first, last] = [(0, ThreadKnob::Nice), (u64::MAX, ThreadKnob::Io)]
            .map(|(start, knob)| KnobPlace::Thread { process, tid: start as u32, start, knob });
        self.cells.range(first..=last)
    }

    /// Returns values that children or threads forked since may have inherited.
    pub(crate) fn marks(&self) -> Marks {
        Marks::new(self.cells.iter().chain(self.recent.iter().map(|(place, cell)| (place, cell))))
    }

    /// Announces the steps in the journal, then performs them one by one.
    pub(crate) fn commit(&mut self, steps: Vec<LedgerStep>) -> Done {
        let mut done = Done::default();
        let mut gate = AccessGate::default();
        let announced = self.announce(steps, &mut done);
        let mut cleared = Vec::new();
        for (step, cell) in announced {
            let allowed =
                if step.only_takes_back() { Ok(()) } else { gate.admit(&self.world, &step.place) };
            self.perform(step.place, cell, allowed, &mut cleared, &mut done);
        }
        self.clear(cleared);
        done
    }

    /// Forgets places that are gone, or that other programs have changed.
    pub(crate) fn abandon(&mut self, places: impl IntoIterator<Item = KnobPlace>) {
        let places: Vec<KnobPlace> =
            places.into_iter().filter(|place| self.cells.remove(place).is_some()).collect();
        self.clear(places);
    }

    /// Restores everything. Places refused by the kernel stay in the journal.
    pub(crate) fn restore(&mut self) -> Restored {
        self.world.begin_call();
        self.world.begin_restore();
        let mut restored = Restored::default();
        let marks = self.marks();
        // Before the restore, while the reference values of the wishes still exist.
        let wishes = self.wishes(&marks);
        restored.restored += self.commit(wishes).changed;
        let own: BTreeSet<KnobPlace> = self.cells.keys().cloned().collect();
        for place in self.in_order() {
            self.take_back(place, &mut restored);
        }
        for _ in 0..SEARCHES_MAX {
            if self.take_back_inherited(&marks, &own, &mut restored) == 0 {
                break;
            }
        }
        // If this fails, the next start finds every place at its baseline already.
        self.journal.compact(&self.cells).ok();
        self.world.end_call();
        restored
    }

    /// Returns all places in restore order.
    fn in_order(&self) -> Vec<KnobPlace> {
        let mut places: Vec<KnobPlace> = self.cells.keys().cloned().collect();
        places.sort_by_key(KnobPlace::phase);
        places
    }

    fn announce(&mut self, steps: Vec<LedgerStep>, done: &mut Done) -> Vec<(LedgerStep, Cell)> {
        let mut gate = AccessGate::default();
        let mut room = PLACES_MAX.saturating_sub(self.cells.len());
        let mut announced = Vec::new();
        for step in steps {
            match self.check(&step, &mut gate, &mut room) {
                Err(why) => done.failed.push((step.place, why)),
                Ok(()) => announced.push((self.next_cell(&step), step)),
            }
        }
        // Processes leave groups before others enter; thread steps have an order of their own.
        announced.sort_by_key(|(_, step)| {
            matches!(step.place, KnobPlace::Thread { .. }) || !step.is_back()
        });
        let traces = self.new_traces(&announced);
        let forth = announced
            .iter()
            .filter(|(_, step)| !step.is_back())
            .map(|(cell, step)| (&step.place, cell));
        let entries: Vec<JournalLine> = forth
            .chain(&traces)
            .map(|(place, cell)| JournalLine::Change { place: place.clone(), cell: cell.clone() })
            .collect();
        match self.journal.append(&entries) {
            Ok(()) => self.cells.extend(traces),
            Err(error) => {
                let why = SkipReason::Journal(error.to_string());
                let forth = announced.extract_if(.., |(_, step)| !step.is_back());
                done.failed.extend(forth.map(|(_, step)| (step.place, why.clone())));
            }
        }
        announced.into_iter().map(|(cell, step)| (step, cell)).collect()
    }

    /// Returns the missing traces of the steps.
    fn new_traces(&mut self, steps: &[(Cell, LedgerStep)]) -> BTreeMap<KnobPlace, Cell> {
        let mut traces = BTreeMap::new();
        for (cell, step) in steps.iter().filter(|(_, step)| step.to != step.baseline) {
            if let (&KnobPlace::Thread { knob, .. }, &Value::Number(value)) =
                (&step.place, &step.to)
            {
                let place = KnobPlace::Trace { session: cell.session, knob, value };
                let cell = Cell { since: self.world.ticks(), before: None, ..cell.clone() };
                traces.insert(place, cell);
            }
        }
        traces.retain(|place, _| !self.knows(place));
        if !traces.is_empty() && self.traces() + traces.len() > TRACES_MAX {
            self.forget_dead_sessions();
        }
        let room = TRACES_MAX.saturating_sub(self.traces());
        traces.into_iter().take(room).collect()
    }

    fn traces(&self) -> usize {
        self.cells.keys().filter(|place| matches!(place, KnobPlace::Trace { .. })).count()
    }

    /// Drops traces of ended sessions to make room; leftovers of those sessions then look like
    /// values set by the user.
    fn forget_dead_sessions(&mut self) {
        let world = &self.world;
        let live: BTreeSet<u32> =
            world.all().into_iter().filter_map(|who| world.session(who)).collect();
        self.abandon(self.places(
            |place| matches!(place, KnobPlace::Trace { session, .. } if !live.contains(session)),
        ));
    }

    fn check(
        &self,
        step: &LedgerStep,
        gate: &mut AccessGate,
        room: &mut usize,
    ) -> Result<(), SkipReason> {
        if step.is_back() {
            return Ok(());
        }
        if !step.only_takes_back() {
            gate.admit(&self.world, &step.place)?;
        }
        if self.knows(&step.place) {
            return Ok(());
        }
        if !self.world.reversible(&step.place, &step.baseline) {
            return Err(SkipReason::Irreversible);
        }
        *room = room.checked_sub(1).ok_or(SkipReason::TooMany("simultaneous changes"))?;
        Ok(())
    }

    fn next_cell(&self, step: &LedgerStep) -> Cell {
        let old = self.cells.get(&step.place);
        Cell {
            baseline: step.baseline.clone(),
            applied: step.to.clone(),
            before: (step.from != step.baseline).then(|| step.from.clone()),
            since: old.map_or_else(|| self.world.ticks(), |cell| cell.since),
            session: step.details.session,
            return_to: step.details.return_to.clone(),
            done: false,
        }
    }

    fn perform(
        &mut self,
        place: KnobPlace,
        cell: Cell,
        allowed: Result<(), SkipReason>,
        cleared: &mut Vec<KnobPlace>,
        done: &mut Done,
    ) {
        let back = is_back(&place, &cell.applied, &cell.baseline);
        let outcome = allowed.and_then(|()| match self.world.set(&place, &cell.applied) {
            Ok(()) => Ok(true),
            Err(KnobFault::Vanished) => Ok(false),
            Err(KnobFault::Later) => Err(SkipReason::Later),
            Err(KnobFault::Refused(code)) => Err(SkipReason::Refused(code)),
        });
        match outcome {
            Ok(true) if !back => {
                done.changed += 1;
                self.cells.insert(place, Cell { done: true, ..cell });
                return;
            }
            Ok(true) => {
                done.changed += 1;
                let old = self.cells.remove(&place);
                self.recent.extend(old.map(|cell| (place.clone(), cell)));
            }
            Ok(false) => {
                done.vanished.extend(place.process());
                self.cells.remove(&place);
            }
            Err(why) => {
                if why == SkipReason::Refused(libc::ETIMEDOUT)
                    && matches!(place, KnobPlace::Unit { .. } | KnobPlace::Scope { .. })
                {
                    self.cells.insert(place.clone(), cell.undecided());
                }
                done.failed.push((place.clone(), why));
            }
        }
        // An older cell stays after a failure: the journal holds both of its values.
        if !self.knows(&place) {
            cleared.push(place);
        }
    }

    /// If a `clear` entry is missing, the only cost is one check of that place at the next start.
    fn clear(&mut self, places: Vec<KnobPlace>) {
        let entries: Vec<JournalLine> =
            places.into_iter().map(|place| JournalLine::Clear { place }).collect();
        self.journal.append(&entries).ok();
        if self.journal.is_long() {
            self.journal.compact(&self.cells).ok();
        }
    }

    fn take_back(&mut self, place: KnobPlace, restored: &mut Restored) {
        let Some(cell) = self.cells.get(&place).cloned() else { return };
        if matches!(place, KnobPlace::Trace { .. }) {
            self.cells.remove(&place);
            return;
        }
        // Wait for a late scope before searching it for processes.
        let found = retried(|| self.world.get(&place));
        if let (Some((path, root)), Some(return_to)) = (place.group_folder(), &cell.return_to) {
            self.evacuate(path, root, return_to);
        }
        let outcome = match found {
            Ok(_) if self.is_stranded(&place, &cell) => Err(KnobFault::Vanished),
            Ok(present) if present == cell.baseline => Ok(&mut restored.unchanged),
            Ok(present) if !cell.has_applied(&present) => Ok(&mut restored.changed_by_others),
            Ok(_) => {
                retried(|| self.world.set(&place, &cell.baseline)).map(|()| &mut restored.restored)
            }
            Err(fault) => Err(fault),
        };
        let count = match outcome {
            Ok(count) => count,
            Err(KnobFault::Vanished) => &mut restored.vanished,
            Err(_) => {
                restored.failed += 1;
                return;
            }
        };
        *count += 1;
        self.cells.remove(&place);
    }

    /// Returns `true` for a scope without a group for its processes to return to: it is theirs from
    /// now on, and ends with them.
    fn is_stranded(&self, place: &KnobPlace, cell: &Cell) -> bool {
        let KnobPlace::Scope { folder, root, .. } = place else { return false };
        let origin = KnobPlace::Group {
            path: cell.return_to.clone().unwrap_or_default(),
            root: root.clone(),
        };
        self.world.get(&origin) != Ok(1.into()) && !self.world.members(folder).is_empty()
    }

    /// Moves unlisted processes, which were forked in the group, out of it.
    pub(crate) fn evacuate(&mut self, group: &str, root: &str, return_to: &str) {
        for _ in 0..SEARCHES_MAX {
            let members = self.world.members(group);
            if members.is_empty() {
                return;
            }
            for process in members {
                let place = KnobPlace::Member { process, root: root.to_owned() };
                let return_to =
                    Value::Text(self.origin(process, root).unwrap_or_else(|| return_to.to_owned()));
                // A process that cannot leave keeps the group, which is then reported as not
                // removed.
                self.world.set(&place, &return_to).ok();
            }
        }
    }

    /// Returns the original group of a process, or of its nearest moved ancestor.
    pub(crate) fn origin(&self, process: Identity, root: &str) -> Option<String> {
        self.own_origin(process, root).or_else(|| {
            let lineage = self.world.lineage(process);
            lineage.into_iter().find_map(|(above, _)| self.own_origin(above, root))
        })
    }

    fn own_origin(&self, process: Identity, root: &str) -> Option<String> {
        match &self.cells.get(&KnobPlace::Member { process, root: root.to_owned() })?.baseline {
            Value::Text(group) => Some(group.clone()),
            Value::Number(_) => None,
        }
    }

    /// Returns the steps that grant unlisted processes the wish that they added to an inherited
    /// value.
    fn wishes(&self, marks: &Marks) -> Vec<LedgerStep> {
        let mut steps = Vec::new();
        for who in self.heirs(marks) {
            let found = marks.inherited(&self.world, who, |place| self.knows(place));
            if found.iter().any(|(place, baseline)| is_wish(place, baseline)) {
                steps.extend(found.into_iter().filter_map(|(place, baseline)| {
                    let from = self.world.get(&place).ok()?;
                    Some(LedgerStep {
                        from,
                        ..LedgerStep::first(place, baseline.clone(), baseline)
                    })
                }));
            }
        }
        steps
    }

    /// Returns processes that may have inherited a value: an old process has young threads only if
    /// it or its session was changed.
    fn heirs(&self, marks: &Marks) -> Vec<Identity> {
        let Some(first) = marks.first() else { return Vec::new() };
        let mut all = self.world.all();
        all.retain(|who| {
            who.start >= first
                || self.world.session(*who).is_some_and(|session| marks.knows_session(session))
        });
        all
    }

    /// Restores inherited values of unlisted children and threads; returns their number.
    fn take_back_inherited(
        &mut self,
        marks: &Marks,
        own: &BTreeSet<KnobPlace>,
        restored: &mut Restored,
    ) -> usize {
        let mut found = 0;
        for who in self.heirs(marks) {
            for (place, baseline) in marks.inherited(&self.world, who, |place| own.contains(place))
            {
                if self.world.set(&place, &baseline).is_ok() {
                    restored.restored += 1;
                    found += 1;
                }
            }
        }
        found
    }
}

/// Retries while the kernel or systemd defers the work.
fn retried<T>(mut work: impl FnMut() -> Result<T, KnobFault>) -> Result<T, KnobFault> {
    for _ in 0..LATER_TRIES_MAX {
        match work() {
            Err(KnobFault::Later) => std::thread::sleep(std::time::Duration::from_millis(LATER_MS)),
            outcome => return outcome,
        }
    }
    work()
}

/// Caches the admission for consecutive places of a process.
#[derive(Default)]
struct AccessGate {
    last: Option<(Identity, Result<(), SkipReason>)>,
}

impl AccessGate {
    fn admit(&mut self, world: &impl World, place: &KnobPlace) -> Result<(), SkipReason> {
        let Some(process) = place.process() else { return world.admit(place) };
        if self.last.as_ref().is_none_or(|(last, _)| *last != process) {
            self.last = Some((process, world.admit(place)));
        }
        self.last.as_ref().map_or(Ok(()), |(_, answer)| answer.clone())
    }
}

#[cfg(test)]
mod tests;
