// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits in kernel functions without a row in the table, and floods of wakeups.

mod support;

use support::{APP, Machinery, SERVER, WINDOW};
use tipme_analysis::model::{CauseKind, Culprit, Finding};

const IOCTL: i32 = 16;
const SERVICE: u32 = 600;
const KEY: u64 = 2_000_000;
const DONE: u64 = 3_000_000;
const MARK: u64 = 5_000_000;

fn first(machine: &mut Machinery) -> Finding {
    let verdict = machine.diagnose(MARK);
    verdict.findings.into_iter().next().expect("a key was late")
}

/// An editor sleeps in an `ioctl` because of a key, until a thread or, for 0, a device wakes it.
fn sleeps_until(waker: u32) -> Machinery {
    named_sleeps_until("editor", waker)
}

fn named_sleeps_until(name: &str, waker: u32) -> Machinery {
    let mut machine = Machinery::with_app(name);
    machine.task(SERVICE, SERVICE, 1, "daemon", 1).typing(500_000, 5).press(KEY);
    machine.switch(KEY + 400, 1, 0, 1);
    if waker != 0 {
        machine.wake_from(KEY + 500, waker, 0, 2, 0).switch(KEY + 510, 0, waker, 0);
        machine.switch(KEY + 600, 0, 0, 1);
        machine.wake_from(DONE - 150, waker, 0, 2, 0).switch(DONE - 100, 0, waker, 0);
    }
    machine.wake_from(DONE, APP, waker, if waker == 0 { 2 } else { 0 }, 1);
    machine.wait(DONE + 1, APP, KEY + 400, |wait| {
        (wait.syscall, wait.context) = (IOCTL, if waker == 0 { 2 } else { 0 })
    });
    machine.switch(DONE + 20, 1, APP, 0).draw(DONE + 100);
    machine
}

#[test]
fn wait_that_a_device_ends_is_named_by_its_call() {
    let finding = first(&mut sleeps_until(0));
    assert_eq!((finding.kind, finding.unusual), (CauseKind::KernelWait, true));
    assert_eq!(finding.evidence[0], "editor waited in ioctl");
}

#[test]
fn name_that_the_kernel_has_cut_off_is_completed_from_the_command_line() {
    let mut machine = named_sleeps_until("gnome-text-editor", 0);
    assert_eq!(first(&mut machine).evidence[0], "gnome-text-editor waited in ioctl");
    let interval = machine.diagnose(MARK).interval.expect("a key was late");
    assert_eq!(interval.client.comm, "gnome-text-editor");
}

#[test]
fn wait_that_a_process_ends_is_a_wait_for_that_process() {
    let finding = first(&mut sleeps_until(SERVICE));
    assert_eq!(finding.kind, CauseKind::PeerWait);
    assert!(finding.evidence[0].ends_with("from daemon (pid 600)"), "{finding:?}");
}

/// Activity of a service while the editor computes.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Wakes,
    /// The editor wakes it first, each time.
    Answers,
    /// The display server sends the editor an event or reply for each request of the service: its
    /// first byte.
    Tells(u8),
}

const CHANGE_PROPERTY: [u8; 4] = [18, 0, 6, 0];
const PROPERTY_NOTIFY: u8 = 28;
const REPLY: u8 = 1;
const LINK: (u32, u32) = (3, SERVICE);

/// An editor computes for a second because of a key, while a service acts `times` times within
/// `within` µs.
fn busy_beside(times: u64, within: u64, beside: Beside) -> Finding {
    let mut machine = Machinery::with_app("editor");
    machine.task(SERVICE, SERVICE, 1, "daemon", 1).typing(500_000, 5).press(KEY);
    for turn in 0..times {
        let us = KEY + 1_000 + turn * (within / times);
        if let Beside::Tells(event) = beside {
            machine.switch(us, 0, SERVICE, 0).message(
                us + 5,
                SERVICE,
                LINK,
                0,
                24,
                &[CHANGE_PROPERTY],
            );
            machine.wake(us + 10, SERVER, SERVICE).switch(us + 20, 0, SERVER, 1);
            machine.message(us + 30, SERVER, LINK, 1, 24, &[]).message(
                us + 40,
                SERVER,
                WINDOW,
                2,
                32,
                &[[event, 0, 0, 0]],
            );
            machine.switch(us + 50, 0, 0, 1).message(us + 60, APP, WINDOW, 3, 32, &[]);
            continue;
        }
        if beside == Beside::Answers {
            machine.wake_from(us - 5, SERVICE, APP, 0, 0);
        }
        machine.switch(us, 1, 0, 1).switch(us + 10, 0, SERVICE, 0);
        machine.wake_from(us + 20, APP, SERVICE, 0, 1);
        machine.switch(us + 25, 0, 0, 1).switch(us + 30, 1, APP, 0);
    }
    machine.draw(DONE + 10_000);
    first(&mut machine)
}

/// Returns the process that the finding names for keeping the editor at work, if any.
fn keeper(finding: &Finding) -> Option<u32> {
    assert_eq!(finding.kind, CauseKind::OwnComputation);
    match finding.culprit {
        Culprit::Process { pid, .. } if finding.kept_at_work => Some(pid),
        _ => None,
    }
}

#[test]
fn a_client_that_floods_the_server_is_the_culprit() {
    let finding = busy_beside(200, 1_000_000, Beside::Wakes);
    assert_eq!(keeper(&finding), Some(SERVICE));
    let line = "daemon (pid 600) kept editor (pid 200) busy with 200 messages";
    assert_eq!(
        (finding.evidence[0].as_str(), finding.evidence[1].as_str()),
        (line, "editor (pid 200) computed")
    );
    assert_eq!(
        keeper(&busy_beside(200, 1_000_000, Beside::Tells(PROPERTY_NOTIFY))),
        Some(SERVICE),
        "over the display"
    );
}

#[test]
fn a_program_that_computes_by_itself_is_its_own_culprit() {
    assert_eq!(keeper(&busy_beside(10, 1_000_000, Beside::Wakes)), None, "few messages");
    assert_eq!(keeper(&busy_beside(200, 400_000, Beside::Wakes)), None, "it went on without them");
    assert_eq!(
        keeper(&busy_beside(200, 1_000_000, Beside::Answers)),
        None,
        "it had asked for them"
    );
    assert_eq!(
        keeper(&busy_beside(200, 1_000_000, Beside::Tells(REPLY))),
        None,
        "replies are asked for"
    );
}
