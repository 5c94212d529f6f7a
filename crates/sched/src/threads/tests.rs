// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads on an in-memory machine: exemptions, inherited values, and the number of thread
//! listings.

use crate::engine::Engine;
use crate::fake::{FakeMachine, MemoryLog};
use crate::ledger::Ledger;
use crate::why::{Applied, Knob, SkipReason};
use tipme_policy::{
    Action, Assignment, Backend, Identity, Member, Membership, Reason, Role, SetId, Strength, knobs,
};

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
        let (ledger, _) = Ledger::open(machine.clone(), log.clone()).expect("the test made it");
        ThreadsFixture {
            machine,
            log,
            engine: Engine::new(ledger, Backend::Nice, Strength::Normal),
        }
    }

    fn assign(&mut self, role: Role, processes: &[Identity]) -> Applied {
        self.engine.apply(&[ThreadsFixture::action(role, processes)])
    }

    fn action(role: Role, processes: &[Identity]) -> Action {
        let members =
            processes.iter().map(|who| Member { who: *who, because: Membership::Client }).collect();
        let set = SetId(processes[0]);
        Action::Assign(Assignment { set, role, reason: Reason::KeyboardFocus, faded: 0.0, members })
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
fn a_value_that_somebody_sets_stays_also_where_it_had_been_set_here_before() {
    let mut fixture = ThreadsFixture::new();
    let who = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Visible, &[who]);
    fixture.assign(Role::Focused, &[who]);
    fixture.set(who, NICE, nice(Role::Visible));
    assert_eq!(fixture.engine.restore().changed_by_others, 1);
    assert_eq!(fixture.value(who, NICE), nice(Role::Visible));
}

#[test]
fn of_who_has_no_role_it_is_told_what_it_has_inherited() {
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
fn whoever_is_born_while_its_parent_is_changed_follows() {
    let mut fixture = ThreadsFixture::new();
    let parent = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[parent]);
    fixture.machine.fork_before_change.set(Some((parent, 30)));
    fixture.assign(Role::Visible, &[parent]);
    let child = fixture.machine.state.borrow().processes.keys().copied().find(|who| who.pid == 30);
    assert_eq!(fixture.value(child.expect("it was forked"), NICE), nice(Role::Visible));
}

#[test]
fn nice_may_be_at_work_on_who_has_just_been_forked() {
    let mut fixture = ThreadsFixture::new();
    let parent = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[parent]);
    let child = fixture.machine.fork(30, Some(parent), false);
    fixture.machine.young.set(true);
    assert!(fixture.assign(Role::Focused, &[parent, child]).later, "it is looked at again");
    assert_eq!(
        fixture.engine.explain(child).expect("it has a role").knobs.len(),
        3,
        "it is told what it has"
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
fn where_nobody_is_born_each_process_is_looked_at_once() {
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
    for who in [parent, seen, unseen] {
        assert_eq!([NICE, SLICE, IO].map(|knob| fixture.value(who, knob)), [0; 3], "{who:?}");
    }
}

#[test]
fn what_nice_has_added_to_what_it_inherited_is_the_users_wish() {
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
    let wish = |who, value: &str| (who, Knob::Nice, SkipReason::SetByOther(value.to_owned()));
    assert_eq!(left, [wish(seen, "5"), wish(lazy, "19")]);
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
fn a_wish_that_makes_up_for_the_favour_and_one_of_a_daemon_are_wishes_too() {
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
        "nor does its session say whose value it is"
    );
}

#[test]
fn a_thread_that_its_program_has_given_a_nice_value_keeps_it() {
    let mut fixture = ThreadsFixture::new();
    let parent = fixture.machine.fork(20, None, true);
    fixture.assign(Role::Focused, &[parent]);
    fixture.machine.spawn(parent, 21);
    let of_thread = |change: &dyn Fn(&mut i64)| {
        let mut state = fixture.machine.state.borrow_mut();
        let threads = &mut state.processes.get_mut(&parent).expect("the test made it").threads;
        let (_, values) =
            threads.iter_mut().find(|((tid, _), _)| *tid == 21).expect("it was spawned");
        change(&mut values[NICE]);
        values[NICE]
    };
    of_thread(&|nice| *nice = 10);
    let [before, after] = [Role::Focused, Role::Visible].map(|role| {
        fixture.engine.apply(&[ThreadsFixture::action(role, &[parent])]);
        of_thread(&|_| {})
    });
    assert_eq!((before, after), (10, 10));
}
