// SPDX-License-Identifier: MIT OR Apache-2.0
//! Milestones of inputs: a program that draws at once and then hangs has not answered quickly.

mod support;

use support::locks::FUTEX;
use support::verdicts::outline;
use support::{APP, DRAW_TEXT, Machinery, SERVER, WINDOW};
use tipme_analysis::model::{CauseKind, Verdict};
use tipme_record::incident::StoredBaseline;

const POLL: i32 = 7;
/// A request of X11 that has a reply, and a reply.
const GET_KEYBOARD_MAPPING: [u8; 4] = [101, 0, 2, 0];
const REPLY: [u8; 4] = [1, 0, 0, 0];
/// A process that holds a lock.
const HOLDER: u32 = 500;
/// The thread of the program that does the work, and one between it and the input thread.
const WRITER: u32 = 205;
const BETWEEN: u32 = 206;
const FLOCK: i32 = 73;

/// An editor that waits for its events in a poll of three files; ten keys from 100 ms on.
fn editor() -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(HOLDER, HOLDER, 1, "indexer", 1);
    for key in 0..10 {
        key_at(&mut machine, 100_000 + 200_000 * key);
    }
    machine
}

/// A key that finds the editor in its poll, and is drawn.
fn key_at(machine: &mut Machinery, us: u64) {
    machine.press(us).draw(us + 600);
    machine.wait(us + 101, APP, us - 100_000, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 0]));
}

/// The editor waits for the holder's lock from 700 µs after a key that is drawn at once, until
/// `until`.
fn lock_after(machine: &mut Machinery, us: u64, until: u64) {
    key_at(machine, us);
    machine.wake_from(us + 650, APP, 0, 2, 1).switch(us + 660, 1, APP, 0).switch(us + 700, 1, 0, 1);
    machine.get_lock(us + 700, until, HOLDER).switch(until + 50, 1, APP, 0);
    machine.switch(until + 200, 1, 0, 1);
}

#[test]
fn a_program_that_draws_at_once_and_then_hangs_is_not_done() {
    let mut machine = editor();
    lock_after(&mut machine, 3_000_000, 5_000_000);
    key_at(&mut machine, 5_500_000);
    assert_eq!(
        outline(&machine.diagnose(7_000_000)),
        ("handled".to_owned(), 2_000, vec![CauseKind::LockWait])
    );
}

/// Another thread of the editor draws all the time, like an animation.
#[test]
fn a_program_that_goes_on_drawing_is_recognised() {
    for (drawings, is_drawing) in [(0, false), (2, false), (19, true)] {
        let mut machine = editor();
        machine.task(WRITER, APP, 1, "editor", 1);
        for us in (0..drawings).map(|number| 3_050_000 + 100_000 * number) {
            machine.switch(us, 2, WRITER, 0).message(
                us + 2,
                WRITER,
                (2, APP),
                0,
                20,
                &[support::DRAW_TEXT],
            );
            machine.switch(us + 10, 2, 0, 1);
        }
        lock_after(&mut machine, 3_000_000, 5_000_000);
        key_at(&mut machine, 5_500_000);
        let interval = machine.diagnose(7_000_000).interval.expect("there was input");
        assert_eq!(
            (interval.milestone.as_str(), interval.latency_ms.round()),
            ("handled", 2_000.0)
        );
        assert_eq!(interval.drew, is_drawing, "{drawings}");
    }
}

/// A button of the editor is released, and the editor acquires the lock only then.
#[test]
fn a_program_acts_when_the_button_is_released() {
    let mut machine = editor();
    machine.press(3_000_000).draw(3_000_600);
    machine.wait(3_000_101, APP, 2_900_000, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 0]));
    machine.release_button(3_100_000);
    machine.wait(3_100_101, APP, 3_000_700, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 0]));
    machine.switch(3_100_700, 1, 0, 1);
    machine.get_lock(3_100_700, 5_000_000, HOLDER).switch(5_000_050, 1, APP, 0);
    machine.switch(5_000_200, 1, 0, 1);
    key_at(&mut machine, 5_500_000);
    assert_eq!(
        outline(&machine.diagnose(7_000_000)),
        ("handled".to_owned(), 1_900, vec![CauseKind::LockWait])
    );
}

