// SPDX-License-Identifier: MIT OR Apache-2.0
//! Property test: whatever happens, and wherever the program crashes, afterwards the machine is as
//! if it had never run.
//!
//! All actions of users and programs happen on two machines, one of which the engine never touches.
//! The other one must look the same after the next start, wherever the engine crashed: before or
//! after any line of the journal, within a line, and between any two changes.

use crate::engine::Engine;
use crate::fake::{
    APP, CrashPoint, DIR, FakeMachine, LOGIN, MemoryLog, SERVICE, assign, open_engine,
};
use crate::units_names::Property;
use crate::why::Restored;
use crate::world::World;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tipme_policy::{Action, Backend, Identity, MemoryAction, MemoryGroup, Role, SetId, Strength};

/// A group of another program.
const OTHER: &str = "/cg/other";
const SETS: usize = 4;
/// Minimum start time of processes forked after the engine started.
const FORKED_START: u64 = 107;

/// An event on the machine.
#[derive(Clone, Debug)]
enum Operation {
    Assign {
        set: usize,
        role: Role,
        members: u16,
    },
    Forget(usize),
    Turn(Strength),
    Protect(usize),
    Limit(usize),
    Relieve(usize),
    /// Limits `rest` to its size plus this number of bytes.
    Confine(i64),
    /// Forks this process, perhaps with `nice`, which adds to the inherited value.
    Fork {
        parent: usize,
        own_session: bool,
        nice: bool,
    },
    Spawn(usize),
    Exit(usize),
    /// The user sets values that are not in the table.
    Renice(usize),
    Weigh(usize),
    Move(usize),
    Write,
}

fn acts() -> impl Strategy<Value = Vec<Operation>> {
    let role = prop::sample::select(Role::ALL.to_vec());
    let strength = prop::sample::select(vec![
        Strength::Off,
        Strength::Gentle,
        Strength::Normal,
        Strength::Strong,
    ]);
    let room = prop::sample::select(vec![-9_000, 1 << 20, 9 << 20, i64::MAX]);
    let (set, process) = (0..SETS, 0..16usize);
    let act = prop_oneof![
        6 => (set.clone(), role, any::<u16>())
            .prop_map(|(set, role, members)| Operation::Assign { set, role, members }),
        2 => set.clone().prop_map(Operation::Forget),
        1 => strength.prop_map(Operation::Turn),
        1 => set.prop_map(Operation::Protect),
        1 => process.clone().prop_map(Operation::Limit),
        1 => process.clone().prop_map(Operation::Relieve),
        1 => room.prop_map(Operation::Confine),
        4 => (process.clone(), any::<bool>(), prop::bool::weighted(0.3))
            .prop_map(|(parent, own_session, nice)| Operation::Fork { parent, own_session, nice }),
        2 => process.clone().prop_map(Operation::Spawn),
        2 => process.clone().prop_map(Operation::Exit),
        1 => process.clone().prop_map(Operation::Renice),
        1 => process.clone().prop_map(Operation::Weigh),
        1 => process.prop_map(Operation::Move),
        1 => Just(Operation::Write),
    ];
    prop::collection::vec(act, 1..14)
}

/// The two machines, and the state common to both.
struct PropertyFixture {
    machine: FakeMachine,
    shadow: FakeMachine,
    log: MemoryLog,
    pids: u32,
    /// Processes that added to their inherited value, and their children.
    niced: BTreeSet<Identity>,
}

impl PropertyFixture {
    fn new(crash_point: &CrashPoint, backend: Backend) -> PropertyFixture {
        let groups = if backend == Backend::Systemd { [LOGIN, APP, SERVICE] } else { [DIR; 3] };
        let (machine, shadow) = (FakeMachine::new(), FakeMachine::new());
        let (log, niced) = (MemoryLog::default(), BTreeSet::new());
        let mut fixture = PropertyFixture { machine, shadow, log, pids: 10, niced };
        fixture.both(|machine| {
            machine.state.borrow_mut().groups.entry(OTHER.to_owned()).or_default();
        });
        fixture.machine.crash_point = crash_point.clone();
        fixture.log.crash_point = crash_point.clone();
        for group in groups {
            let parent = fixture.fork(None, true);
            fixture.both(|machine| machine.put_into(parent, group));
            fixture.fork(Some(parent), false);
        }
        fixture
    }

    fn fork(&mut self, parent: Option<Identity>, own_session: bool) -> Identity {
        self.pids += 10;
        self.shadow.fork(self.pids, parent, own_session);
        self.machine.fork(self.pids, parent, own_session)
    }

    fn pick(&self, index: usize) -> Option<Identity> {
        let state = self.machine.state.borrow();
        state.processes.keys().copied().nth(index % state.processes.len().max(1))
    }

    fn both(&self, change: impl Fn(&FakeMachine)) {
        change(&self.shadow);
        change(&self.machine);
    }

