// SPDX-License-Identifier: MIT OR Apache-2.0
//! An in-memory machine that can crash before any step, and engines that run on it.

mod log;

use crate::engine::Engine;
use crate::ledger::Ledger;
use crate::placements::Units;
use crate::subtree::Subtree;
use crate::units_names::Property;
use crate::why::{Applied, Restored, SkipReason};
use crate::world::{
    Advice, Autogroup, KnobFault, KnobPlace, Stock, ThreadKnob, ThreadSettings, Value, World,
};
pub(crate) use log::{CrashPoint, MemoryLog};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use tipme_policy::{
    Action, Assignment, Backend, Identity, Member, Membership, Reason, Role, SetId, Strength,
};

/// Mount point of the cgroup hierarchy.
pub(crate) const ROOT: &str = "/cg";
/// The delegated group.
pub(crate) const DIR: &str = "/cg/user";
/// Total memory in bytes.
pub(crate) const TOTAL: u64 = 32 << 20;
/// Units: a login, a program, and a service with several processes.
pub(crate) const LOGIN: &str = "/cg/user.slice/user-1000.slice/session-2.scope";
pub(crate) const APP: &str =
    "/cg/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope";
pub(crate) const SERVICE: &str = "/cg/system.slice/display.service";

/// Files of the controllers in each group, with the kernel's defaults.
const FILES: [(&str, i64); 5] = [
    ("cpu.weight", 100),
    ("io.weight", 100),
    ("memory.low", 0),
    ("memory.high", -1),
    ("memory.current", 5 << 20),
];

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Process {
    pub(crate) parent: u32,
    pub(crate) session: u32,
    pub(crate) uid: u32,
    pub(crate) group: String,
    /// Nice value, slice, policy and I/O priority by thread id and start time.
    pub(crate) threads: BTreeMap<(u32, u64), [i64; 4]>,
}

/// All changeable state.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct FakeState {
    pub(crate) processes: BTreeMap<Identity, Process>,
    pub(crate) autogroups: BTreeMap<u32, i64>,
    /// Files by group.
    pub(crate) groups: BTreeMap<String, BTreeMap<String, i64>>,
    pub(crate) controllers: BTreeSet<(String, String)>,
    /// Explicitly set properties of units.
    pub(crate) units: BTreeMap<(String, Property), i64>,
}

/// A machine shared by successive runs of the program.
#[derive(Clone, Default)]
pub(crate) struct FakeMachine {
    pub(crate) state: Rc<RefCell<FakeState>>,
    pub(crate) clock: Rc<Cell<u64>>,
    pub(crate) crash_point: CrashPoint,
    /// Restricts changes to processes of this user.
    pub(crate) owner: Option<u32>,
    /// Number of thread listings.
    pub(crate) looks: Rc<Cell<usize>>,
    /// Makes all processes count as just forked.
    pub(crate) young: Rc<Cell<bool>>,
    /// Forks a child of this process, with this PID, just before the next change.
    pub(crate) fork_before_change: Rc<Cell<Option<(Identity, u32)>>>,
    /// Makes systemd unresponsive.
    pub(crate) mute: Rc<Cell<bool>>,
    /// Blocks requests to systemd until the restore.
    pub(crate) closed: Rc<Cell<bool>>,
    /// Delays requests for units and scopes until [`FakeMachine::land`] is called.
    pub(crate) slow: Rc<Cell<bool>>,
    pub(crate) late: Rc<RefCell<Vec<(KnobPlace, Value)>>>,
    /// Resident size of processes in bytes.
    pub(crate) resident: Rc<RefCell<BTreeMap<Identity, u64>>>,
    /// File pages of each group in bytes, free swap, and memory pressure of each group in percent.
    pub(crate) file_bytes: Rc<Cell<u64>>,
    pub(crate) swap: Rc<Cell<u64>>,
    pub(crate) full_percent: Rc<Cell<f32>>,
}

