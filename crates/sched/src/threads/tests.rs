// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads on an in-memory machine: exemptions, inherited values, and the number of thread
//! listings.

use crate::engine::Engine;
use crate::fake::{FakeMachine, MemoryLog, assign, open_engine};
use crate::why::{Applied, Knob, SkipReason};
use tipme_policy::{Backend, Identity, Role, Strength, knobs};

/// A slice in nanoseconds that is not in the table.
const OTHER_SLICE: i64 = 3_000_000;
const NICE: usize = 0;
const SLICE: usize = 1;
const IO: usize = 3;

struct ThreadsFixture {
    machine: FakeMachine,
    log: MemoryLog,
    engine: Engine<FakeMachine, MemoryLog>,
}

impl ThreadsFixture {
    fn new() -> ThreadsFixture {
        let (machine, log) = (FakeMachine::new(), MemoryLog::default());
        let (engine, _) = open_engine(&machine, log.clone(), Backend::Nice);
        ThreadsFixture { machine, log, engine }
    }

    fn assign(&mut self, role: Role, processes: &[Identity]) -> Applied {
        self.engine.apply(&[assign(processes[0], role, processes)])
    }

    fn value(&self, who: Identity, knob: usize) -> i64 {
        self.machine.state.borrow().processes[&who].threads[&(who.pid, who.start)][knob]
    }

    fn set(&self, who: Identity, knob: usize, value: i64) {
        let mut state = self.machine.state.borrow_mut();
        let threads = &mut state.processes.get_mut(&who).expect("the test made it").threads;
        threads.values_mut().for_each(|values| values[knob] = value);
    }
}

fn nice(role: Role) -> i64 {
    knobs(Backend::Nice, Strength::Normal, role, 0.0).nice.map_or(0, i64::from)
}

#[test]
fn a_slice_that_somebody_has_set_stays_and_nothing_else_does() {
    let mut fixture = ThreadsFixture::new();
    let who = fixture.machine.fork(20, None, true);
    fixture.set(who, SLICE, OTHER_SLICE);
    let applied = fixture.assign(Role::Focused, &[who]);
    assert_eq!(
        (fixture.value(who, SLICE), fixture.value(who, NICE)),
        (OTHER_SLICE, nice(Role::Focused))
    );
    let left: Vec<_> = applied.skipped.iter().map(|left| (left.knob, left.why.clone())).collect();
    assert_eq!(left, [(Knob::Slice, SkipReason::SetByOther("3000 us".to_owned()))]);
    fixture.engine.restore();
    assert_eq!((fixture.value(who, SLICE), fixture.value(who, NICE)), (OTHER_SLICE, 0));
}

#[test]
fn a_slice_that_somebody_sets_after_us_stays() {
    let mut fixture = ThreadsFixture::new();
    let who = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[who]);
    fixture.set(who, SLICE, OTHER_SLICE);
    let applied = fixture.assign(Role::Rest, &[who]);
    assert_eq!((fixture.value(who, SLICE), fixture.value(who, NICE)), (OTHER_SLICE, 0));
    let left: Vec<_> = applied.skipped.iter().map(|left| (left.knob, left.why.clone())).collect();
    assert_eq!(left, [(Knob::Slice, SkipReason::ChangedByOther("3000 us".to_owned()))]);
    assert_eq!(fixture.engine.restore().changed_by_others, 1);
    assert_eq!(fixture.value(who, SLICE), OTHER_SLICE);
}

#[test]
fn a_foreign_value_stays_even_if_it_was_applied_here_before() {
    let mut fixture = ThreadsFixture::new();
    let who = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Visible, &[who]);
    fixture.assign(Role::Focused, &[who]);
    fixture.set(who, NICE, nice(Role::Visible));
    assert_eq!(fixture.engine.restore().changed_by_others, 1);
    assert_eq!(fixture.value(who, NICE), nice(Role::Visible));
}

#[test]
fn inherited_knobs_are_explained_without_a_role() {
    let mut fixture = ThreadsFixture::new();
    let parent = fixture.machine.fork(20, None, true);
    assert!(fixture.engine.explain(parent).is_none());
    fixture.assign(Role::Focused, &[parent]);
    let child = fixture.machine.fork(30, Some(parent), true);
    let found = fixture.engine.explain(child).expect("it has something");
    let knobs: Vec<_> =
        found.knobs.iter().map(|state| (state.knob, state.baseline.as_str())).collect();
    assert_eq!((found.role, knobs[0]), (None, (Knob::Nice, "0")));
    assert_eq!(found.knobs[0].applied, nice(Role::Focused).to_string());
    let (untouched, other) =
        (fixture.machine.fork(40, None, true), fixture.machine.fork(50, None, true));
    fixture.set(other, NICE, 3);
    assert!([untouched, other].iter().all(|who| fixture.engine.explain(*who).is_none()));
}