/// At the mark the editor still waits for a thread of its own, which waits for a file lock. Another
/// thread has gone idle.
#[test]
fn a_wait_for_an_own_thread_leads_to_that_threads_wait() {
    let mut machine = editor();
    machine.task(WRITER, APP, 1, "editor", 1).task(BETWEEN, APP, 1, "editor", 1);
    machine.press(3_000_000).wake_from(3_000_300, WRITER, APP, 0, 0);
    machine.wake_from(3_000_310, BETWEEN, APP, 0, 0);
    machine.switch(3_000_400, 1, 0, 1).switch(3_000_410, 0, WRITER, 0);
    machine.switch(3_000_500, 0, BETWEEN, 1);
    machine.switch(3_000_600, 0, 0, 1);
    machine.still_waiting(5_000_000, APP, 3_000_400, |wait| {
        (wait.syscall, wait.args) = (FUTEX, [64, 0x189, 0])
    });
    machine.still_waiting(5_000_000, BETWEEN, 3_000_600, |wait| {
        (wait.syscall, wait.args) = (FUTEX, [96, 0x189, 0])
    });
    machine.still_waiting(5_000_000, WRITER, 3_000_500, |wait| {
        (wait.syscall, wait.inode) = (FLOCK, 77)
    });
    machine.locks.proc_locks = format!("1: FLOCK  ADVISORY  WRITE {HOLDER} fe:00:77 0 EOF\n");
    let verdict = machine.diagnose(5_000_000);
    let culprit =
        verdict.findings.first().map(|finding| (finding.kind, format!("{:?}", finding.culprit)));
    let (kind, culprit) = culprit.expect("it hangs");
    assert!(kind == CauseKind::LockWait && culprit.contains("indexer"), "{kind:?} {culprit}");
}

/// At the mark the editor still reads a counter that a timer of its own is to set.
#[test]
fn an_answer_that_no_process_owes_has_no_sender() {
    let mut machine = editor();
    let stack = machine.stack(&["schedule", "eventfd_read", "vfs_read"]);
    machine.press(3_000_000).switch(3_000_400, 1, 0, 1);
    machine
        .still_waiting(5_000_000, APP, 3_000_400, |wait| (wait.syscall, wait.stack) = (0, stack));
    let verdict = machine.diagnose(5_000_000);
    let finding = verdict.findings.first().expect("it hangs");
    assert_eq!(finding.kind, CauseKind::PeerWait);
    assert_eq!(finding.evidence[0], "editor waited for an answer from an unknown process");
    assert!(finding.remedy.ends_with("strace -f -T -p 200"), "{}", finding.remedy);
}

/// After a key the editor waits for a signal that does not come, until a timeout.
#[test]
fn a_wait_for_a_signal_until_its_timeout_is_a_sleep() {
    const RT_SIGTIMEDWAIT: i32 = 128;
    let mut machine = editor();
    machine.press(3_000_000).switch(3_000_300, 1, 0, 1).wake_from(3_900_000, APP, 0, 2, 1);
    machine.wait(3_900_000, APP, 3_000_300, |wait| {
        (wait.syscall, wait.args, wait.context) = (RT_SIGTIMEDWAIT, [64, 0, 128], 2);
    });
    machine.switch(3_900_100, 1, APP, 0).draw(3_900_500);
    let (milestone, ms, kinds) = outline(&machine.diagnose(7_000_000));
    assert_eq!((milestone.as_str(), ms, kinds), ("response", 901, vec![CauseKind::TimerSleep]));
}

#[test]
fn what_is_handled_within_half_a_second_is_not_noticed() {
    let mut machine = editor();
    lock_after(&mut machine, 3_000_000, 3_450_000);
    key_at(&mut machine, 5_500_000);
    let (milestone, _, kinds) = outline(&machine.diagnose(7_000_000));
    assert_eq!((milestone.as_str(), kinds), ("response", Vec::new()));
}

#[test]
fn the_wait_of_an_event_loop_is_no_work() {
    let mut machine = editor();
    key_at(&mut machine, 5_500_000);
    let listed = machine.timed(9_000_000);
    let handled = listed.iter().map(|one| one.handled_ns.map(|at| (at - one.input_ns) / 1_000));
    assert_eq!(handled.collect::<Vec<_>>(), vec![Some(598); 11]);
}

/// Learned baseline of keys in the editor up to a milestone.
fn learned(milestone: &str, p50_ms: u64) -> StoredBaseline {
    let (class, application, milestone) =
        ("key".to_owned(), "editor".to_owned(), milestone.to_owned());
    let p50_ns = p50_ms * 1_000_000;
    StoredBaseline {
        class,
        application,
        milestone,
        n: 3_000,
        p50_ns,
        p98_ns: 2 * p50_ns,
        max_ns: 3 * p50_ns,
    }
}

/// A key that finds the program busy for a long time, without other keys for comparison.
fn alone(baselines: Vec<StoredBaseline>) -> Verdict {
    let mut machine = Machinery::with_app("editor");
    machine.task(HOLDER, HOLDER, 1, "indexer", 1);
    key_at(&mut machine, 2_900_000);
    lock_after(&mut machine, 3_000_000, 5_000_000);
    key_at(&mut machine, 5_500_000);
    machine.baselines = baselines;
    machine.diagnose(7_000_000)
}

