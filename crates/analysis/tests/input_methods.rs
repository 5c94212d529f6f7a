// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wayland input methods, which receive keys before the application.

mod support;

use support::wayland::*;
use support::words::word;
use support::{APP, Machinery, SERVER};
use tipme_record::wayland::{MAKES_KEY, NEAR, PRESSED, TEXT, WlWord};

const NANOSLEEP: i32 = 230;

/// The input method, which has grabbed the keyboard, and its grab object on the compositor.
const METHOD: u32 = 650;
const GRAB: u32 = 7;

/// The compositor sends a key to the input method, which receives it at once or after it was
/// continued, and replies.
fn grab(machine: &mut Machinery, us: u64, goes_on: Option<u64>, words: &[WlWord]) -> u64 {
    let taken = take(machine, us, goes_on);
    reply(machine, taken + 50, words)
}

/// Sends a key to the input method, and returns the time of its receipt.
fn take(machine: &mut Machinery, us: u64, goes_on: Option<u64>) -> u64 {
    machine.wake_from(us, SERVER, 0, BY_INTERRUPT, 0).switch(us + 20, 0, SERVER, 0);
    let pressed = word(GRAB, 1, 6, PRESSED | NEAR, (us / 1_000) as u32);
    if goes_on.is_none() {
        machine.wake_from(us + 100, METHOD, SERVER, 0, 1);
    }
    machine.wl_message(us + 102, SERVER, METHOD, EVENT_SENT, &[pressed]).switch(us + 150, 0, 0, 1);
    let runs = goes_on.unwrap_or(us + 200);
    if goes_on.is_some() {
        machine.wake(runs - 50, METHOD, 90);
    }
    machine.switch(runs, 1, METHOD, 0).wl_message(runs + 50, METHOD, METHOD, EVENT_TAKEN, &[]);
    runs + 50
}

/// The compositor receives the reply of the input method in a burst of its own, at the returned
/// time.
fn reply(machine: &mut Machinery, us: u64, words: &[WlWord]) -> u64 {
    machine.wake_from(us, SERVER, METHOD, 0, 0);
    machine.wl_message(us + 2, METHOD, METHOD, REQUEST_SENT, words);
    machine.switch(us + 20, 1, 0, 1).switch(us + 50, 0, SERVER, 0);
    machine.wl_message(us + 60, SERVER, METHOD, REQUEST_TAKEN, &[]);
    us + 60
}

/// The compositor passes the reply of the input method to the application, which shows it.
fn hand_on(machine: &mut Machinery, us: u64, event: WlWord) {
    machine.wake_from(us + 40, APP, SERVER, 0, 1);
    machine.wl_message(us + 42, SERVER, APP, EVENT_SENT, &[event]);
    machine.switch(us + 80, 0, 0, 1).switch(us + 150, 1, APP, 0);
    machine.wl_message(us + 200, APP, APP, EVENT_TAKEN, &[]);
    show(machine, us + 500);
}

fn text() -> WlWord {
    word(40, 5, 3, TEXT, 0)
}

fn editor_with_method() -> Machinery {
    let mut machine = editor();
    machine.task(METHOD, METHOD, 1, "fcitx5", 1);
    machine
}

#[test]
fn text_of_an_input_method_belongs_to_its_key() {
    let mut machine = editor_with_method();
    for us in [100_000, 300_000] {
        let at = grab(&mut machine, us, None, &[]);
        hand_on(&mut machine, at, text());
    }
    // No key led to this text.
    hand_on(&mut machine, 500_000, text());
    let found = interactions(&mut machine);
    let keys: Vec<_> =
        found.iter().map(|one| (one.client_pid, one.input_ns / 1_000 - BEGIN_US)).collect();
    assert_eq!(keys, [(APP, 100_000), (APP, 300_000)]);
    assert!(
        found.iter().all(|one| one.join == "exact" && one.end_ns - one.input_ns == 5_962_000),
        "{found:#?}"
    );
}

#[test]
fn a_key_that_an_input_method_presses_again_is_the_persons() {
    let mut machine = editor_with_method();
    let pressed_again = word(9, 1, 5, MAKES_KEY, 0);
    let at = grab(&mut machine, 100_000, None, &[pressed_again]);
    hand_on(&mut machine, at, key(at));
    let found = interactions(&mut machine);
    let keys: Vec<_> =
        found.iter().map(|one| (one.client_pid, one.input_ns / 1_000 - BEGIN_US)).collect();
    assert_eq!(keys, [(APP, 100_000)]);
}

#[test]
fn an_input_method_that_delays_a_key_is_named() {
    let mut machine = editor_with_method();
    let taken = take(&mut machine, 100_000, None);
    machine.switch(taken + 20, 1, 0, 1).wake_from(1_200_000, METHOD, 0, BY_INTERRUPT, 1);
    machine
        .wait(1_200_002, METHOD, taken + 20, |wait| wait.syscall = NANOSLEEP)
        .switch(1_200_050, 1, METHOD, 0);
    let at = reply(&mut machine, 1_200_100, &[word(9, 1, 5, MAKES_KEY, 0)]);
    hand_on(&mut machine, at, key(at));
    assert_method_is_named(&mut machine, "peer-wait");
}

/// Asserts that the application waited in a wait of this kind, and for the input method.
fn assert_method_is_named(machine: &mut Machinery, kind: &str) {
    let verdict = machine.diagnose(2_000_000);
    let interval = verdict.interval.as_ref().expect("there was a key");
    let finding = verdict.findings.first().expect("there is a finding");
    assert_eq!((interval.client.pid, finding.kind.name()), (APP, kind), "{verdict:#?}");
    assert!(
        interval.latency_ms > 1_000.0 && format!("{finding:?}").contains("fcitx5"),
        "{verdict:#?}"
    );
}

#[test]
fn an_input_method_that_was_stopped_is_named() {
    for (reply, made) in [(text(), vec![]), (key(1_200_000), vec![word(9, 1, 5, MAKES_KEY, 0)])] {
        let mut machine = editor_with_method();
        machine.switch(50_000, 1, METHOD, 0).switch(50_010, 1, 0, STOPPED);
        let at = grab(&mut machine, 100_000, Some(1_100_000), &made);
        hand_on(&mut machine, at, reply);
        assert_method_is_named(&mut machine, "stopped");
    }
}
