// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interactions on a Wayland compositor: from the key over the commit to the frame callback.

mod support;

use support::wayland::*;
use support::words::word;
use support::{APP, Machinery, SERVER};
use tipme_analysis::{focus_changes, message_labels};
use tipme_record::wayland::{NEAR, RELEASED, SEAT};

#[test]
fn a_key_ends_when_what_answers_it_was_shown() {
    let mut machine = editor();
    press(&mut machine, 100_000);
    show_and_ask(&mut machine, 100_400);
    let ends: Vec<u64> =
        interactions(&mut machine).iter().map(|timed| timed.end_ns / 1_000).collect();
    assert_eq!(ends, [1_108_400]);
}

#[test]
fn a_key_ends_with_the_frame_that_shows_it() {
    let mut machine = editor();
    for us in [100_000, 300_000] {
        press(&mut machine, us);
        show(&mut machine, us + 1_000);
    }
    let found = interactions(&mut machine);
    let times: Vec<_> = found
        .iter()
        .map(|one| (one.drawn_ns.unwrap() - one.input_ns, one.end_ns - one.input_ns))
        .collect();
    assert_eq!(times, [(1_002_000, 6_102_000); 2]);
    assert!(found.iter().all(|one| one.class == "key" && one.join == "exact" && one.inferred));
}

/// A key with a frame that the compositor receives at once, and a frame callback 700 ms later;
/// `meanwhile` adds the activity in between.
fn shown_late(meanwhile: impl FnOnce(&mut Machinery)) -> Vec<u64> {
    let mut machine = editor();
    press(&mut machine, 100_000);
    machine.wake(100_400, SERVER, APP).wl_message(100_402, APP, APP, REQUEST_SENT, &frame());
    machine.switch(100_410, 1, 0, 1).switch(100_450, 0, SERVER, 0);
    // It sends another event before it composes.
    machine.wl_message(100_460, SERVER, APP, REQUEST_TAKEN, &[]);
    machine.wl_message(100_500, SERVER, APP, EVENT_SENT, &[]);
    meanwhile(&mut machine);
    machine.wl_message(800_000, SERVER, APP, EVENT_SENT, &done()).switch(800_050, 0, 0, 1);
    interactions(&mut machine)
        .iter()
        .map(|timed| (timed.end_ns - timed.input_ns) / 1_000_000)
        .collect()
}

#[test]
fn a_compositor_that_cannot_go_on_shows_late() {
    let held_off = shown_late(|machine| {
        machine.switch(100_510, 0, OTHER, 0).switch(799_900, 0, SERVER, 1);
    });
    assert_eq!(held_off, [700]);
    assert_eq!(shown_late(|_| ()), [700], "it computes");
}

#[test]
fn of_keys_that_came_in_one_message_each_is_handled() {
    let mut machine = editor();
    press(&mut machine, 100_000);
    show(&mut machine, 100_400);
    // The compositor was stopped, and sends both at once; the application draws the effect of both.
    let us = 900_000;
    machine.wake_from(us, SERVER, 0, BY_INTERRUPT, 0).switch(us + 20, 0, SERVER, 0);
    machine.wake_from(us + 100, APP, SERVER, 0, 1);
    machine.wl_message(us + 102, SERVER, APP, EVENT_SENT, &[key(300_000), key(500_000)]);
    machine.switch(us + 150, 0, 0, 1);
    machine.switch(us + 200, 1, APP, 0).wl_message(us + 250, APP, APP, EVENT_TAKEN, &[]);
    show(&mut machine, us + 400_000);
    let found = interactions(&mut machine);
    let late = found.iter().filter(|one| one.input_ns >= 1_200_000_000);
    let handled: Vec<_> =
        late.map(|one| one.handled_ns.map(|at| (at - one.input_ns) / 1_000_000)).collect();
    // Only the time stamp of the first key is known.
    assert_eq!(handled, [Some(1_004); 2]);
}

#[test]
fn an_idle_compositor_shows_no_window() {
    let idle = shown_late(|machine| {
        machine.switch(100_600, 0, 0, 1).wake_from(799_800, SERVER, 0, BY_INTERRUPT, 0);
        machine.switch(799_900, 0, SERVER, 0);
    });
    assert_eq!(idle, [0]);
}

/// The application's timer repeats the held key, and the application shows it.
fn repeat(machine: &mut Machinery, us: u64) {
    machine.wake_from(us, APP, 0, BY_INTERRUPT, 1).switch(us + 50, 1, APP, 0);
    show(machine, us + 500);
}

fn release(machine: &mut Machinery, us: u64) {
    let released = word(KEYBOARD, 3, 6, RELEASED | NEAR, (us / 1_000) as u32);
    machine.wl_message(us, SERVER, APP, EVENT_SENT, &[released]);
}