    /// Runs `nice -n 5` in the child of a process that has the default or the applied value
    /// together with the slice.
    fn nice(&mut self, child: Identity, parent: Identity) {
        let [nice, slice, ..] = self.machine.values(parent);
        // After a crash, half-done changes are indistinguishable from foreign ones.
        if self.machine.crash_point.is_reached() {
            return;
        }
        if nice == 0 || (slice != 0 && nice != self.shadow.values(parent)[0]) {
            self.niced.insert(child);
            // An increment that cancels the normal favour, one that gives the value of another
            // role, or neither.
            let more = [8, 5, 4][child.pid as usize / 10 % 3];
            self.both(|machine| machine.renice(child, machine.values(parent)[0] + more));
        }
    }

    /// An unlisted child that is reniced outright looks like one that added to its inherited value.
    fn is_not_taken_for_nice(&self, who: Identity) -> bool {
        let has_no_slice = self.machine.values(who)[1] == 0;
        (who.start < FORKED_START || has_no_slice) && !self.is_added_to(who)
    }

    /// Returns `true` if a descendant has added to its inherited value.
    fn is_added_to(&self, who: Identity) -> bool {
        self.machine.below(who, &|_| false).iter().any(|child| self.niced.contains(child))
    }

    /// Returns `true` unless the exit is outside of the guarantees: a child with an untouched
    /// session, or with an addition to its inherited value, would lose its parent.
    fn may_exit(&self, who: Identity) -> bool {
        let state = self.machine.state.borrow();
        let session = state.processes[&who].session;
        let is_first = [20, 40, 60].contains(&session);
        let mut children = state.processes.values().filter(|child| child.parent == who.pid);
        !self.is_added_to(who) && children.all(|child| is_first && child.session == session)
    }

    fn has_no_family(&self, who: Identity) -> bool {
        let state = self.machine.state.borrow();
        state.processes[&who].parent == 1
            && !state.processes.values().any(|child| child.parent == who.pid)
    }

    fn world_act(&mut self, act: &Operation) {
        let index = match act {
            Operation::Fork { parent: index, .. }
            | Operation::Spawn(index)
            | Operation::Exit(index)
            | Operation::Renice(index)
            | Operation::Weigh(index)
            | Operation::Move(index) => index,
            _ => &0,
        };
        let Some(who) = self.pick(*index) else { return };
        match act {
            // The child of a process moved by another program returns to the group of the display's
            // programs, not to that group.
            Operation::Fork { .. } if self.shadow.state.borrow().processes[&who].group == OTHER => {
            }
            Operation::Fork { own_session, nice, .. } => {
                let child = self.fork(Some(who), *own_session);
                if *nice {
                    self.nice(child, who);
                }
                if self.niced.contains(&who) {
                    self.niced.insert(child);
                }
            }
            Operation::Spawn(_) => {
                self.pids += 1;
                self.both(|machine| machine.spawn(who, self.pids));
            }
            Operation::Exit(_) if self.may_exit(who) => self.both(|machine| machine.exit(who)),
            Operation::Renice(_) if self.is_not_taken_for_nice(who) => {
                self.both(|machine| machine.renice(who, 13))
            }
            Operation::Weigh(_) => self.both(|machine| {
                let session = machine.state.borrow().processes[&who].session;
                machine.state.borrow_mut().autogroups.insert(session, 13);
            }),
            // Children would share the move, so only processes without any are moved.
            Operation::Move(_) if self.has_no_family(who) => self.both(|machine| {
                machine.put_into(who, OTHER);
                machine.state.borrow_mut().reap();
            }),
            Operation::Write => self.both(|machine| {
                let mut state = machine.state.borrow_mut();
                state
                    .groups
                    .get_mut(DIR)
                    .expect("the test made it")
                    .insert("memory.low".to_owned(), 77);
                state.units.insert((APP.to_owned(), Property::CpuWeight), 77);
            }),
            _ => {}
        }
    }
}

fn set_id(set: usize) -> SetId {
    SetId(Identity { pid: 20 + 20 * set as u32, start: 1 })
}

fn action(fixture: &PropertyFixture, act: &Operation) -> Option<Action> {
    Some(match act {
        Operation::Assign { set, role, members } => {
            let all = fixture.machine.all().into_iter().enumerate();
            let chosen = all.filter(|(index, _)| members >> (index % 16) & 1 == 1);
            let members: Vec<Identity> = chosen.map(|(_, who)| who).collect();
            assign(set_id(*set).0, *role, &members)
        }
        Operation::Forget(set) => Action::Forget(set_id(*set)),
        Operation::Protect(set) => {
            Action::Memory(MemoryAction::Protect { set: set_id(*set), bytes: 1 << 20 })
        }
        Operation::Limit(process) => {
            let group = MemoryGroup::Process(fixture.pick(*process)?);
            Action::Memory(MemoryAction::High { group, bytes: 1 << 20 })
        }
        Operation::Relieve(process) => {
            let group = MemoryGroup::Process(fixture.pick(*process)?);
            Action::Memory(MemoryAction::Relieve { group, bytes: u64::MAX })
        }
        Operation::Confine(more) => {
            Action::Memory(MemoryAction::Room { more: *more, least: 4_096 })
        }
        _ => return None,
    })
}

