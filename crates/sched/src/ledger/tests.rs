// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unanswered changes of units: they may happen later, and are restored nevertheless.
use super::*;
use crate::fake::{APP, FakeMachine, LOGIN, MemoryLog, ROOT};
use crate::units_names::Property;

const SCOPE: &str = "/cg/user.slice/user-1000.slice/tipme-7-8-9.scope";

fn weight() -> KnobPlace {
    KnobPlace::Unit { folder: APP.to_owned(), property: Property::CpuWeight }
}

/// Returns a machine with a process in a login, and its ledger.
fn fixture() -> (FakeMachine, MemoryLog, Ledger<FakeMachine, MemoryLog>, Identity) {
    let (machine, log) = (FakeMachine::new(), MemoryLog::default());
    let who = machine.fork(20, None, true);
    machine.put_into(who, LOGIN);
    let (ledger, _) = Ledger::open(machine.clone(), log.clone()).expect("memory is not a file");
    (machine, log, ledger, who)
}

fn put(ledger: &mut Ledger<FakeMachine, MemoryLog>, from: i64, to: i64) -> Done {
    let step = LedgerStep::first(weight(), to.into(), (-1).into());
    ledger.commit(vec![LedgerStep { from: from.into(), ..step }])
}

fn has(machine: &FakeMachine) -> Option<i64> {
    machine.state.borrow().units.get(&(APP.to_owned(), Property::CpuWeight)).copied()
}

#[test]
fn a_stop_soon_after_nobody_answered_takes_back() {
    let (machine, _, mut ledger, _) = fixture();
    assert_eq!(put(&mut ledger, -1, 500).changed, 1);
    machine.closed.set(true);
    assert_eq!(ledger.world.get(&weight()), Err(KnobFault::Refused(libc::ENOTCONN)));
    let restored = ledger.restore();
    assert_eq!((restored.restored, restored.failed, has(&machine)), (1, 0, None));
}

#[test]
fn a_change_that_comes_late_is_taken_back() {
    for first in [None, Some(300)] {
        for lands in [true, false] {
            let (machine, log, mut ledger, _) = fixture();
            first.into_iter().for_each(|number| drop(put(&mut ledger, -1, number)));
            machine.slow.set(true);
            let done = put(&mut ledger, first.unwrap_or(-1), 500);
            assert_eq!(done.failed, [(weight(), SkipReason::Refused(libc::ETIMEDOUT))]);
            machine.slow.set(false);
            if lands {
                machine.land();
                assert_eq!(has(&machine), Some(500));
            }
            // For the next run, which knows only the journal, and for this one.
            let cell = ledger.cell(&weight()).expect("it is still known");
            assert!(
                cell.has_applied(&500.into()) && cell.has_applied(&first.unwrap_or(-1).into()),
                "{cell:?}"
            );
            drop(ledger);
            let (_, restored) = Ledger::open(machine.clone(), log).expect("memory is not a file");
            assert_eq!(
                (restored.failed, restored.changed_by_others, has(&machine)),
                (0, 0, None),
                "{restored:?}"
            );
        }
    }
}

#[test]
fn a_late_restore_does_not_look_foreign() {
    let (machine, _, mut ledger, _) = fixture();
    put(&mut ledger, -1, 500);
    machine.slow.set(true);
    put(&mut ledger, 500, -1);
    machine.slow.set(false);
    machine.land();
    let cell = ledger.cell(&weight()).expect("it is still known");
    assert!(cell.has_applied(&(-1).into()) && cell.has_applied(&500.into()), "{cell:?}");
}

#[test]
fn a_scope_that_comes_late_is_known_and_left() {
    let (machine, log, mut ledger, who) = fixture();
    let scope = KnobPlace::Scope { folder: SCOPE.to_owned(), root: ROOT.to_owned(), first: who };
    machine.slow.set(true);
    let done = ledger.commit(vec![LedgerStep::create(scope.clone(), LOGIN.to_owned())]);
    assert_eq!(done.failed, [(scope, SkipReason::Refused(libc::ETIMEDOUT))]);
    machine.slow.set(false);
    drop(ledger);
    machine.land();
    assert_eq!(machine.group(who), SCOPE);
    let (_, restored) = Ledger::open(machine.clone(), log).expect("memory is not a file");
    assert_eq!((machine.group(who), restored.failed), (LOGIN.to_owned(), 0));
}
