// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers and weights of a delegated group that is not empty at first.

use crate::fake::{DIR, FakeMachine, assign, engine};
use crate::groups::{CONTROLLERS, RETRY_TICKS};
use std::collections::BTreeSet;
use tipme_policy::{Action, Backend, Identity, Role};

fn focused(who: Identity) -> Action {
    assign(who, Role::Focused, &[who])
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
fn a_child_forked_during_its_parents_move_blocks_no_controller() {
    let machine = FakeMachine::new();
    let (editor, shell) = (machine.fork(10, None, true), machine.fork(20, None, true));
    machine.fork_before_change.set(Some((shell, 21)));
    let mut engine = engine(&machine, Backend::Cgroup);
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
fn blocked_controllers_are_retried_and_all_groups_weighed() {
    let mut machine = FakeMachine::new();
    let (editor, other) = (machine.fork(10, None, true), machine.fork(20, None, true));
    let pager = machine.fork(30, None, true);
    machine.state.borrow_mut().processes.get_mut(&other).expect("it lives").uid = 7;
    machine.owner = Some(1000);
    let mut engine = engine(&machine, Backend::Cgroup);
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
