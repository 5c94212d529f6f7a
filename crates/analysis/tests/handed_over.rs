// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs with a first thread that receives the keys, hands the work to another one, and draws
//! its result.

mod support;

use support::locks::FUTEX;
use support::verdicts::outline;
use support::{APP, Machinery, tid};
use tipme_analysis::model::CauseKind;

const POLL: i32 = 7;
/// The worker thread, and its CPU.
const THREAD: u32 = 205;
const CPU: u32 = 2;
/// Another program that competes for that CPU.
const RIVAL: u32 = 500;

/// Futex of the thread's wait for work, and another one.
const USUAL: u64 = 64;
const ELSEWHERE: u64 = 4_096;

fn editor() -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(THREAD, APP, 1, "editor", 1).task(RIVAL, RIVAL, 1, "rival", 1);
    machine
}

/// The editor waited until `until` in its poll of three files with a timeout of 16 ms.
fn polled(machine: &mut Machinery, from: u64, until: u64) {
    machine.wait(until + 1, APP, from, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 16]));
}

/// The thread waited until `until` for work, which the editor hands to it.
fn given(machine: &mut Machinery, from: u64, until: u64, place: u64) {
    machine.wake_from(until, THREAD, APP, 0, CPU as u16).wait(until + 1, THREAD, from, |wait| {
        (wait.syscall, wait.args, wait.waker) = (FUTEX, [place, 0x189, 0], tid(APP));
    });
}

/// The thread runs for 5 ms and wakes the editor, which goes back to its poll.
fn work(machine: &mut Machinery, us: u64, polls_from: u64) {
    machine.switch(us, CPU, THREAD, 0).wake_from(us + 5_000, APP, THREAD, 0, 1);
    machine.switch(us + 5_010, CPU, 0, 1);
    machine.switch(us + 5_020, 1, APP, 0);
    polled(machine, polls_from, us + 5_000);
}

/// A key for the thread, which waited at `place` since `since`; the editor draws the result.
fn key_at(machine: &mut Machinery, us: u64, since: u64, place: u64) {
    machine.press(us);
    polled(machine, since, us + 100);
    given(machine, since, us + 300, place);
    machine.switch(us + 310, 1, 0, 1);
    work(machine, us + 320, us + 310);
    machine.draw(us + 5_500);
}

/// Ten keys, the last of them at 1.9 s.
fn keys() -> Machinery {
    let mut machine = editor();
    for key in 0..10 {
        let us = 100_000 + 200_000 * key;
        key_at(&mut machine, us, us.saturating_sub(194_490), USUAL);
    }
    machine
}

#[test]
fn what_the_next_key_leads_to_completes_none_before() {
    let mut machine = keys();
    key_at(&mut machine, 3_300_000, 1_905_510, ELSEWHERE);
    let (_, latency, kinds) = outline(&machine.diagnose(5_000_000));
    assert!(latency < 10 && kinds.is_empty(), "{latency} ms {kinds:?}");
}

#[test]
fn a_thread_that_waits_elsewhere_for_a_timer_is_not_done() {
    let mut machine = keys();
    machine.wake_from(3_300_000, APP, 0, 2, 1).switch(3_300_010, 1, APP, 0);
    polled(&mut machine, 1_905_510, 3_300_000);
    given(&mut machine, 1_905_330, 3_300_300, ELSEWHERE);
    machine.switch(3_300_310, 1, 0, 1);
    work(&mut machine, 3_300_320, 3_300_310);
    machine.draw(3_305_500);
    let (milestone, latency, _) = outline(&machine.diagnose(5_000_000));
    assert_eq!((milestone.as_str(), latency), ("completed", 1_406));
}

/// The editor receives a key at 3.3 s while `busy` computes from 3.2 to 4.4 s, woken by a timer and
/// not for the key; then `waker` wakes the editor, which draws.
fn key_beside(machine: &mut Machinery, busy: u32, waker: (u32, u8)) {
    machine.wake_from(3_200_000, busy, 0, 2, CPU as u16).switch(3_200_010, CPU, busy, 0);
    machine.press(3_300_000);
    polled(machine, 1_905_510, 3_300_100);
    machine.switch(3_300_310, 1, 0, 1).wake_from(4_400_000, APP, waker.0, waker.1, 1);
    machine.switch(4_400_010, CPU, 0, 1);
    machine.switch(4_400_020, 1, APP, 0);
    polled(machine, 3_300_310, 4_400_000);
    machine.draw(4_400_500);
}

#[test]
fn a_key_waits_for_its_usual_service_that_computes() {
    let mut machine = keys();
    key_beside(&mut machine, THREAD, (THREAD, 0));
    let (milestone, latency, kinds) = outline(&machine.diagnose(5_000_000));
    assert_eq!(
        (milestone.as_str(), latency, kinds),
        ("response", 1_101, vec![CauseKind::OwnComputation])
    );
}

#[test]
fn a_key_does_not_wait_for_computation_without_an_answer() {
    let mut machine = keys();
    key_beside(&mut machine, RIVAL, (0, 2));
    let (_, latency, kinds) = outline(&machine.diagnose(5_000_000));
    assert!(latency < 10 && kinds.is_empty(), "{latency} ms {kinds:?}");
}