#[test]
fn a_child_forked_during_its_parents_change_follows() {
    let mut fixture = ThreadsFixture::new();
    let parent = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[parent]);
    fixture.machine.fork_before_change.set(Some((parent, 30)));
    fixture.assign(Role::Visible, &[parent]);
    let child = fixture.machine.state.borrow().processes.keys().copied().find(|who| who.pid == 30);
    assert_eq!(fixture.value(child.expect("it was forked"), NICE), nice(Role::Visible));
}

#[test]
fn a_young_child_is_left_to_a_possible_nice_command() {
    let mut fixture = ThreadsFixture::new();
    let parent = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[parent]);
    let child = fixture.machine.fork(30, Some(parent), false);
    fixture.machine.young.set(true);
    assert!(fixture.assign(Role::Focused, &[parent, child]).later, "it is looked at again");
    assert_eq!(
        fixture.engine.explain(child).expect("it has a role").knobs.len(),
        3,
        "its inherited knobs are explained"
    );
    fixture.set(child, NICE, nice(Role::Focused) + 5);
    fixture.machine.young.set(false);
    assert!(!fixture.engine.apply(&[]).later);
    assert_eq!(fixture.value(child, NICE), 5);
    fixture.engine.restore();
    assert_eq!(
        (fixture.value(parent, NICE), fixture.value(child, NICE), fixture.value(child, SLICE)),
        (0, 5, 0)
    );
}

#[test]
fn without_forks_each_process_is_listed_once() {
    let mut fixture = ThreadsFixture::new();
    let processes = [20, 30, 40].map(|pid| fixture.machine.fork(pid, None, true));
    for role in [Role::Focused, Role::Visible, Role::Focused] {
        fixture.machine.looks.set(0);
        assert!(fixture.assign(role, &processes).changed >= 3);
        assert_eq!(fixture.machine.looks.get(), 3, "{role:?}");
    }
}

#[test]
fn one_write_announces_all_changes_of_a_call() {
    let mut fixture = ThreadsFixture::new();
    let processes = [20, 30, 40].map(|pid| fixture.machine.fork(pid, None, true));
    fixture.log.crash_point.taken.set(0);
    assert_eq!(fixture.assign(Role::Focused, &processes).changed, 9);
    assert_eq!(fixture.log.crash_point.taken.get(), 1);
}

/// Forks a daemon, which leaves its parent and its session at once.
fn detached(fixture: &ThreadsFixture, pid: u32, parent: Identity) -> Identity {
    let shell = fixture.machine.fork(29, Some(parent), false);
    let child = fixture.machine.fork(pid, Some(shell), true);
    fixture.machine.exit(shell);
    child
}

#[test]
fn roots_daemon_with_a_slice_of_ours_has_inherited_all() {
    let mut fixture = ThreadsFixture::new();
    let parent = fixture.machine.fork(20, None, true);
    fixture.machine.state.borrow_mut().processes.get_mut(&parent).expect("the test made it").uid =
        0;
    fixture.assign(Role::Focused, &[parent]);
    let [seen, unseen] = [30, 40].map(|pid| detached(&fixture, pid, parent));
    assert_eq!([seen, unseen].map(|who| fixture.value(who, NICE)), [nice(Role::Focused); 2]);
    let applied = fixture.assign(Role::Rest, &[seen]);
    assert_eq!(
        (fixture.value(seen, NICE), fixture.value(seen, IO), applied.skipped),
        (0, 0, Vec::new())
    );
    fixture.engine.restore();
    for process in [parent, seen, unseen] {
        let values = [NICE, SLICE, IO].map(|knob| fixture.value(process, knob));
        assert_eq!(values, [0; 3], "{process:?}");
    }
}