impl FakeMachine {
    /// Creates a machine with a delegated group and no process.
    pub(crate) fn new() -> FakeMachine {
        let mut state = FakeState::default();
        let low = BTreeMap::from([("memory.low".to_owned(), 0)]);
        state.groups.extend([ROOT, DIR].map(|path| (path.to_owned(), low.clone())));
        state.groups.extend([LOGIN, APP, SERVICE].map(|path| (path.to_owned(), BTreeMap::new())));
        let machine = FakeMachine { state: Rc::new(RefCell::new(state)), ..FakeMachine::default() };
        machine.clock.set(100);
        machine
    }

    pub(crate) fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Forks a process; a child inherits everything that the kernel passes on.
    pub(crate) fn fork(&self, pid: u32, parent: Option<Identity>, own_session: bool) -> Identity {
        let who = Identity { pid, start: self.tick() };
        let mut state = self.state.borrow_mut();
        let mut process = match parent.and_then(|parent| state.processes.get(&parent).cloned()) {
            Some(process) => Process { parent: parent.map_or(0, |parent| parent.pid), ..process },
            None => {
                let (threads, group) = (BTreeMap::from([((0, 0), [0; 4])]), DIR.to_owned());
                Process { parent: 1, session: pid, uid: 1000, group, threads }
            }
        };
        if own_session {
            process.session = pid;
        }
        let values = process.threads.values().next().copied().unwrap_or_default();
        process.threads = BTreeMap::from([((pid, who.start), values)]);
        state.autogroups.entry(process.session).or_insert(0);
        state.processes.insert(who, process);
        who
    }

    /// Adds a thread with the values of the first one.
    pub(crate) fn spawn(&self, who: Identity, tid: u32) {
        let start = self.tick();
        if let Some(process) = self.state.borrow_mut().processes.get_mut(&who) {
            let values = process.threads[&(who.pid, who.start)];
            process.threads.insert((tid, start), values);
        }
    }

    pub(crate) fn exit(&self, who: Identity) {
        let mut state = self.state.borrow_mut();
        state.processes.remove(&who);
        state
            .processes
            .values_mut()
            .filter(|process| process.parent == who.pid)
            .for_each(|child| child.parent = 1);
        let FakeState { processes, autogroups, .. } = &mut *state;
        autogroups
            .retain(|session, _| processes.values().any(|process| process.session == *session));
        state.reap();
    }

    /// Executes the delayed requests.
    pub(crate) fn land(&self) {
        for (place, value) in self.late.take() {
            self.state.borrow_mut().set(&place, &value).ok();
        }
    }

    pub(crate) fn group(&self, who: Identity) -> String {
        self.state.borrow().processes[&who].group.clone()
    }

    /// Returns nice value, slice, policy and I/O priority of the first thread.
    pub(crate) fn values(&self, who: Identity) -> [i64; 4] {
        self.state.borrow().processes[&who].threads[&(who.pid, who.start)]
    }

    /// Moves a process, without the checks of the kernel.
    pub(crate) fn put_into(&self, who: Identity, group: &str) {
        self.state.borrow_mut().processes.get_mut(&who).expect("it lives").group = group.to_owned();
    }

    fn is_late(&self, place: &KnobPlace) -> bool {
        matches!(place, KnobPlace::Scope { .. })
            && self.late.borrow().iter().any(|(late, _)| late == place)
    }

    pub(crate) fn renice(&self, who: Identity, nice: i64) {
        if let Some(process) = self.state.borrow_mut().processes.get_mut(&who) {
            process.threads.values_mut().for_each(|values| values[0] = nice);
        }
    }
}

/// Returns an engine with an empty journal, the delegated group and the units.
pub(crate) fn engine(machine: &FakeMachine, backend: Backend) -> Engine<FakeMachine, MemoryLog> {
    open_engine(machine, MemoryLog::default(), backend).0
}

pub(crate) fn open_engine(
    machine: &FakeMachine,
    log: MemoryLog,
    backend: Backend,
) -> (Engine<FakeMachine, MemoryLog>, Restored) {
    let (ledger, restored) = Ledger::open(machine.clone(), log).expect("memory is not a file");
    let mut engine = Engine::new(ledger, backend, Strength::Normal);
    engine.subtree = Some(Subtree::new(DIR.to_owned(), ROOT.to_owned()));
    engine.units = Some(Units::new(ROOT.to_owned()));
    (engine, restored)
}

