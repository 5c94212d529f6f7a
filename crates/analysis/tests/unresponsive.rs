// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that stay away from their event loop though no input is late.

mod support;

use support::locks::FUTEX;
use support::words::word;
use support::{APP, DRAW_TEXT, KEY_PRESS, Machinery, SERVER, WINDOW, tid};
use tipme_analysis::model::{CauseKind, Interval};
use tipme_record::wayland::{ENTERED, NEAR, PRESSED, RELEASED};

const POLL: i32 = 7;
/// Holds a lock that the editor waits for.
const HOLDER: u32 = 500;
/// Another program on the display, and a thread of the editor that receives no input.
const OTHER: u32 = 600;
const WORKER: u32 = 205;
/// A thread of the editor that receives input for the first one.
const READER: u32 = 206;
/// Request to redraw a window.
const EXPOSE: [u8; 4] = [12, 0, 0, 0];
const BUTTON_PRESS: [u8; 4] = [4, 0, 0, 0];

const HANG: u64 = 3_250_000;
const HANG_ENDS: u64 = 5_250_000;
const MARK: u64 = 7_000_000;

/// An editor that waits for its events in a poll of three files; ten keys from 100 ms on.
fn editor() -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(HOLDER, HOLDER, 1, "indexer", 1).task(WORKER, APP, 1, "editor", 1);
    machine.task(OTHER, OTHER, 1, "mail", 1);
    for key in 0..10 {
        key_at(&mut machine, 100_000 + 200_000 * key);
    }
    machine
}

/// A key that finds the editor in its poll, and is drawn.
fn key_at(machine: &mut Machinery, us: u64) {
    machine.press(us).draw(us + 600);
    polled(machine, us + 100, us - 100_000);
}

fn polled(machine: &mut Machinery, until: u64, from: u64) {
    machine.wait(until + 1, APP, from, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 250]));
}

/// A thread's timer expires on CPU 1 while it waits in its poll.
fn timer(machine: &mut Machinery, us: u64, thread: u32) {
    machine.wake_from(us, thread, 0, 2, 1).switch(us + 10, 1, thread, 0);
    machine
        .wait(us + 1, thread, us - 200_000, |wait| (wait.syscall, wait.args) = (POLL, [1, 3, 250]));
}

/// From a timer on the editor waits for the holder's lock, and draws when it has it.
fn lock_by_timer(machine: &mut Machinery) {
    timer(machine, HANG, APP);
    machine.switch(HANG + 50, 1, 0, 1);
    machine.get_lock(HANG + 50, HANG_ENDS, HOLDER);
    machine.switch(HANG_ENDS + 50, 1, APP, 0).draw(HANG_ENDS + 100);
}

/// From a timer on the editor computes, and draws in the end.
fn compute_by_timer(machine: &mut Machinery) {
    timer(machine, HANG, APP);
    machine.draw(HANG_ENDS);
}

/// The server sends an event to the editor while it is away, and the editor receives it in the end.
fn expose(machine: &mut Machinery, us: u64, taken: u64) {
    machine.message(us, SERVER, WINDOW, 2, 32, &[EXPOSE]).message(taken, APP, WINDOW, 3, 32, &[]);
}

/// Returns the interval, and the kinds of the findings.
fn outline(machine: &mut Machinery) -> (Interval, Vec<CauseKind>) {
    let verdict = machine.diagnose(MARK);
    let kinds = verdict.findings.iter().map(|finding| finding.kind).collect();
    (verdict.interval.expect("there was input"), kinds)
}

fn assert_silent(machine: &mut Machinery) {
    let (interval, kinds) = outline(machine);
    assert!(!interval.exceeded && kinds.is_empty(), "{interval:#?} {kinds:?}");
}

/// Asserts the hang of the scenes, and the number of unread messages.
fn assert_hangs(machine: &mut Machinery, kind: CauseKind, untaken: usize) {
    let (interval, kinds) = outline(machine);
    let (class, milestone) = (interval.class.as_str(), interval.milestone.as_str());
    assert_eq!(
        (class, milestone, interval.latency_ms.round() as u64),
        ("activity", "handled", 2_000),
        "{interval:#?}"
    );
    assert_eq!((kinds, interval.untaken), (vec![kind], untaken));
}

#[test]
fn a_button_that_acts_by_a_timer_hangs_after_its_answer() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    lock_by_timer(&mut machine);
    assert_hangs(&mut machine, CauseKind::LockWait, 0);
    let verdict = machine.diagnose(MARK);
    let since =
        verdict.interval.and_then(|interval| interval.since_input_ms).expect("there was a key");
    assert!((240.0..255.0).contains(&since), "{since} ms");
    assert!(
        verdict.notes.iter().any(|note| note.contains("did not return to its event loop")),
        "{:?}",
        verdict.notes
    );
}