#[test]
fn an_increment_by_nice_is_the_users_wish() {
    let mut fixture = ThreadsFixture::new();
    let shell = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[shell]);
    let [seen, unseen, lazy] =
        [30, 40, 50].map(|pid| fixture.machine.fork(pid, Some(shell), false));
    [seen, unseen].into_iter().for_each(|who| fixture.machine.renice(who, nice(Role::Focused) + 5));
    fixture.machine.renice(lazy, 15);
    let applied = fixture.assign(Role::Focused, &[shell, seen, lazy]);
    let left: Vec<_> =
        applied.skipped.iter().map(|left| (left.who, left.knob, left.why.clone())).collect();
    assert_eq!(
        left,
        [(seen, "5"), (lazy, "19")].map(|(who, value)| (
            who,
            Knob::Nice,
            SkipReason::SetByOther(value.to_owned())
        ))
    );
    assert_eq!([seen, lazy].map(|who| fixture.value(who, NICE)), [5, 19]);
    assert_eq!(
        [SLICE, IO].map(|knob| fixture.value(seen, knob)),
        [0; 2],
        "it is left alone as a whole"
    );
    assert_eq!(
        fixture.assign(Role::Rest, &[shell, seen]).skipped[0].why,
        SkipReason::SetByOther("5".to_owned())
    );
    fixture.engine.restore();
    assert_eq!([shell, seen, unseen, lazy].map(|who| fixture.value(who, NICE)), [0, 5, 5, 19]);
}

#[test]
fn a_wish_that_cancels_the_favour_and_a_daemons_wish_are_kept() {
    let mut fixture = ThreadsFixture::new();
    let shell = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[shell]);
    let seen = fixture.machine.fork(30, Some(shell), false);
    fixture.machine.renice(seen, 0);
    let daemon = detached(&fixture, 40, shell);
    fixture.machine.renice(daemon, nice(Role::Focused) + 5);
    fixture.assign(Role::Focused, &[shell, seen]);
    assert_eq!(fixture.value(seen, NICE), -nice(Role::Focused));
    fixture.engine.restore();
    assert_eq!(
        [shell, seen, daemon].map(|who| fixture.value(who, NICE)),
        [0, -nice(Role::Focused), 5]
    );
}

#[test]
fn another_users_process_only_loses_what_it_inherited() {
    let mut fixture = ThreadsFixture::new();
    fixture.machine.owner = Some(1000);
    fixture.engine.ledger.world.owner = Some(1000);
    let shell = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[shell]);
    let own_session = [30, 40].map(|pid| fixture.machine.fork(pid, Some(shell), true));
    let polite = fixture.machine.fork(60, Some(shell), false);
    fixture.machine.renice(polite, nice(Role::Visible));
    let daemon = detached(&fixture, 50, shell);
    let neighbour = fixture.machine.fork(70, Some(shell), false);
    for who in [own_session[0], own_session[1], daemon, polite, neighbour] {
        fixture.machine.state.borrow_mut().processes.get_mut(&who).expect("the test made it").uid =
            7;
    }
    fixture
        .machine
        .state
        .borrow_mut()
        .processes
        .get_mut(&neighbour)
        .expect("the test made it")
        .parent = 1;
    let applied = fixture.assign(Role::Focused, &[shell, own_session[0], polite]);
    let left: Vec<_> = applied.skipped.iter().map(|left| (left.who, left.why.clone())).collect();
    assert_eq!(left, [own_session[0], polite].map(|who| (who, SkipReason::NotOwner(7))));
    assert_eq!(
        fixture.value(polite, NICE),
        nice(Role::Visible) - nice(Role::Focused),
        "what it has asked for"
    );
    assert_eq!([NICE, SLICE, IO].map(|knob| fixture.value(own_session[0], knob)), [0; 3]);
    fixture.engine.restore();
    assert_eq!(own_session.map(|who| fixture.value(who, NICE)), [0; 2]);
    assert_eq!(
        fixture.value(daemon, NICE),
        nice(Role::Focused),
        "its user may have a manager of that slice"
    );
    assert_eq!(
        fixture.value(neighbour, NICE),
        nice(Role::Focused),
        "nor does its session prove the origin of the value"
    );
}

#[test]
fn a_thread_that_its_program_has_given_a_nice_value_keeps_it() {
    let mut fixture = ThreadsFixture::new();
    let parent = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[parent]);
    fixture.machine.spawn(parent, 21);
    let machine = fixture.machine.clone();
    let thread =
        *machine.state.borrow().processes[&parent].threads.keys().max().expect("it has two");
    machine.state.borrow_mut().processes.entry(parent).and_modify(|process| {
        process.threads.entry(thread).and_modify(|values| values[NICE] = 10);
    });
    for role in [Role::Focused, Role::Visible] {
        fixture.assign(role, &[parent]);
        assert_eq!(machine.state.borrow().processes[&parent].threads[&thread][NICE], 10);
    }
}
