// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copy and paste under Wayland: the copied data comes from another client, through a pipe.

mod support;

use support::wayland::*;
use support::words::word;
use support::{APP, Machinery, SERVER};
use tipme_record::records::Wait;
use tipme_record::wayland::COPIED;

const RECVMSG: i32 = 47;
const UNIX: u16 = 1;

/// The editor asks for the selection; the compositor asks its owner, another application, which is
/// stopped.
fn ask_for_copied(machine: &mut Machinery, us: u64) {
    let asks = [word(20, 1, 9, COPIED, 0)];
    machine.wake(us, SERVER, APP).wl_message(us + 2, APP, APP, REQUEST_SENT, &asks);
    machine.switch(us + 50, 0, SERVER, 0).wl_message(us + 60, SERVER, APP, REQUEST_TAKEN, &[]);
    machine.wl_message(us + 100, SERVER, OTHER, EVENT_SENT, &asks).switch(us + 150, 0, 0, 1);
}

/// Keys that are answered at once, and one at 3 s for which the editor asks for the selection and
/// waits as given.
fn paste(wait: impl FnOnce(&mut Machinery)) -> Machinery {
    let mut machine = editor_and_mail();
    machine.switch(50_000, 1, OTHER, 0).switch(50_010, 1, 0, STOPPED);
    for us in (100_000..900_000).step_by(100_000) {
        press(&mut machine, us);
        show(&mut machine, us + 400);
        machine.wait(us + 101, APP, us - 94_000, in_poll);
    }
    press(&mut machine, 3_000_000);
    machine.wait(3_000_101, APP, 805_700, in_poll);
    ask_for_copied(&mut machine, 3_000_300);
    machine.switch(3_000_600, 1, 0, 1);
    wait(&mut machine);
    machine
}

fn in_poll(wait: &mut Wait) {
    (wait.syscall, wait.args) = (POLL, [1, 3, 0]);
}

/// The owner continues, receives the request, answers, and waits for the next event.
fn answer_at(machine: &mut Machinery, us: u64) {
    machine.wake(us, OTHER, 90).switch(us + 50, 1, OTHER, 0);
    machine.wl_message(us + 100, OTHER, OTHER, EVENT_TAKEN, &[]);
    machine.wake_from(us + 200, APP, OTHER, 0, 1).switch(us + 300, 1, APP, 1);
    machine.still_waiting(9_000_000, OTHER, us + 300, in_poll);
}

/// Returns the duration of the paste in milliseconds, its milestone, and kind and culprit of its
/// cause.
fn held_up_by(machine: &mut Machinery) -> (u64, String, &'static str, String) {
    let verdict = machine.diagnose(9_000_000);
    let interval = verdict.interval.expect("there was a paste");
    let finding = verdict.findings.first().expect("there is a finding");
    let culprit = format!("{:?}", finding.culprit);
    (interval.latency_ms.round() as u64, interval.milestone, finding.kind.name(), culprit)
}

#[test]
fn a_paste_waits_for_the_client_that_has_what_is_copied() {
    let mut machine = paste(|machine| {
        machine.wait(5_000_500, APP, 3_000_600, in_poll);
        answer_at(machine, 5_000_300);
        show(machine, 5_001_000);
    });
    let (took, milestone, kind, culprit) = held_up_by(&mut machine);
    assert_eq!((took, milestone.as_str(), kind), (2_001, "completed", "stopped"));
    assert!(culprit.contains("mail"), "{culprit}");
}

#[test]
fn a_service_with_blocking_reads_answers_with_its_wakeup() {
    for asked_again in [false, true] {
        let mut machine = paste(|machine| {
            machine.wait(5_000_500, APP, 3_000_600, in_poll);
            machine.wake(5_000_300, OTHER, 90).switch(5_000_350, 1, OTHER, 0);
            machine.wl_message(5_000_400, OTHER, OTHER, EVENT_TAKEN, &[]);
            machine.wake_from(5_000_500, APP, OTHER, 0, 1);
            machine.switch(5_000_600, 1, APP, 1);
            show(machine, 5_001_000);
            if asked_again {
                machine.wake(7_000_000, OTHER, SERVER).wait(7_000_001, OTHER, 5_000_600, in_read);
                machine.switch(7_000_100, 1, OTHER, 0);
                machine.wl_message(7_000_200, OTHER, OTHER, EVENT_TAKEN, &[]);
                machine.wake_from(7_000_300, APP, OTHER, 0, 1).switch(7_000_400, 1, APP, 1);
                machine.switch(7_000_500, 1, 0, 1);
            }
            machine.still_waiting(
                9_000_000,
                OTHER,
                if asked_again { 7_000_400 } else { 5_000_600 },
                in_read,
            );
        });
        let (took, milestone, kind, _) = held_up_by(&mut machine);
        assert_eq!(
            (took, milestone.as_str(), kind),
            (2_001, "completed", "stopped"),
            "asked again: {asked_again}"
        );
    }
}

fn in_read(wait: &mut Wait) {
    (wait.syscall, wait.family) = (RECVMSG, UNIX);
}

#[test]
fn what_is_asked_for_after_the_next_key_is_for_that_one() {
    let mut machine = paste(|machine| {
        press(machine, 2_900_000);
        show(machine, 2_900_400);
        machine.wait(2_900_101, APP, 805_700, in_poll).wait(5_000_500, APP, 3_000_600, in_poll);
        answer_at(machine, 5_000_300);
        show(machine, 5_001_000);
    });
    let (took, milestone, kind, _) = held_up_by(&mut machine);
    assert_eq!((took, milestone.as_str(), kind), (2_001, "completed", "stopped"));
}

#[test]
fn a_client_that_waits_for_the_clipboard_amid_work_gives_up() {
    let mut machine = paste(|machine| {
        machine.wake_from(4_000_600, APP, 0, BY_INTERRUPT, 1).switch(4_000_650, 1, APP, 0);
        machine.switch(4_000_700, 1, 0, 1);
        machine.wait(4_000_600, APP, 3_000_600, |wait| {
            (wait.syscall, wait.args, wait.context) =
                (POLL, [2, 1, 1_000], u16::from(BY_INTERRUPT));
        });
        answer_at(machine, 7_000_000);
    });
    let (took, milestone, kind, culprit) = held_up_by(&mut machine);
    assert_eq!((took, milestone.as_str(), kind), (1_001, "handled", "stopped"));
    assert!(culprit.contains("mail"), "{culprit}");
}

#[test]
fn a_clipboard_that_answers_at_once_is_no_cause() {
    let mut machine = paste(|machine| {
        machine.wait(3_000_900, APP, 3_000_600, in_poll);
        answer_at(machine, 3_000_700);
        show(machine, 3_001_500);
    });
    let verdict = machine.diagnose(9_000_000);
    assert_eq!(verdict.findings.len(), 0, "{verdict:#?}");
}
