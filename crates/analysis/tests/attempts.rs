// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread that sleeps between two attempts at the same lock waits for it, and for its holder.

mod support;

use support::Machinery;
use support::verdicts::explained;
use tipme_analysis::Recording;
use tipme_analysis::model::{CauseKind, Culprit, Finding};
use tipme_record::{Device, Nanos};

/// A child of a shell that tries, sleeps, and tries again.
const TRIER: u32 = 700;
const SHELL: u32 = 699;
const SLEEPER: u32 = 701;
const HOLDER: u32 = 702;

const NANOSLEEP: i32 = 230;
const BY_TIMER: u8 = 2;

fn machine() -> Machinery {
    let mut machine = Machinery::new();
    machine.task(SHELL, SHELL, 1, "shell", 1).task(TRIER, TRIER, SHELL, "trier", 1);
    machine.task(HOLDER, HOLDER, 1, "holder", 1);
    machine.switch(500_000, 0, TRIER, 0);
    machine
}

/// A thread sleeps in `from..to`.
fn sleep(machine: &mut Machinery, tid: u32, from: u64, to: u64) {
    machine.switch(from, 0, 0, 1).wake_from(to, tid, 0, BY_TIMER, 0);
    machine.wait(to + 1, tid, from, |wait| {
        (wait.syscall, wait.context) = (NANOSLEEP, u16::from(BY_TIMER));
    });
    machine.switch(to + 10, 0, tid, 0);
}

/// Returns the largest finding on a thread between two times in milliseconds; the mark is at 4 s.
fn finding(machine: &mut Machinery, tid: u32, from_ms: u64, to_ms: u64) -> Finding {
    let recording =
        Recording::read(&machine.incident(4_000_000)).expect("the scene is well formed");
    let explanation =
        explained(&recording, tid, (from_ms, to_ms), Nanos(0)).expect("the incident holds it");
    explanation.findings.into_iter().next().expect("there is a cause")
}

fn is_held_by(finding: &Finding, holder: u32) {
    assert_eq!(finding.kind, CauseKind::LockWait, "{finding:?}");
    assert!(
        matches!(&finding.culprit, Culprit::Process { pid, .. } if *pid == holder),
        "{finding:?}"
    );
}

#[test]
fn a_sleep_between_two_tries_is_a_wait_for_the_lock() {
    let mut machine = machine();
    machine.files.push(tipme_record::incident::FileName {
        device: Device(0).0,
        inode: 55,
        path: "/tmp/data".into(),
    });
    machine.attempt(1_000_000, TRIER, HOLDER, 1);
    sleep(&mut machine, TRIER, 1_000_100, 1_500_000);
    machine.attempt(1_500_100, TRIER, HOLDER, 1);
    sleep(&mut machine, TRIER, 1_500_200, 2_000_000);
    machine.attempt(2_000_100, TRIER, 0, 0);
    let finding = finding(&mut machine, TRIER, 1_000, 2_000);
    is_held_by(&finding, HOLDER);
    assert!(finding.ms > 990.0, "{finding:?}");
    assert!(
        finding.evidence.iter().any(|line| line == "failed to lock /tmp/data 2 times"),
        "{finding:?}"
    );
}

#[test]
fn a_sleep_after_which_nobody_tries_is_a_sleep() {
    let mut machine = machine();
    machine.attempt(1_000_000, TRIER, HOLDER, 1);
    sleep(&mut machine, TRIER, 1_000_100, 1_500_000);
    sleep(&mut machine, TRIER, 1_500_200, 2_000_000);
    assert_eq!(finding(&mut machine, TRIER, 1_000, 2_000).kind, CauseKind::TimerSleep);
    // The attempt of another thread is unrelated.
    machine.attempt(2_000_100, HOLDER, 0, 0);
    assert_eq!(finding(&mut machine, TRIER, 1_000, 2_000).kind, CauseKind::TimerSleep);
}

#[test]
fn the_tries_of_children_are_the_wait_of_their_parent() {
    for (first_ends, kind) in [(1_000_200, CauseKind::LockWait), (1_500_000, CauseKind::TimerSleep)]
    {
        let mut machine = machine();
        machine.task(SLEEPER, SLEEPER, SHELL, "sleep", 1).task(710, 710, SHELL, "second", 1);
        machine.exit(first_ends, TRIER + 5, SHELL, SHELL, "first");
        machine.attempt(1_000_000, TRIER + 5, HOLDER, 1).switch(1_000_300, 0, SLEEPER, 1);
        sleep(&mut machine, SLEEPER, 1_001_000, 1_400_000);
        machine.attempt(1_450_000, 710, 0, 0);
        assert_eq!(finding(&mut machine, SLEEPER, 1_001, 1_400).kind, kind);
    }
}

#[test]
fn a_lock_whose_taker_has_ended_is_held_by_its_parent() {
    let mut machine = machine();
    machine.exit(900_000, 720, HOLDER, HOLDER, "flock").attempt(1_000_000, TRIER, 720, 1);
    sleep(&mut machine, TRIER, 1_000_100, 1_500_000);
    machine.attempt(1_500_100, TRIER, 0, 0);
    is_held_by(&finding(&mut machine, TRIER, 1_001, 1_500), HOLDER);
}

#[test]
fn a_taker_that_ends_between_two_tries_held_the_lock() {
    let mut machine = machine();
    machine.exit(1_200_000, 730, HOLDER, HOLDER, "fetcher").attempt(1_000_000, TRIER, 730, 1);
    sleep(&mut machine, TRIER, 1_000_100, 1_500_000);
    machine.attempt(1_500_100, TRIER, 0, 0);
    let finding = finding(&mut machine, TRIER, 1_001, 1_500);
    is_held_by(&finding, 730);
    assert!(finding.ms > 490.0, "{finding:?}");
}

#[test]
fn tries_that_last_at_the_mark_count_until_then() {
    for (last, kind) in [(3_000_000, CauseKind::LockWait), (1_400_000, CauseKind::TimerSleep)] {
        let mut machine = machine();
        machine.attempt(1_000_000, TRIER, HOLDER, 1);
        sleep(&mut machine, TRIER, 1_000_100, last - 100);
        machine.attempt(last, TRIER, HOLDER, 1).switch(last + 100, 0, 0, 1);
        machine.still_waiting(4_000_000, TRIER, last + 100, |wait| wait.syscall = NANOSLEEP);
        assert_eq!(finding(&mut machine, TRIER, last / 1_000 + 1, 4_000).kind, kind);
    }
}

#[test]
fn a_waiter_without_a_known_holder_does_not_hold_the_lock() {
    let mut machine = machine();
    machine.attempt(1_000_000, TRIER, 0, 1);
    sleep(&mut machine, TRIER, 1_000_100, 1_500_000);
    machine.attempt(1_500_100, TRIER, 0, 0);
    let finding = finding(&mut machine, TRIER, 1_001, 1_500);
    assert_eq!(finding.kind, CauseKind::LockWait);
    assert_eq!(
        finding.evidence[0], "trier waited for a lock; its holder is unknown",
        "{finding:?}"
    );
}