/// Assigns the role to a set of processes.
pub(crate) fn assign(set: Identity, role: Role, members: &[Identity]) -> Action {
    let members = members.iter().map(|who| Member { who: *who, because: Membership::Child });
    Action::Assign(Assignment {
        set: SetId(set),
        role,
        reason: Reason::NoAttention,
        faded: 0.0,
        members: members.collect(),
    })
}

/// Asserts that some change was skipped for this reason.
pub(crate) fn assert_skipped(applied: &Applied, why: &SkipReason) {
    assert!(applied.skipped.iter().any(|skipped| skipped.why == *why), "{applied:?}");
}

fn missing<T>(value: Option<T>) -> Result<T, KnobFault> {
    value.ok_or(KnobFault::Vanished)
}

impl FakeState {
    fn get(&self, place: &KnobPlace) -> Result<Value, KnobFault> {
        match place {
            KnobPlace::Thread { process, tid, start, knob } => {
                let threads = &missing(self.processes.get(process))?.threads;
                Ok(missing(threads.get(&(*tid, *start)))?[*knob as usize].into())
            }
            KnobPlace::Trace { value, .. } => Ok((*value).into()),
            KnobPlace::Autogroup { session, .. } => {
                missing(self.processes.values().find(|process| process.session == *session))?;
                missing(self.autogroups.get(session)).map(|nice| (*nice).into())
            }
            KnobPlace::File { path } => {
                let (group, name) = missing(path.rsplit_once('/'))?;
                missing(self.groups.get(group).and_then(|files| files.get(name)))
                    .map(|number| (*number).into())
            }
            KnobPlace::Controller { group, name } => {
                Ok(i64::from(self.controllers.contains(&(group.clone(), name.clone()))).into())
            }
            KnobPlace::Member { process, .. } => {
                Ok(Value::Text(missing(self.processes.get(process))?.group.clone()))
            }
            KnobPlace::Group { path, .. } | KnobPlace::Scope { folder: path, .. } => {
                Ok(i64::from(self.groups.contains_key(path)).into())
            }
            KnobPlace::Unit { folder, property } => {
                missing(self.groups.keys().find(|group| group.starts_with(folder)))?;
                let plain = if *property == Property::MemoryLow { 0 } else { -1 };
                Ok(self.units.get(&(folder.clone(), *property)).copied().unwrap_or(plain).into())
            }
        }
    }

    fn set(&mut self, place: &KnobPlace, value: &Value) -> Result<(), KnobFault> {
        match (place, value) {
            (KnobPlace::Thread { process, tid, start, knob }, Value::Number(number)) => {
                let threads = &mut missing(self.processes.get_mut(process))?.threads;
                missing(threads.get_mut(&(*tid, *start)))?[*knob as usize] = *number;
            }
            (KnobPlace::Autogroup { session, .. }, Value::Number(nice)) => {
                self.get(place)?;
                self.autogroups.insert(*session, *nice);
            }
            (KnobPlace::File { path }, Value::Number(number)) => {
                self.get(place)?;
                let (group, name) = missing(path.rsplit_once('/'))?;
                missing(self.groups.get_mut(group))?.insert(name.to_owned(), *number);
            }
            (KnobPlace::Controller { group, name }, Value::Number(on)) => {
                return self.control(group, name, *on == 1);
            }
            (KnobPlace::Member { process, .. }, Value::Text(group)) => {
                return self.enter(*process, group);
            }
            (KnobPlace::Group { path, .. }, Value::Number(1)) => {
                let files = FILES.into_iter().filter(|(file, _)| {
                    self.controllers.iter().any(|(of, name)| is_file_of(path, of, name, file))
                });
                let files = files.map(|(file, number)| (file.to_owned(), number)).collect();
                self.groups.entry(path.clone()).or_insert(files);
            }
            (KnobPlace::Group { path, .. }, _) => {
                if self.processes.values().any(|process| process.group == *path) {
                    return Err(KnobFault::Refused(libc::EBUSY));
                }
                self.groups.remove(path);
            }
            (KnobPlace::Unit { folder, property }, Value::Number(number)) => {
                self.get(place)?;
                self.units.insert((folder.clone(), *property), *number);
                self.units.retain(|(_, property), number| {
                    *number != if *property == Property::MemoryLow { 0 } else { -1 }
                });
            }
            (KnobPlace::Scope { folder, first, .. }, Value::Number(1)) => {
                self.groups.entry(folder.clone()).or_default();
                return self.enter(*first, folder);
            }
            (KnobPlace::Scope { folder, .. }, _) => {
                if self.processes.values().any(|process| process.group == *folder) {
                    return Err(KnobFault::Refused(libc::EBUSY));
                }
            }
            _ => return Err(KnobFault::Refused(libc::EINVAL)),
        }
        Ok(())
    }