#[test]
fn what_computes_after_a_key_that_was_answered_hangs() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    compute_by_timer(&mut machine);
    assert_hangs(&mut machine, CauseKind::OwnComputation, 0);
}

#[test]
fn what_is_still_away_at_the_mark_is_unfinished() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    timer(&mut machine, HANG, APP);
    let (interval, kinds) = outline(&mut machine);
    assert_eq!((interval.milestone.as_str(), interval.censored), ("hanging", true));
    assert_eq!(
        (interval.latency_ms.round() as u64, kinds),
        (3_750, vec![CauseKind::OwnComputation])
    );
}

#[test]
fn what_lay_before_a_program_says_that_it_hung_without_a_key() {
    let mut machine = editor();
    compute_by_timer(&mut machine);
    assert_silent(&mut machine);
    expose(&mut machine, HANG + 300_000, HANG_ENDS + 3);
    assert_hangs(&mut machine, CauseKind::OwnComputation, 1);
}

#[test]
fn what_lay_shortly_is_not_missed() {
    let mut machine = editor();
    compute_by_timer(&mut machine);
    expose(&mut machine, HANG_ENDS - 300_000, HANG_ENDS + 3);
    assert_silent(&mut machine);
}

/// A program that computes, and gives a sign of life five times a second, is responsive.
fn assert_responsive(meanwhile: impl Fn(&mut Machinery, u64)) {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    compute_by_timer(&mut machine);
    (HANG..HANG_ENDS).step_by(200_000).for_each(|us| meanwhile(&mut machine, us));
    assert_silent(&mut machine);
}

#[test]
fn a_program_that_computes_but_takes_its_events_is_responsive() {
    assert_responsive(|machine, us| expose(machine, us + 50_000, us + 60_000));
}

#[test]
fn a_program_that_computes_but_draws_is_responsive() {
    assert_responsive(|machine, us| {
        machine.message(us + 50_000, APP, WINDOW, 0, 20, &[DRAW_TEXT]);
        machine.message(us + 60_000, SERVER, WINDOW, 1, 20, &[]);
    });
}

#[test]
fn a_thread_that_takes_no_input_may_compute() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    timer(&mut machine, HANG, WORKER);
    machine.switch(HANG_ENDS, 1, 0, 1);
    assert_silent(&mut machine);
}

/// The server has an input for the editor, and the editor's reader thread runs.
fn input_for_reader(machine: &mut Machinery, us: u64, input: [u8; 4]) {
    machine.wake_from(us, SERVER, 0, 2, 0).switch(us + 20, 0, SERVER, 0);
    machine.wake_from(us + 100, READER, SERVER, 0, 1);
    machine.message(us + 102, SERVER, WINDOW, 2, 32, &[input]).switch(us + 150, 0, 0, 1);
    machine.switch(us + 200, 1, READER, 0);
    machine
        .wait(us + 101, READER, us - 100_000, |wait| (wait.syscall, wait.args) = (POLL, [1, 1, 0]));
}

/// The reader receives the key and hands it to the first thread, which draws.
fn passed_on(machine: &mut Machinery, us: u64) {
    input_for_reader(machine, us, KEY_PRESS);
    machine.message(us + 250, READER, WINDOW, 3, 32, &[]);
    machine.wake(us + 300, APP, READER).switch(us + 310, 1, APP, 1).draw(us + 600);
}

/// The same with the first thread in a poll, as in Qt.
fn handed_over(machine: &mut Machinery, us: u64) {
    passed_on(machine, us);
    polled(machine, us + 300, us - 100_000);
}

/// The editor's first thread waits in a condition until `until`, as in Java.
fn in_condition(machine: &mut Machinery, until: u64) {
    machine.wait(until + 1, APP, until - 100_000, |wait| {
        (wait.syscall, wait.args, wait.waker) = (FUTEX, [64, 0x189, 0], tid(READER));
    });
}

/// The first thread sends the server a request, like all threads that draw: the reply finds it in a
/// poll.
fn asked(machine: &mut Machinery, us: u64) {
    machine.message(us, SERVER, WINDOW, 2, 32, &[EXPOSE]).wake_from(us + 5, APP, SERVER, 0, 1);
    machine.switch(us + 20, 1, APP, 0).message(us + 30, APP, WINDOW, 3, 32, &[]).switch(
        us + 60,
        1,
        0,
        1,
    );
    machine.wait(us + 6, APP, us - 40_000, |wait| {
        (wait.syscall, wait.args) = (POLL, [1, 1, u64::MAX])
    });
}

