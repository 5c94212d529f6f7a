// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that compute all the time: their lack of event waits is no hang, and real hangs are
//! reported all the same.

mod support;

use support::{APP, DRAW_TEXT, Machinery, SERVER, WINDOW};
use tipme_analysis::model::CauseKind;

/// Holds a lock that the program waits for, and takes its CPU.
const HOLDER: u32 = 500;
const WORKER: u32 = 205;

const MARK: u64 = 12_000_000;
/// Time of the last key that is answered as usual.
const LAST: u64 = 9_500_000;

/// A program that runs on CPU 1 from its start on.
fn busy_program() -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(HOLDER, HOLDER, 1, "indexer", 1).task(WORKER, APP, 1, "editor", 1);
    machine.wake_from(1_000, APP, 0, 2, 1).switch(1_100, 1, APP, 0);
    machine
}

/// The program draws and goes on.
fn frame(machine: &mut Machinery, us: u64) {
    machine.wake(us, SERVER, APP).message(us + 2, APP, WINDOW, 0, 20, &[DRAW_TEXT]).switch(
        us + 50,
        0,
        SERVER,
        0,
    );
    machine.message(us + 60, SERVER, WINDOW, 1, 20, &[]).switch(us + 200, 0, 0, 1);
}

/// The program receives a key a millisecond late, and draws after a while if the key has an answer.
fn key(machine: &mut Machinery, us: u64, answer: Option<u64>) {
    machine.press_more(us, us + 1_000);
    if let Some(after) = answer {
        frame(machine, us + after);
    }
}

/// An idle handler always has work: keys are drawn at once, except every fourth one, which needs no
/// answer.
fn idle_handler() -> Machinery {
    let mut machine = busy_program();
    for number in 0..19 {
        let answer = (number % 4 != 3).then_some(3_000);
        key(&mut machine, LAST - 500_000 * number, answer);
    }
    machine
}

/// A game draws 50 frames per second until `until`, and receives a key now and then.
fn game(until: u64) -> Machinery {
    let mut machine = busy_program();
    for us in (20_000..until).step_by(20_000) {
        frame(&mut machine, us);
    }
    for us in (505_000..LAST + 10_000).step_by(700_000) {
        key(&mut machine, us, None);
    }
    machine
}

/// Returns milestone, latency in milliseconds, and the kind of the first finding.
fn outline(machine: &mut Machinery) -> (String, u64, Option<CauseKind>) {
    let verdict = machine.diagnose(MARK);
    let interval = verdict.interval.expect("there was input");
    let first = verdict.findings.first().map(|finding| finding.kind);
    (interval.milestone, interval.latency_ms.round() as u64, first)
}

#[test]
fn keys_of_a_program_with_an_idle_handler_are_no_hangs() {
    assert_eq!(outline(&mut idle_handler()).2, None);
}

#[test]
fn keys_of_a_game_are_no_hangs() {
    assert_eq!(outline(&mut game(MARK)).2, None);
}

/// The habit is unknown when the first keys come, but the next ones were answered.
#[test]
fn a_program_that_answers_the_next_keys_handled_the_first() {
    let mut machine = idle_handler();
    let listed = machine.timed(MARK);
    let handled: Vec<_> =
        listed.iter().map(|one| one.handled_ns.map(|at| (at - one.input_ns) / 1_000)).collect();
    assert!(handled.len() >= 15 && handled.iter().all(|us| *us == Some(988)), "{handled:?}");
}

/// The program waits for the holder's lock in `from..until`, and draws afterwards.
fn lock(machine: &mut Machinery, from: u64, until: u64) {
    machine.switch(from, 1, 0, 1).get_lock(from, until, HOLDER).switch(until + 50, 1, APP, 0);
    frame(machine, until + 100);
}

#[test]
fn a_key_on_which_such_a_program_waits_for_a_lock_is_late() {
    let mut machine = idle_handler();
    key(&mut machine, 10_000_000, None);
    lock(&mut machine, 10_001_500, 11_000_000);
    assert_eq!(outline(&mut machine), ("response".to_owned(), 1_000, Some(CauseKind::LockWait)));
}

/// A wait that a timer begins after an answered key is no usual computation.
#[test]
fn a_lock_wait_of_such_a_program_soon_after_a_key_is_found() {
    let mut machine = idle_handler();
    key(&mut machine, 10_000_000, Some(3_000));
    lock(&mut machine, 10_200_000, 11_000_000);
    let (milestone, _, kind) = outline(&mut machine);
    assert_eq!((milestone.as_str(), kind), ("handled", Some(CauseKind::LockWait)));
}

#[test]
fn a_key_that_such_a_program_had_no_cpu_for_is_late() {
    let mut machine = idle_handler();
    machine.press_more(10_000_000, 10_750_000).switch(10_000_500, 1, HOLDER, 0);
    machine.switch(10_740_000, 1, APP, 0);
    frame(&mut machine, 10_755_000);
    assert_eq!(
        outline(&mut machine),
        ("response".to_owned(), 755, Some(CauseKind::CpuCompetition))
    );
}

/// A thread that draws frame after frame owes one to a key as well: here it computes for a second
/// instead.
#[test]
fn a_game_that_draws_no_frame_after_a_key_hangs() {
    let mut machine = game(10_000_000);
    key(&mut machine, 10_003_000, Some(1_000_000));
    for us in (11_020_000..MARK).step_by(20_000) {
        frame(&mut machine, us);
    }
    assert_eq!(
        outline(&mut machine),
        ("response".to_owned(), 1_000, Some(CauseKind::OwnComputation))
    );
}

#[test]
fn a_game_that_draws_no_frame_until_the_mark_hangs() {
    let mut machine = game(10_000_000);
    key(&mut machine, 10_003_000, None);
    let (milestone, ms, kind) = outline(&mut machine);
    assert_eq!((milestone.as_str(), ms, kind), ("hanging", 1_997, Some(CauseKind::OwnComputation)));
}

/// A frame that was under way when the key came does not show the answer.
#[test]
fn a_game_that_stops_one_frame_after_a_key_hangs() {
    let mut machine = game(10_000_000);
    key(&mut machine, 10_003_000, Some(5_000));
    for us in (10_410_000..MARK).step_by(20_000) {
        frame(&mut machine, us);
    }
    assert_eq!(
        outline(&mut machine),
        ("response".to_owned(), 407, Some(CauseKind::OwnComputation))
    );
}

/// A thread that draws only now and then has answered with its first drawing.
#[test]
fn a_second_drawing_some_time_after_a_key_is_no_late_answer() {
    let mut machine = idle_handler();
    key(&mut machine, 10_000_000, Some(3_000));
    frame(&mut machine, 10_410_000);
    assert_eq!(outline(&mut machine).2, None);
}