    /// Removes empty scopes together with their properties, as systemd does.
    pub(crate) fn reap(&mut self) {
        let used: BTreeSet<&str> =
            self.processes.values().map(|process| process.group.as_str()).collect();
        self.groups.retain(|group, _| !is_ours(group) || used.contains(group.as_str()));
        self.units.retain(|(group, _), _| !is_ours(group) || used.contains(group.as_str()));
    }

    /// Switches a controller. As in the kernel, a group with processes of its own cannot enable
    /// controllers for its children.
    fn control(&mut self, group: &str, name: &str, on: bool) -> Result<(), KnobFault> {
        let key = (group.to_owned(), name.to_owned());
        if on && self.processes.values().any(|process| process.group == group) {
            return Err(KnobFault::Refused(libc::EBUSY));
        }
        for (path, files) in &mut self.groups {
            let of_it = FILES.into_iter().filter(|(file, _)| is_file_of(path, group, name, file));
            for (file, number) in of_it {
                if on {
                    files.entry(file.to_owned()).or_insert(number);
                } else {
                    files.remove(file);
                }
            }
        }
        if on {
            self.controllers.insert(key)
        } else {
            self.controllers.remove(&key)
        };
        Ok(())
    }

    fn enter(&mut self, process: Identity, group: &str) -> Result<(), KnobFault> {
        if !self.groups.contains_key(group) {
            return Err(KnobFault::Refused(libc::ENOENT));
        }
        if self.controllers.iter().any(|(of, _)| of == group) {
            return Err(KnobFault::Refused(libc::EBUSY));
        }
        missing(self.processes.get_mut(&process))?.group = group.to_owned();
        Ok(())
    }
}

/// Returns `true` for a file in the group `path` of a controller that the group `of` enables for
/// its children.
fn is_file_of(path: &str, of: &str, controller: &str, file: &str) -> bool {
    let is_child = path.rsplit_once('/').is_some_and(|(above, _)| above == of);
    is_child && file.split('.').next() == Some(controller)
}

/// Returns `true` for a scope started by the engine.
fn is_ours(group: &str) -> bool {
    group
        .rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with("tipme-") && name.ends_with(".scope"))
}

impl World for FakeMachine {
    fn begin_call(&mut self) {}

    fn begin_restore(&mut self) {
        self.closed.set(false);
    }

    fn end_call(&mut self) {}

    fn get(&self, place: &KnobPlace) -> Result<Value, KnobFault> {
        if self.mute.get() && matches!(place, KnobPlace::Unit { .. }) {
            return Err(KnobFault::Refused(libc::ETIMEDOUT));
        }
        if self.closed.get() && matches!(place, KnobPlace::Unit { .. }) {
            return Err(KnobFault::Refused(libc::ENOTCONN));
        }
        self.state.borrow().get(place)
    }

    fn set(&mut self, place: &KnobPlace, value: &Value) -> Result<(), KnobFault> {
        if !self.crash_point.burn() {
            return Err(KnobFault::Refused(libc::EINTR));
        }
        if self.is_late(place) {
            return Err(KnobFault::Refused(libc::EINPROGRESS));
        }
        if self.slow.get() && matches!(place, KnobPlace::Unit { .. } | KnobPlace::Scope { .. }) {
            self.late.borrow_mut().push((place.clone(), value.clone()));
            return Err(KnobFault::Refused(libc::ETIMEDOUT));
        }
        if let Some((parent, pid)) = self.fork_before_change.take() {
            self.fork(pid, Some(parent), false);
        }
        let outcome = self.state.borrow_mut().set(place, value);
        self.state.borrow_mut().reap();
        outcome
    }