#[test]
fn a_thread_that_takes_one_input_itself_is_then_done() {
    let mut machine = Machinery::with_app("editor");
    machine.task(READER, APP, 1, "editor", 1);
    for key in 0..10 {
        passed_on(&mut machine, 100_000 + 200_000 * key);
        in_condition(&mut machine, 100_300 + 200_000 * key);
        asked(&mut machine, 200_000 + 200_000 * key);
    }
    input_for_reader(&mut machine, 3_000_000, BUTTON_PRESS);
    machine.wake(3_000_300, APP, READER).switch(3_000_310, 1, APP, 1).message(
        3_000_350,
        APP,
        WINDOW,
        3,
        32,
        &[],
    );
    in_condition(&mut machine, 3_000_300);
    machine.draw(3_000_600);
    passed_on(&mut machine, 5_000_000);
    machine.wait(5_000_301, APP, 3_000_610, |wait| {
        (wait.syscall, wait.args, wait.waker) = (FUTEX, [64, 0x189, 0], tid(READER));
    });
    assert_silent(&mut machine);
}

/// Ten keys are handed over; after the last one the first thread waits in another condition, which
/// no thread ends.
fn elsewhere_at_the_mark(machine: &mut Machinery) {
    machine.task(READER, APP, 1, "editor", 1).task(WORKER, APP, 1, "editor", 1);
    for key in 0..10 {
        passed_on(machine, 100_000 + 200_000 * key);
        in_condition(machine, 100_300 + 200_000 * key);
    }
    machine.still_waiting(MARK, APP, 1_900_720, |wait| {
        (wait.syscall, wait.args) = (FUTEX, [4_096, 0x189, 0])
    });
}

#[test]
fn a_thread_that_waits_for_its_next_job_elsewhere_is_done() {
    let mut machine = Machinery::with_app("editor");
    elsewhere_at_the_mark(&mut machine);
    machine.switch(1_900_720, 1, 0, 1);
    assert_silent(&mut machine);
}

#[test]
fn a_thread_that_waits_for_one_that_it_woke_is_not_done() {
    let mut machine = Machinery::with_app("editor");
    elsewhere_at_the_mark(&mut machine);
    machine.wake(1_900_400, WORKER, APP).switch(1_900_720, 1, WORKER, 1);
    let (interval, kinds) = outline(&mut machine);
    assert!(interval.censored && interval.latency_ms > 5_000.0, "{interval:#?}");
    assert_eq!(kinds, [CauseKind::LockWait]);
}

#[test]
fn a_handler_of_received_events_hangs_in_a_condition() {
    let mut machine = Machinery::with_app("editor");
    machine.task(READER, APP, 1, "editor", 1).task(WORKER, APP, 1, "editor", 1);
    for key in 0..10 {
        handed_over(&mut machine, 100_000 + 200_000 * key);
    }
    handed_over(&mut machine, 3_000_000);
    timer(&mut machine, HANG, APP);
    machine.wake(HANG + 40, WORKER, APP).switch(HANG + 50, 1, WORKER, 1);
    machine.wake(HANG_ENDS, APP, WORKER).switch(HANG_ENDS + 10, 1, APP, 1).draw(HANG_ENDS + 100);
    machine.wait(HANG_ENDS + 1, APP, HANG + 50, |wait| {
        (wait.syscall, wait.args, wait.waker) = (FUTEX, [64, 0x189, 0], tid(WORKER));
    });
    assert_hangs(&mut machine, CauseKind::LockWait, 0);
}

#[test]
fn a_program_that_waits_for_events_may_receive_some() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    machine.message(HANG, SERVER, WINDOW, 2, 32, &[EXPOSE]);
    assert_silent(&mut machine);
}

#[test]
fn a_program_is_not_missed_while_another_is_used() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    machine.press_for(3_100_000, OTHER);
    lock_by_timer(&mut machine);
    assert_silent(&mut machine);
}

#[test]
fn what_is_short_is_not_missed() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    timer(&mut machine, HANG, APP);
    machine.draw(HANG + 450_000);
    assert_silent(&mut machine);
}

/// The key is received only in the end, and itself reports most of the delay.
#[test]
fn a_late_input_reports_the_same_delay() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    timer(&mut machine, HANG, APP);
    machine.press_more(HANG + 400_000, HANG_ENDS - 50);
    machine.draw(HANG_ENDS);
    let (interval, kinds) = outline(&mut machine);
    assert_eq!((interval.class.as_str(), kinds), ("key", vec![CauseKind::OwnComputation]));
}

/// A key that comes late in the time for which the editor computes, after an earlier event from the
/// server.
fn key_meanwhile(machine: &mut Machinery) {
    timer(machine, HANG, APP);
    expose(machine, HANG + 5_000, HANG_ENDS - 60);
    machine.press_more(HANG + 800_000, HANG_ENDS - 50);
    machine.draw(HANG_ENDS);
}