fn open(fixture: &PropertyFixture, backend: Backend) -> (Engine<FakeMachine, MemoryLog>, Restored) {
    open_engine(&fixture.machine, fixture.log.clone(), backend)
}

/// Plays the operations with an engine that crashes after `steps`; returns the final fixture.
fn play(
    acts: &[Operation],
    backend: Backend,
    steps: Option<usize>,
    torn: usize,
    crash_point: &CrashPoint,
) -> PropertyFixture {
    crash_point.set(None);
    let mut fixture = PropertyFixture::new(crash_point, backend);
    fixture.log.torn.set(torn);
    let (mut engine, _) = open(&fixture, backend);
    crash_point.taken.set(0);
    crash_point.set(steps);
    for act in acts {
        fixture.world_act(act);
        if let Operation::Turn(strength) = act {
            engine.set_strength(*strength);
        }
        let action = action(&fixture, act);
        engine.apply(action.as_slice());
    }
    fixture
}

fn assert_restored(
    fixture: &PropertyFixture,
    backend: Backend,
    crash_point: &CrashPoint,
    what: &str,
) {
    crash_point.set(None);
    let (_, restored) = open(fixture, backend);
    assert_eq!(
        *fixture.machine.state.borrow(),
        *fixture.shadow.state.borrow(),
        "{what}: {restored:?}"
    );
    assert_eq!(restored.failed, 0, "{what}: {restored:?}");
    let (_, again) = open(fixture, backend);
    assert_eq!(again, Restored::default(), "{what}: the journal is empty");
}

fn check(acts: &[Operation], backend: Backend) {
    let crash_point = CrashPoint::default();
    let fixture = play(acts, backend, None, 0, &crash_point);
    let steps = crash_point.taken.get();
    assert_restored(&fixture, backend, &crash_point, "never stopped");
    for step in 0..steps {
        let fixture = play(acts, backend, Some(step), step * 37 % 400, &crash_point);
        assert_restored(
            &fixture,
            backend,
            &crash_point,
            &format!("stopped after {step} of {steps} steps"),
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn after_a_stop_at_any_step_nothing_is_left_changed(acts in acts()) {
        for backend in Backend::ALL {
            check(&acts, backend);
        }
    }
}

/// Returns processes in sessions of their own, favoured by an engine that then crashed.
fn favoured(count: u16) -> PropertyFixture {
    let crash_point = CrashPoint::default();
    let mut fixture = PropertyFixture::new(&crash_point, Backend::Nice);
    for _ in 0..count {
        fixture.fork(None, true);
    }
    let (mut engine, _) = open(&fixture, Backend::Nice);
    let assign = Operation::Assign { set: 0, role: Role::Focused, members: u16::MAX };
    engine.apply(action(&fixture, &assign).as_slice());
    fixture
}

fn changed(fixture: &PropertyFixture) -> usize {
    let (machine, shadow) = (fixture.machine.state.borrow(), fixture.shadow.state.borrow());
    machine
        .processes
        .iter()
        .filter(|(who, process)| shadow.processes.get(who) != Some(process))
        .count()
}

#[test]
fn a_damaged_journal_costs_at_most_one_change() {
    let whole = favoured(6).log.bytes();
    assert_eq!(changed(&favoured(6)), 12);
    for at in (0..whole.len()).step_by(7) {
        let fixture = favoured(6);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        fixture.log.set(&bytes);
        let (_, restored) = open(&fixture, Backend::Nice);
        assert!(changed(&fixture) <= 1, "byte {at}: {} are left changed", changed(&fixture));
        assert!(restored.unreadable >= 1 || changed(&fixture) == 0, "byte {at}: {restored:?}");
        fixture.log.set(&whole);
        open(&fixture, Backend::Nice);
        assert_eq!(changed(&fixture), 0, "byte {at}: the whole journal puts the rest right");
    }
}

#[test]
fn a_journal_cut_at_any_byte_restores_what_is_left_of_it() {
    let whole = favoured(6).log.bytes();
    let mut most = 0;
    for end in (0..=whole.len()).step_by(11).chain([whole.len()]) {
        let fixture = favoured(6);
        fixture.log.set(&whole[..end]);
        let lines = whole[..end]
            .split_inclusive(|&byte| byte == b'\n')
            .filter(|line| line.ends_with(b"\n"));
        // A line of a thread knob must be restored; lines of traces count for nothing by
        // themselves.
        let knobs =
            lines.filter(|line| String::from_utf8_lossy(line).contains("\"thread\":")).count();
        let (_, restored) = open(&fixture, Backend::Nice);
        assert!(restored.restored >= knobs, "cut at {end}: {knobs} knobs, {restored:?}");
        most = most.max(knobs);
        assert_eq!(restored.failed, 0);
    }
    assert_eq!(most, 36, "twelve processes with nice value, slice and I/O priority");
}