/// A key is pressed and answered, and repeated five times from 600 ms later on.
fn held() -> Machinery {
    let mut machine = editor();
    press(&mut machine, 100_000);
    show(&mut machine, 101_000);
    for us in (700_000..900_000).step_by(40_000) {
        repeat(&mut machine, us);
    }
    machine
}

/// Returns begin and duration of each interaction in microseconds, and `true` for repeats.
fn spans(machine: &mut Machinery) -> Vec<(u64, u64, bool)> {
    let found = interactions(machine);
    assert!(found.iter().all(|one| one.class == "key" && one.join == "exact"), "{found:#?}");
    let spans = found.iter().map(|one| {
        (one.input_ns / 1_000 - BEGIN_US, (one.end_ns - one.input_ns) / 1_000, one.repeated)
    });
    spans.collect()
}

#[test]
fn what_a_client_repeats_while_a_key_is_held_are_inputs() {
    let mut machine = held();
    release(&mut machine, 880_000);
    let expected = [700_000, 740_000, 780_000, 820_000, 860_000].map(|at| (at, 5_602, true));
    assert_eq!(spans(&mut machine), [&[(100_000, 6_102, false)][..], &expected].concat());
}

#[test]
fn a_drawing_by_a_timer_without_a_held_key_answers_no_key() {
    let mut machine = held();
    release(&mut machine, 180_000);
    assert_eq!(spans(&mut machine), [(100_000, 6_102, false)]);
}

#[test]
fn a_repeat_that_was_due_while_its_client_was_stopped_is_late() {
    let mut machine = held();
    // Stop and continuation by another process.
    machine.wake(880_000, APP, 90).switch(880_050, 1, APP, 0).switch(880_060, 1, 0, 4);
    machine.wake(1_500_000, APP, 90).switch(1_500_050, 1, APP, 0);
    show(&mut machine, 1_500_500);
    release(&mut machine, 1_700_000);
    assert_eq!(spans(&mut machine).last(), Some(&(900_000, 605_602, true)));
    let verdict = machine.diagnose(2_000_000);
    let kinds: Vec<_> = verdict.findings.iter().map(|finding| finding.kind.name()).collect();
    assert_eq!(kinds.first(), Some(&"stopped"), "{kinds:?}");
}

#[test]
fn a_client_that_repeats_no_longer_owes_nothing() {
    let mut machine = held();
    press(&mut machine, 1_500_000);
    show(&mut machine, 1_500_500);
    assert_eq!(spans(&mut machine).len(), 7);
    assert!(spans(&mut machine).iter().all(|(_, took, _)| *took < 10_000));
}

#[test]
fn a_keyboard_that_was_made_meanwhile_is_known_exactly() {
    let mut machine = editor();
    let made = [word(2, 0, 8, SEAT, SEAT_OBJECT), word(SEAT_OBJECT, 1, 3, 0, KEYBOARD)];
    machine.wl_message(50_000, APP, APP, REQUEST_SENT, &made);
    press(&mut machine, 100_000);
    show(&mut machine, 101_000);
    let found = interactions(&mut machine);
    assert_eq!(found.iter().map(|one| one.inferred).collect::<Vec<_>>(), [false]);
}

/// Returns the join of the only key with the drawing of another thread at 100 ms, for which a timer
/// woke that thread at `timer_us`.
fn read_before_drawing(timer_us: u64) -> Vec<String> {
    let mut machine = editor();
    machine.task(READER, APP, 1, "reader", 1).wake_from(timer_us, APP, 0, BY_INTERRUPT, 1);
    machine.wake_from(10_000, SERVER, 0, BY_INTERRUPT, 0).switch(10_020, 0, SERVER, 0);
    machine.wake_from(10_100, READER, SERVER, 0, 1);
    machine.wl_message(10_102, SERVER, APP, EVENT_SENT, &[key(10_000)]);
    machine.switch(10_150, 0, 0, 1).switch(10_200, 1, READER, 0);
    machine.wl_message(10_250, READER, APP, EVENT_TAKEN, &[]);
    machine.switch(10_300, 1, 0, 1).switch(100_000, 1, APP, 0);
    show(&mut machine, 100_100);
    interactions(&mut machine).into_iter().map(|one| one.join).collect()
}

#[test]
fn a_thread_that_lacked_a_cpu_shows_what_another_one_took() {
    assert_eq!(read_before_drawing(9_000), ["exact"]);
    assert_ne!(read_before_drawing(95_000), ["exact"]);
}

