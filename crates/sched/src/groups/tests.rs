// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers and weights of a delegated group that is not empty at first.

use crate::engine::Engine;
use crate::fake::{DIR, FakeMachine, MemoryLog, ROOT};
use crate::groups::{CONTROLLERS, RETRY_TICKS};
use crate::ledger::Ledger;
use crate::subtree::Subtree;
use std::collections::BTreeSet;
use tipme_policy::{
    Action, Assignment, Backend, Identity, Member, Membership, Reason, Role, SetId, Strength,
};

fn engine(machine: &FakeMachine) -> Engine<FakeMachine, MemoryLog> {
    let (ledger, _) =
        Ledger::open(machine.clone(), MemoryLog::default()).expect("memory is not a file");
    let mut engine = Engine::new(ledger, Backend::Cgroup, Strength::Normal);
    engine.subtree = Some(Subtree::new(DIR.to_owned(), ROOT.to_owned()));
    engine
}

fn focused(who: Identity) -> Action {
    let members = vec![Member { who, because: Membership::Child }];
    let reason = Reason::NoAttention;
    Action::Assign(Assignment { set: SetId(who), role: Role::Focused, reason, faded: 0.0, members })
}

/// Returns the enabled controllers of the delegated group.
fn controllers(machine: &FakeMachine) -> BTreeSet<(String, String)> {
    machine.state.borrow().controllers.clone()
}

fn weight(machine: &FakeMachine, set: Identity) -> Option<i64> {
    let path = format!("{DIR}/set-{}-{}", set.pid, set.start);
    machine.state.borrow().groups.get(&path).and_then(|files| files.get("cpu.weight").copied())
}

#[test]
fn a_child_that_is_born_while_its_parent_moves_keeps_no_controller_off() {
    let machine = FakeMachine::new();
    let (editor, shell) = (machine.fork(10, None, true), machine.fork(20, None, true));
    machine.fork_before_change.set(Some((shell, 21)));
    let mut engine = engine(&machine);
    let applied = engine.apply(&[focused(editor)]);
    assert_eq!(
        (controllers(&machine).len(), applied.skipped.len()),
        (CONTROLLERS.len(), 0),
        "{applied:?}"
    );
    assert_eq!(weight(&machine, editor), Some(3_000));
    let restored = engine.restore();
    assert_eq!((restored.failed, controllers(&machine).len()), (0, 0));
    assert!(machine.state.borrow().processes.values().all(|process| process.group == DIR));
}

#[test]
fn what_kept_the_controllers_off_is_asked_again_and_all_groups_get_their_weights() {
    let mut machine = FakeMachine::new();
    let (editor, other) = (machine.fork(10, None, true), machine.fork(20, None, true));
    let pager = machine.fork(30, None, true);
    machine.state.borrow_mut().processes.get_mut(&other).expect("it lives").uid = 7;
    machine.owner = Some(1000);
    let mut engine = engine(&machine);
    assert!(
        !engine.apply(&[focused(editor)]).skipped.is_empty(),
        "a process of another user may not be moved"
    );
    assert_eq!((controllers(&machine).len(), weight(&machine, editor)), (0, None));
    machine.exit(other);
    engine.apply(&[focused(pager)]);
    assert_eq!(controllers(&machine).len(), 0, "not at each change");
    machine.clock.set(machine.clock.get() + RETRY_TICKS);
    engine.apply(&[focused(editor), focused(pager)]);
    assert_eq!(
        (controllers(&machine).len(), weight(&machine, editor)),
        (CONTROLLERS.len(), Some(3_000))
    );
}
