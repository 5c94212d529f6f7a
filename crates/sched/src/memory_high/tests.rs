// SPDX-License-Identifier: MIT OR Apache-2.0
use crate::engine::Engine;
use crate::fake::{APP, DIR, FakeMachine, LOGIN, MemoryLog, TOTAL, assert_skipped, assign, engine};
use crate::units_names::Property;
use crate::why::{Applied, Knob, SkipReason};
use tipme_policy::{Action, Backend, Identity, MemoryAction, MemoryGroup, Role, SetId, UNLIMITED};

const MIB: i64 = 1 << 20;

struct LimitsFixture {
    engine: Engine<FakeMachine, MemoryLog>,
    machine: FakeMachine,
    pid: u32,
}

impl LimitsFixture {
    fn new(backend: Backend) -> LimitsFixture {
        let machine = FakeMachine::new();
        LimitsFixture { engine: engine(&machine, backend), machine, pid: 10 }
    }

    fn process(&mut self, group: &str, mib: u64) -> Identity {
        self.pid += 10;
        let who = self.machine.fork(self.pid, None, true);
        self.machine.put_into(who, group);
        self.machine.resident.borrow_mut().insert(who, mib << 20);
        who
    }

    fn assign(&mut self, role: Role, members: &[Identity]) -> Applied {
        self.engine.apply(&[assign(members[0], role, members)])
    }

    fn high(&mut self, who: Identity, mib: u64) -> Applied {
        self.engine.apply(&[high(who, mib)])
    }

    fn relieve(&mut self, who: Identity, bytes: u64) -> Applied {
        self.engine.apply(&[relieve(who, bytes)])
    }

    fn room(&mut self, more: i64) -> Applied {
        self.engine.apply(&[Action::Memory(MemoryAction::Room { more, least: 0 })])
    }

    fn group(&self, who: Identity) -> String {
        self.machine.group(who)
    }

    fn placements(&self) -> usize {
        self.engine.units.as_ref().expect("it has units").placements.len()
    }

    fn put(&self, group: &str, file: &str, number: i64) {
        let mut state = self.machine.state.borrow_mut();
        state.groups.get_mut(group).expect("it is there").insert(file.to_owned(), number);
    }

    /// Returns the limit of a group or unit in MiB; -1 for none.
    fn limit(&self, folder: &str) -> i64 {
        let state = self.machine.state.borrow();
        let unit = state.units.get(&(folder.to_owned(), Property::MemoryHigh)).copied();
        let file = state.groups.get(folder).and_then(|files| files.get("memory.high").copied());
        unit.or(file).map_or(-1, |bytes| if bytes < 0 { bytes } else { bytes / MIB })
    }
}

fn high(who: Identity, mib: u64) -> Action {
    Action::Memory(MemoryAction::High { group: MemoryGroup::Process(who), bytes: mib << 20 })
}

fn relieve(who: Identity, bytes: u64) -> Action {
    Action::Memory(MemoryAction::Relieve { group: MemoryGroup::Process(who), bytes })
}

/// Returns two processes of a hog, with 10 and 8 MiB of the 24 MiB in their folder.
fn hogs(backend: Backend) -> (LimitsFixture, [Identity; 2], String) {
    let mut fixture = LimitsFixture::new(backend);
    let group = if backend == Backend::Systemd { APP } else { DIR };
    let pair = [fixture.process(group, 10), fixture.process(group, 8)];
    fixture.assign(Role::Hog, &pair);
    let folder = fixture.group(pair[0]);
    fixture.put(&folder, "memory.current", 24 * MIB);
    (fixture, pair, folder)
}

#[test]
fn a_folder_keeps_what_its_other_processes_have() {
    for backend in [Backend::Cgroup, Backend::Systemd] {
        let (mut fixture, [first, second], folder) = hogs(backend);
        fixture.high(first, 9);
        assert_eq!(fixture.limit(&folder), 23, "{backend}: it has 24, and one of it is to go");
        fixture.high(second, 6);
        assert_eq!(fixture.limit(&folder), 21, "{backend}: the cuts of both");
        fixture.relieve(second, 7 << 20);
        assert_eq!(fixture.limit(&folder), 22, "{backend}");
        fixture.relieve(second, UNLIMITED);
        assert_eq!(fixture.limit(&folder), 23, "{backend}: the other one is limited still");
        fixture.relieve(first, UNLIMITED);
        assert_eq!(fixture.limit(&folder), -1, "{backend}");
    }
}

#[test]
fn a_folder_keeps_a_minimum_and_the_limits_of_its_processes() {
    let (mut fixture, [first, _], folder) = hogs(Backend::Cgroup);
    fixture.put(&folder, "memory.current", MIB);
    fixture.high(first, 9);
    assert_eq!(fixture.limit(&folder), 9, "what it had is counted elsewhere");
    fixture.engine.apply(&[high(first, 0)]);
    assert_eq!(fixture.limit(&folder), TOTAL as i64 / MIB / 32);
}

#[test]
fn a_limit_of_an_own_unit_goes_with_the_set() {
    let (mut fixture, [first, _], _) = hogs(Backend::Systemd);
    fixture.high(first, 9);
    assert_ne!(fixture.limit(APP), -1);
    fixture.engine.apply(&[Action::Forget(SetId(first)), relieve(first, UNLIMITED)]);
    assert_eq!(fixture.limit(APP), -1);
}

