// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that an application passes to an input method, and draws only after its answer.

mod support;

use support::{APP, Machinery};
use tipme_analysis::model::{CauseKind, Culprit};

/// The input method, which is not a child of the application, and the process that delays it.
const METHOD: u32 = 300;
const HOLDER: u32 = 700;

/// Time of the key that is answered late, and of its answer.
const KEY: u64 = 2_000_000;
const LATE: u64 = KEY + 800_000;
const MARK: u64 = 4_000_000;

/// Waker context of a timer interrupt.
const BY_INTERRUPT: u8 = 2;

fn editor() -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(METHOD, METHOD, 1, "method", 1).task(HOLDER, HOLDER, 1, "holder", 1);
    machine
}

/// A key comes, and the application asks the input method.
fn ask(machine: &mut Machinery, us: u64) {
    machine.press(us).wake_from(us + 400, METHOD, APP, 0, 2).switch(us + 450, 1, 0, 1);
    machine.switch(us + 450, 2, METHOD, 1);
}

/// The input method answers, and the application draws.
fn answer(machine: &mut Machinery, us: u64) {
    machine.wake_from(us, APP, METHOD, 0, 1).switch(us + 50, 2, 0, 1).switch(us + 100, 1, APP, 1);
    machine.draw(us + 200);
}

fn typing(machine: &mut Machinery, count: u64) {
    for key in 0..count {
        let us = 500_000 + key * 200_000;
        ask(machine, us);
        answer(machine, us + 600);
    }
}

/// The input method is stopped before the key comes, and continued long after.
fn stop(machine: &mut Machinery) {
    machine.signal(KEY - 210, HOLDER, METHOD, 19).wake_from(KEY - 200, METHOD, HOLDER, 0, 2);
    machine.switch(KEY - 150, 2, METHOD, 1).switch(KEY - 140, 2, 0, 4).press(KEY);
    machine.switch(KEY + 450, 1, 0, 1);
    machine.signal(LATE - 110, HOLDER, METHOD, 18).wake_from(LATE - 100, METHOD, HOLDER, 0, 2);
    machine.switch(LATE - 50, 2, METHOD, 1);
    answer(machine, LATE);
}

/// The input method does work of its own when the key comes, and gets no CPU.
fn compete(machine: &mut Machinery) {
    machine.wake_from(KEY - 200, METHOD, 0, BY_INTERRUPT, 2).switch(KEY - 150, 2, METHOD, 1);
    machine.wake_from(KEY - 145, HOLDER, 0, BY_INTERRUPT, 2).switch(KEY - 140, 2, HOLDER, 0);
    machine.press(KEY).switch(KEY + 450, 1, 0, 1).switch(LATE - 50, 2, METHOD, 1);
    answer(machine, LATE);
}

/// Returns, for each key, the time from the input to the drawing in microseconds, and the join.
fn joins(machine: &mut Machinery) -> Vec<(u64, String)> {
    let timed = machine.timed(MARK);
    timed
        .into_iter()
        .filter(|one| one.client_pid == APP)
        .map(|one| (one.drawn_ns.map_or(0, |at| (at - one.input_ns) / 1_000), one.join))
        .collect()
}

fn cause(machine: &mut Machinery) -> (CauseKind, u32) {
    let verdict = machine.diagnose(MARK);
    let finding = verdict.findings.first().expect("somebody held the answer up");
    let Culprit::Process { pid, .. } = &finding.culprit else { panic!("{finding:?}") };
    (finding.kind, *pid)
}

#[test]
fn a_key_waits_for_the_answer_of_a_stopped_input_method() {
    let mut machine = editor();
    typing(&mut machine, 5);
    stop(&mut machine);
    assert_eq!(joins(&mut machine).last(), Some(&(800_190, "exact".to_owned())));
    assert_eq!(cause(&mut machine), (CauseKind::Stopped, HOLDER));
}

#[test]
fn a_key_waits_for_an_input_method_without_a_cpu() {
    let mut machine = editor();
    typing(&mut machine, 5);
    compete(&mut machine);
    assert_eq!(joins(&mut machine).last(), Some(&(800_190, "exact".to_owned())));
    assert_eq!(cause(&mut machine), (CauseKind::CpuCompetition, HOLDER));
}

#[test]
fn a_service_rarely_asked_answers_no_key() {
    for held_up in [stop, compete] {
        let mut machine = editor();
        machine.typing(500_000, 5);
        held_up(&mut machine);
        assert_eq!(joins(&mut machine).len(), 5);
    }
}