    fn admit(&self, place: &KnobPlace) -> Result<(), SkipReason> {
        let state = self.state.borrow();
        let uid =
            place.process().and_then(|who| state.processes.get(&who)).map(|process| process.uid);
        match (uid, self.owner) {
            (Some(uid), Some(owner)) if uid != owner => Err(SkipReason::NotOwner(uid)),
            _ => Ok(()),
        }
    }

    fn reversible(&self, _: &KnobPlace, _: &Value) -> bool {
        true
    }

    fn is_young(&self, _: Identity) -> bool {
        self.young.get()
    }

    fn has_slices(&self) -> bool {
        true
    }

    fn threads(&self, process: Identity) -> Result<Vec<ThreadSettings>, KnobFault> {
        self.looks.set(self.looks.get() + 1);
        let state = self.state.borrow();
        let found = missing(state.processes.get(&process))?;
        let mut threads = Vec::new();
        for (&(tid, start), &[nice, slice, scheduling, io]) in &found.threads {
            let session = found.session;
            threads.push(ThreadSettings { tid, start, session, nice, slice, scheduling, io });
        }
        threads.sort_by_key(|thread| thread.tid != process.pid);
        Ok(threads)
    }

    fn session(&self, process: Identity) -> Option<u32> {
        self.state.borrow().processes.get(&process).map(|process| process.session)
    }

    fn autogroup(&self, process: Identity) -> Option<Autogroup> {
        self.session(process).map(|session| Autogroup { number: session.into(), session })
    }

    fn is_unprivileged(&self, process: Identity) -> bool {
        self.state.borrow().processes.get(&process).is_some_and(|process| process.uid != 0)
    }

    fn lineage(&self, process: Identity) -> Vec<(Identity, u32)> {
        let state = self.state.borrow();
        let mut line = Vec::new();
        let mut next = state.processes.get_key_value(&process);
        while let Some((who, process)) = next {
            line.push((*who, process.session));
            next = state.processes.iter().find(|(who, _)| who.pid == process.parent);
        }
        line
    }

    fn below(&self, process: Identity, leads: &dyn Fn(Identity) -> bool) -> Vec<Identity> {
        let mut all = self.all();
        all.retain(|who| {
            let line: Vec<Identity> = self.lineage(*who).into_iter().map(|(who, _)| who).collect();
            let distance = line.iter().position(|above| *above == process);
            distance.is_some_and(|distance| {
                distance > 0 && !line[..distance].iter().any(|above| leads(*above))
            })
        });
        all
    }

    fn last_pid(&self) -> Option<u64> {
        Some(self.clock.get())
    }

    fn all(&self) -> Vec<Identity> {
        self.state.borrow().processes.keys().copied().collect()
    }

    fn members(&self, group: &str) -> Vec<Identity> {
        let mut all = self.all();
        all.retain(|who| self.group(*who) == group);
        all
    }

    fn tree(&self, group: &str) -> Vec<Identity> {
        let mut all = self.all();
        all.retain(|who| Path::new(&self.group(*who)).starts_with(group));
        all
    }

    fn reclaim(&mut self, _: &str, _: u64) -> Result<(), KnobFault> {
        Ok(())
    }

    fn resident(&self, process: Identity) -> u64 {
        self.resident.borrow().get(&process).copied().unwrap_or(0)
    }

    fn memory(&self) -> Stock {
        Stock { total: TOTAL, swap: self.swap.get() }
    }

    fn file_bytes(&self, _: &str) -> u64 {
        self.file_bytes.get()
    }

    fn full_percent(&self, _: &str) -> f32 {
        self.full_percent.get()
    }

    fn advise(&mut self, _: Identity, _: Advice, _: u64) -> Result<u64, KnobFault> {
        Ok(0)
    }

    fn ticks(&self) -> u64 {
        self.clock.get()
    }

    fn boot(&self) -> u64 {
        9
    }
}

/// Some code uses [`ThreadKnob`] as an array index.
const _: () = assert!(ThreadKnob::Nice as usize == 0 && ThreadKnob::Io as usize == 3);