#[test]
fn refused_limits_are_retried() {
    let (mut fixture, [first, _], _) = hogs(Backend::Systemd);
    fixture.machine.mute.set(true);
    let applied = fixture.high(first, 9);
    assert!(applied.skipped.iter().any(|skipped| skipped.knob == Knob::MemoryHigh), "{applied:?}");
    fixture.machine.mute.set(false);
    fixture.engine.apply(&[]);
    assert_eq!(fixture.limit(APP), 23);
    fixture.machine.mute.set(true);
    fixture.relieve(first, UNLIMITED);
    assert_eq!(fixture.limit(APP), 23, "nobody hears it");
    fixture.machine.mute.set(false);
    fixture.engine.apply(&[]);
    assert_eq!(fixture.limit(APP), -1);
}

#[test]
fn a_process_that_is_gone_or_moved_leaves_no_limit() {
    for backend in [Backend::Cgroup, Backend::Systemd] {
        let (mut fixture, [first, second], folder) = hogs(backend);
        fixture.high(first, 9);
        fixture.high(second, 7);
        fixture.machine.exit(second);
        fixture.engine.apply(&[]);
        assert_eq!(fixture.limit(&folder), 23, "{backend}");
        fixture.machine.state.borrow_mut().groups.entry("/cg/other".to_owned()).or_default();
        fixture.machine.state.borrow_mut().processes.get_mut(&first).expect("it lives").group =
            "/cg/other".to_owned();
        let groups: Vec<String> = fixture.machine.state.borrow().groups.keys().cloned().collect();
        for who in [first, second] {
            fixture.relieve(who, UNLIMITED);
        }
        fixture.high(second, 7);
        assert_eq!(fixture.limit(&folder), -1, "{backend}");
        assert_eq!(
            fixture.machine.state.borrow().groups.keys().cloned().collect::<Vec<_>>(),
            groups,
            "{backend}"
        );
    }
}

#[test]
fn a_vanished_process_loses_its_placement() {
    let mut fixture = LimitsFixture::new(Backend::Systemd);
    let [_, hog, term] = [LOGIN; 3].map(|group| fixture.process(group, 1));
    fixture.assign(Role::Focused, &[term]);
    fixture.high(hog, 1);
    assert_eq!(fixture.placements(), 2);
    [hog, term].iter().for_each(|who| fixture.machine.exit(*who));
    fixture.relieve(hog, UNLIMITED);
    fixture.engine.apply(&[Action::Forget(SetId(term))]);
    assert_eq!(fixture.placements(), 0);
    let scopes =
        fixture.engine.ledger.cells().filter(|(place, _)| place.group_folder().is_some()).count();
    assert_eq!(scopes, 0, "no scope is left as used");
}

#[test]
fn protection_that_an_administrator_has_set_stays() {
    let mut fixture = LimitsFixture::new(Backend::Cgroup);
    let who = fixture.process(DIR, 1);
    fixture.assign(Role::Focused, &[who]);
    fixture.put(DIR, "memory.low", 77);
    let applied = fixture
        .engine
        .apply(&[Action::Memory(MemoryAction::Protect { set: SetId(who), bytes: 8_192 })]);
    assert_skipped(&applied, &SkipReason::SetByOther("77".to_owned()));
    let state = fixture.machine.state.borrow();
    let low = [DIR, &state.processes[&who].group].map(|group| state.groups[group]["memory.low"]);
    assert_eq!(low, [77, 8_192]);
}

/// Returns a group `rest` with 20 MiB, of which the kernel can reclaim 6.
fn with_rest() -> (LimitsFixture, String) {
    let mut fixture = LimitsFixture::new(Backend::Cgroup);
    let [front, _] = [DIR; 2].map(|group| fixture.process(group, 1));
    fixture.assign(Role::Focused, &[front]);
    let rest = format!("{DIR}/rest");
    fixture.put(&rest, "memory.current", 20 * MIB);
    fixture.machine.file_bytes.set(6 << 20);
    (fixture, rest)
}

#[test]
fn the_rest_keeps_what_cannot_be_taken_from_it() {
    let (mut fixture, rest) = with_rest();
    fixture.room(-12 * MIB);
    assert_eq!(fixture.limit(&rest), 14);
    fixture.machine.swap.set(3 << 20);
    fixture.room(-12 * MIB);
    assert_eq!(fixture.limit(&rest), 11, "there is swap for some of it");
    fixture.room(i64::MAX);
    assert_eq!(fixture.limit(&rest), -1);
    fixture.put(&rest, "memory.current", 0);
    fixture.room(i64::MAX);
    assert_eq!(fixture.limit(&rest), -1);
}

#[test]
fn a_strained_rest_is_not_lowered_and_gets_half_of_the_reserve() {
    let (mut fixture, rest) = with_rest();
    let relief = TOTAL as i64 / 32 / MIB;
    fixture.room(0);
    fixture.machine.full_percent.set(41.0);
    fixture.room(-4 * MIB);
    assert_eq!(fixture.limit(&rest), 20);
    fixture.room(0);
    assert_eq!(fixture.limit(&rest), 20 + relief);
    fixture.put(&rest, "memory.current", (20 + relief) * MIB);
    fixture.room(-relief * MIB);
    assert_eq!(fixture.limit(&rest), 20 + relief, "not more again and again");
    fixture.room(4 * MIB);
    assert_eq!(fixture.limit(&rest), 24 + 2 * relief, "there is room");
    fixture.machine.full_percent.set(40.0);
    fixture.room(-4 * MIB);
    assert_eq!(fixture.limit(&rest), 16 + relief);
}

#[test]
fn a_rest_that_was_not_made_here_is_not_limited() {
    let mut fixture = LimitsFixture::new(Backend::Cgroup);
    let rest = format!("{DIR}/rest");
    let files = [("memory.current", 5 * MIB), ("memory.high", -1)]
        .map(|(name, number)| (name.to_owned(), number));
    fixture.machine.state.borrow_mut().groups.insert(rest.clone(), files.into());
    fixture.room(MIB);
    assert_eq!(fixture.limit(&rest), -1);
}
