// SPDX-License-Identifier: MIT OR Apache-2.0
//! An in-memory machine that can crash before any step, and an in-memory journal.

use crate::journal::Log;
use crate::units_names::Property;
use crate::why::SkipReason;
use crate::world::{
    Advice, Autogroup, KnobFault, KnobPlace, Stock, ThreadKnob, ThreadSettings, Value, World,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use tipme_policy::Identity;

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

/// Counts steps and simulates a crash after some of them: from then on every operation fails.
#[derive(Clone, Default)]
pub(crate) struct CrashPoint {
    left: Rc<Cell<Option<usize>>>,
    /// Number of steps refused after the crash.
    missed: Rc<Cell<usize>>,
    /// Total number of attempted steps.
    pub(crate) taken: Rc<Cell<usize>>,
}

impl CrashPoint {
    pub(crate) fn set(&self, steps: Option<usize>) {
        self.left.set(steps);
        self.missed.set(0);
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.left.get() == Some(0)
    }

    /// Returns `true` if the step still happens.
    fn burn(&self) -> bool {
        self.taken.set(self.taken.get() + 1);
        match self.left.get() {
            None => true,
            Some(0) => {
                self.missed.set(self.missed.get() + 1);
                false
            }
            Some(left) => {
                self.left.set(Some(left - 1));
                true
            }
        }
    }
}

/// A journal shared by successive runs of the program.
#[derive(Clone, Default)]
pub(crate) struct MemoryLog {
    bytes: Rc<RefCell<Vec<u8>>>,
    pub(crate) crash_point: CrashPoint,
    /// Number of bytes of the last line that a crashed write leaves behind.
    pub(crate) torn: Rc<Cell<usize>>,
}

impl MemoryLog {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes.borrow().clone()
    }

    pub(crate) fn set(&self, bytes: &[u8]) {
        *self.bytes.borrow_mut() = bytes.to_vec();
    }
}

impl Log for MemoryLog {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.bytes())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.crash_point.burn() {
            self.bytes.borrow_mut().extend(bytes);
            return Ok(());
        }
        // Only the write interrupted by the crash is torn.
        if self.crash_point.missed.get() == 1 {
            let torn = self.torn.take().min(bytes.len());
            self.bytes.borrow_mut().extend(&bytes[..torn]);
        }
        Err(io::Error::other("stopped"))
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.crash_point.burn() {
            return Err(io::Error::other("stopped"));
        }
        self.set(bytes);
        Ok(())
    }
}

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
        let machine = FakeMachine::default();
        machine.clock.set(100);
        let groups = [ROOT, DIR]
            .map(|path| (path.to_owned(), BTreeMap::from([("memory.low".to_owned(), 0)])));
        machine.state.borrow_mut().groups.extend(groups);
        machine
            .state
            .borrow_mut()
            .groups
            .extend([LOGIN, APP, SERVICE].map(|path| (path.to_owned(), BTreeMap::new())));
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
                let on = |file: &str| {
                    self.controllers.iter().any(|(of, name)| is_file_of(path, of, name, file))
                };
                let files = FILES.into_iter().filter(|(file, _)| on(file));
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
        let FakeState { processes, groups, units, .. } = self;
        let lives = |group: &str| {
            !is_ours(group) || processes.values().any(|process| process.group == group)
        };
        groups.retain(|group, _| lives(group));
        units.retain(|(group, _), _| lives(group));
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
        let thread = |(&(tid, start), &[nice, slice, scheduling, io]): (&(u32, u64), &[i64; 4])| {
            ThreadSettings { tid, start, session: found.session, nice, slice, scheduling, io }
        };
        let mut threads: Vec<ThreadSettings> = found.threads.iter().map(thread).collect();
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
        let above = |(_, process): &(&Identity, &Process)| {
            state.processes.iter().find(|(who, _)| who.pid == process.parent)
        };
        let line = std::iter::successors(state.processes.get_key_value(&process), above);
        line.map(|(who, process)| (*who, process.session)).collect()
    }

    fn below(&self, process: Identity, leads: &dyn Fn(Identity) -> bool) -> Vec<Identity> {
        let is_below = |who: &Identity| {
            let line = self.lineage(*who);
            let led = line
                .iter()
                .take_while(|(above, _)| *above != process)
                .any(|(above, _)| leads(*above));
            *who != process && !led && line.iter().any(|(above, _)| *above == process)
        };
        self.all().into_iter().filter(is_below).collect()
    }

    fn last_pid(&self) -> Option<u64> {
        Some(self.clock.get())
    }

    fn all(&self) -> Vec<Identity> {
        self.state.borrow().processes.keys().copied().collect()
    }

    fn members(&self, group: &str) -> Vec<Identity> {
        let state = self.state.borrow();
        state
            .processes
            .iter()
            .filter(|(_, process)| process.group == group)
            .map(|(who, _)| *who)
            .collect()
    }

    fn tree(&self, group: &str) -> Vec<Identity> {
        let state = self.state.borrow();
        let inside = |path: &str| {
            path == group || path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
        };
        state
            .processes
            .iter()
            .filter(|(_, process)| inside(&process.group))
            .map(|(who, _)| *who)
            .collect()
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