#[test]
fn a_key_behind_a_pending_frame_is_answered_by_the_next() {
    let mut machine = editor();
    press(&mut machine, 100_000);
    show(&mut machine, 101_000);
    // The key is received while a frame is being composed: the answer is drawn after its frame
    // callback.
    machine.wake(300_000, SERVER, APP).wl_message(300_002, APP, APP, REQUEST_SENT, &frame());
    machine.switch(300_050, 0, SERVER, 0).wl_message(300_060, SERVER, APP, REQUEST_TAKEN, &[]);
    machine.switch(300_200, 0, 0, 1);
    press(&mut machine, 301_000);
    machine.switch(301_400, 1, 0, 1);
    machine.wake_from(310_000, SERVER, 0, BY_INTERRUPT, 0).switch(310_020, 0, SERVER, 0);
    machine.wake_from(310_100, APP, SERVER, 0, 1);
    machine.wl_message(310_102, SERVER, APP, EVENT_SENT, &done());
    machine.switch(310_150, 0, 0, 1).switch(310_200, 1, APP, 0);
    machine.wl_message(310_250, APP, APP, EVENT_TAKEN, &[]);
    show(&mut machine, 311_000);
    let found = interactions(&mut machine);
    let last = found.last().unwrap();
    assert_eq!((last.join.as_str(), last.drawn_ns.unwrap() - last.input_ns), ("exact", 10_002_000));
}

#[test]
fn an_inferred_key_says_so_in_the_verdict() {
    let mut machine = editor();
    press(&mut machine, 100_000);
    show(&mut machine, 800_000);
    let verdict = machine.diagnose(2_000_000);
    assert!(verdict.interval.is_some_and(|interval| interval.inferred));
    assert!(verdict.notes.iter().any(|note| note.contains("inferred")), "{:?}", verdict.notes);
}

#[test]
fn the_focus_is_with_the_client_entered_last_or_with_a_key() {
    let mut machine = editor_and_mail();
    leave(&mut machine, 50_000, OTHER);
    press(&mut machine, 100_000);
    show(&mut machine, 101_000);
    enter(&mut machine, 200_000, OTHER);
    leave(&mut machine, 200_010, APP);
    leave(&mut machine, 300_000, OTHER);
    enter(&mut machine, 300_010, APP);
    leave(&mut machine, 400_000, APP);
    let changes = focus_changes(&machine.incident(2_000_000)).unwrap();
    assert!(changes.iter().all(|change| change.server_pid == SERVER));
    let changes: Vec<_> =
        changes.iter().map(|change| (change.at_ns / 1_000 - BEGIN_US, change.client_pid)).collect();
    let expected = [
        (100_102, Some(APP)),
        (200_000, Some(OTHER)),
        (300_000, None),
        (300_010, Some(APP)),
        (400_000, None),
    ];
    assert_eq!(changes, expected);
}

/// Two applications answer a key late, the second one a little later than the first.
fn two_late_answers() -> Machinery {
    let mut machine = editor_and_mail();
    press(&mut machine, 100_000);
    show(&mut machine, 800_000);
    press_for(&mut machine, 1_000_000, OTHER);
    show_of(&mut machine, 1_750_000, OTHER);
    machine
}

#[test]
fn what_has_the_focus_weighs_more_than_what_had_the_last_key() {
    for (turns_back, client) in [(false, "mail"), (true, "editor")] {
        let mut machine = two_late_answers();
        if turns_back {
            enter(&mut machine, 1_800_000, APP);
            leave(&mut machine, 1_800_010, OTHER);
        }
        let verdict = machine.diagnose(2_000_000);
        let interval = verdict.interval.unwrap();
        assert_eq!((interval.client.comm.as_str(), interval.focused), (client, Some(true)));
    }
}

#[test]
fn a_changed_focus_is_noted() {
    let mut machine = editor_and_mail();
    press(&mut machine, 100_000);
    enter(&mut machine, 500_000, OTHER);
    leave(&mut machine, 500_010, APP);
    show(&mut machine, 800_000);
    let verdict = machine.diagnose(2_000_000);
    let note = format!("mail (pid {OTHER}) had the keyboard focus at the end of the delay.");
    assert!(verdict.notes.contains(&note), "{:?}", verdict.notes);
    assert_eq!(verdict.interval.and_then(|interval| interval.focused), Some(false));
}

#[test]
fn each_message_has_its_label() {
    let mut machine = Machinery::with_app("editor");
    press(&mut machine, BEGIN_US);
    show(&mut machine, BEGIN_US + 400);
    press(&mut machine, BEGIN_US + 200_000);
    show_and_ask(&mut machine, BEGIN_US + 200_400);
    let labels =
        message_labels(&machine.incident(BEGIN_US + 900_000)).expect("the scene is well formed");
    let names: Vec<_> =
        labels.iter().map(|label| (label.client_pid, label.name, label.inferred)).collect();
    let (key, commit) = (("key pressed", true), ("commit", true));
    let wanted = [key, commit, ("done", false), key, commit, ("presented", false)];
    assert_eq!(names, wanted.map(|(name, inferred)| (APP, name, inferred)));
}