#[test]
fn a_program_is_not_missed_before_its_first_ignored_key() {
    let mut machine = editor();
    key_meanwhile(&mut machine);
    let (interval, kinds) = outline(&mut machine);
    assert_eq!(
        (interval.class.as_str(), interval.latency_ms.round() as u64),
        ("key", 1_200),
        "{interval:#?}"
    );
    assert_eq!(kinds, [CauseKind::OwnComputation]);
}

#[test]
fn a_hang_after_a_key_lasts_longer_than_the_next_key() {
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    key_meanwhile(&mut machine);
    let (interval, kinds) = outline(&mut machine);
    assert_eq!(
        (interval.class.as_str(), interval.latency_ms.round() as u64),
        ("activity", 2_000),
        "{interval:#?}"
    );
    assert_eq!(kinds, [CauseKind::OwnComputation]);
}

/// Objects of the editor on a compositor.
const KEYBOARD: u32 = 8;
const SURFACE: u32 = 9;
const CALLBACK: u32 = 30;
const REQUEST_SENT: u8 = 0;
const REQUEST_TAKEN: u8 = 1;
const EVENT_SENT: u8 = 2;
const EVENT_TAKEN: u8 = 3;

/// The compositor sends the editor a key that is released at once; the editor shows a frame and
/// waits again.
fn wayland_key(machine: &mut Machinery, us: u64) {
    let keys = [PRESSED, RELEASED]
        .map(|how| word(KEYBOARD, 3, 6, how | NEAR, ((1_000_000 + us) / 1_000) as u32));
    let frame =
        [word(SURFACE, 1, 5, 0, 0), word(SURFACE, 3, 3, 0, CALLBACK), word(SURFACE, 6, 2, 0, 0)];
    machine.wake_from(us, SERVER, 0, 2, 0).switch(us + 20, 0, SERVER, 0);
    machine.wake_from(us + 100, APP, SERVER, 0, 1);
    machine.wl_message(us + 102, SERVER, APP, EVENT_SENT, &keys).switch(us + 150, 0, 0, 1);
    machine.switch(us + 200, 1, APP, 0).wl_message(us + 250, APP, APP, EVENT_TAKEN, &[]);
    machine.wake(us + 600, SERVER, APP).wl_message(us + 602, APP, APP, REQUEST_SENT, &frame);
    machine.switch(us + 610, 1, 0, 1).switch(us + 650, 0, SERVER, 0);
    machine.wl_message(us + 660, SERVER, APP, REQUEST_TAKEN, &[]).switch(us + 800, 0, 0, 1);
    polled(machine, us + 100, us - 100_000);
}

/// An editor on a compositor that computes from a timer on; the compositor sends a frame callback
/// meanwhile.
fn wayland_editor(keys: u64) -> Machinery {
    let mut machine = Machinery::with_app("editor");
    let entered = [word(KEYBOARD, 1, 5, ENTERED, SURFACE)];
    machine.wl_message(50_000, SERVER, APP, EVENT_SENT, &entered);
    machine.wl_message(50_100, APP, APP, EVENT_TAKEN, &[]);
    for key in 0..keys {
        wayland_key(&mut machine, 100_000 + 200_000 * key);
    }
    timer(&mut machine, HANG, APP);
    let done = [word(CALLBACK, 0, 3, 0, 0)];
    machine.wl_message(HANG + 5_000, SERVER, APP, EVENT_SENT, &done);
    machine.switch(HANG_ENDS, 1, 0, 1);
    machine
}

#[test]
fn an_unread_event_of_a_compositor_shows_a_hang() {
    let mut machine = wayland_editor(10);
    assert_hangs(&mut machine, CauseKind::OwnComputation, 1);
}

#[test]
fn a_program_that_starts_is_not_missed() {
    let mut machine = wayland_editor(0);
    machine.fork(10_000, 1, APP);
    assert_eq!(machine.diagnose(MARK).findings, []);
}

/// The kernel resumes the poll with another system call, and the editor receives no further event.
#[test]
fn a_program_that_was_continued_is_back_in_its_poll() {
    const STOPPED: u16 = 4;
    const RESTART: i32 = 219;
    let mut machine = editor();
    key_at(&mut machine, 3_000_000);
    machine.wake(HANG, APP, OTHER).switch(HANG + 10, 1, APP, 0).switch(HANG + 20, 1, 0, STOPPED);
    machine.wake(HANG_ENDS, APP, OTHER).switch(HANG_ENDS + 10, 1, APP, 0);
    machine.switch(HANG_ENDS + 20, 1, 0, 1);
    polled(&mut machine, HANG, 3_000_610);
    let stack = machine.stack(&["schedule", "do_sys_poll"]);
    machine.still_waiting(MARK, APP, HANG_ENDS + 20, |wait| {
        (wait.syscall, wait.args, wait.stack) = (RESTART, [1, 3, 250], stack);
    });
    assert_hangs(&mut machine, CauseKind::Stopped, 0);
}