#[test]
fn a_milestone_is_held_against_what_was_learned_of_it() {
    let verdict = alone(vec![learned("", 2)]);
    assert_eq!(outline(&verdict).0, "handled");
    assert!(verdict.baseline.is_none_or(|known| !known.stored), "that of responses was learned");
    let handled = alone(vec![learned("", 2), learned("handled", 700)]).baseline;
    let known = handled.map(|known| (known.n, known.stored, known.p50_ms));
    assert_eq!(known, Some((3_000, true, Some(700.0))));
}

/// The editor draws a key at once, computes until `until`, and draws again.
fn drawn_twice(machine: &mut Machinery, us: u64, until: u64) {
    key_at(machine, us);
    machine.wake_from(us + 650, APP, 0, 2, 1).switch(us + 660, 1, APP, 0).draw(until);
}

#[test]
fn a_completion_is_held_against_other_completions() {
    let mut machine = editor();
    drawn_twice(&mut machine, 3_000_000, 5_000_000);
    key_at(&mut machine, 5_500_000);
    let verdict = machine.diagnose(7_000_000);
    let baseline = verdict.baseline.as_ref().expect("others were completed");
    assert_eq!(
        (outline(&verdict).0.as_str(), baseline.n, baseline.stored),
        ("completed", 11, false)
    );
    assert!(baseline.max_ms < 2.0, "{baseline:?}");
}

/// The editor draws and goes on.
fn drawn(machine: &mut Machinery, us: u64) {
    machine.wake(us, SERVER, APP).message(us + 2, APP, WINDOW, 0, 20, &[DRAW_TEXT]).switch(
        us + 50,
        0,
        SERVER,
        0,
    );
    machine.message(us + 60, SERVER, WINDOW, 1, 20, &[]).switch(us + 200, 0, 0, 1);
}

/// Another process has the editor's CPU for a time, if `starved`.
fn away(machine: &mut Machinery, starved: bool, lo: u64, hi: u64) {
    if starved {
        machine.switch(lo, 1, HOLDER, 0).switch(hi, 1, APP, 0);
    }
}

/// The editor is kept from its CPU, or computes, between three steps: it receives a second key,
/// draws it, and goes idle.
fn two_keys(starved: bool) -> (String, u64, Vec<CauseKind>) {
    let mut machine = editor();
    machine.press(3_000_000);
    machine.wait(3_000_101, APP, 2_900_000, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 0]));
    drawn(&mut machine, 3_000_600);
    away(&mut machine, starved, 3_001_000, 3_500_000);
    machine.press_more(3_100_000, 3_500_100);
    away(&mut machine, starved, 3_501_000, 3_700_000);
    drawn(&mut machine, 3_700_100);
    away(&mut machine, starved, 3_701_000, 4_300_000);
    machine.switch(4_300_100, 1, 0, 1);
    key_at(&mut machine, 5_500_000);
    outline(&machine.diagnose(7_000_000))
}

#[test]
fn a_starved_program_has_handled_a_key_at_the_next_answer() {
    assert_eq!(two_keys(true), ("response".to_owned(), 600, vec![CauseKind::CpuCompetition]));
    let (milestone, latency, _) = two_keys(false);
    assert_eq!(
        (milestone.as_str(), latency),
        ("handled", 1_300),
        "its own work may be on the first one"
    );
}

/// The editor takes a key, and asks the display server 200 times, which replies after 6 ms each
/// time; then it draws.
#[test]
fn a_program_in_round_trips_is_not_in_its_event_loop() {
    let mut machine = editor();
    let key = 2_500_000;
    machine.press(key);
    let mut us = key + 300;
    for _ in 0..200 {
        machine.message(us, APP, WINDOW, 0, 8, &[GET_KEYBOARD_MAPPING]).wake(us + 5, SERVER, APP);
        machine.switch(us + 10, 1, 0, 1).switch(us + 50, 0, SERVER, 0);
        machine.message(us + 60, SERVER, WINDOW, 1, 8, &[]).message(
            us + 5_990,
            SERVER,
            WINDOW,
            2,
            32,
            &[REPLY],
        );
        machine.wake_from(us + 5_995, APP, SERVER, 0, 1).switch(us + 6_000, 1, APP, 0);
        machine.switch(us + 6_005, 0, 0, 1);
        machine.wait(us + 5_996, APP, us + 10, |wait| {
            (wait.syscall, wait.args) = (POLL, [1, 1, u64::MAX])
        });
        machine.message(us + 6_010, APP, WINDOW, 3, 32, &[]);
        us += 6_020;
    }
    machine.draw(us);
    let all = machine.timed(6_000_000);
    let last = all.last().expect("there was input");
    assert_eq!(last.handled_ns.map(|at| (at - last.input_ns) / 1_000_000), Some(1_204));
}
