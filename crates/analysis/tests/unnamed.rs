// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits inside the kernel that no row of the table names, and floods of wakeups.

mod support;

use support::{APP, Machinery};
use tipme_analysis::model::{CauseKind, Finding};
use tipme_analysis::{DiagnoseOptions, diagnose};

const IOCTL: i32 = 16;
const SERVICE: u32 = 600;
const KEY: u64 = 2_000_000;
const DONE: u64 = 3_000_000;
const MARK: u64 = 5_000_000;

fn first(machine: &mut Machinery) -> Finding {
    let verdict = diagnose(&machine.incident(MARK), &DiagnoseOptions::default()).expect("the scene is well formed");
    verdict.findings.into_iter().next().expect("a key was late")
}

/// An editor that sleeps in an `ioctl` because of a key, until a thread or, for 0, a device lets it go on.
fn sleeps_until(waker: u32) -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(SERVICE, SERVICE, 1, "daemon", 1).typing(500_000, 5).press(KEY).switch(KEY + 400, 1, 0, 1);
    if waker != 0 {
        machine.wake_from(KEY + 500, waker, 0, 2, 0).switch(KEY + 510, 0, waker, 0).switch(KEY + 600, 0, 0, 1);
        machine.wake_from(DONE - 150, waker, 0, 2, 0).switch(DONE - 100, 0, waker, 0);
    }
    machine.wake_from(DONE, APP, waker, if waker == 0 { 2 } else { 0 }, 1);
    machine
        .wait(DONE + 1, APP, KEY + 400, |wait| (wait.syscall, wait.context) = (IOCTL, if waker == 0 { 2 } else { 0 }));
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
fn wait_that_a_process_ends_is_a_wait_for_that_process() {
    let finding = first(&mut sleeps_until(SERVICE));
    assert_eq!(finding.kind, CauseKind::PeerWait);
    assert!(finding.evidence[0].starts_with("daemon (pid 600"), "{finding:?}");
}

/// An editor that computes for a second because of a key, and is woken so often meanwhile by a service.
fn woken(times: u64) -> Machinery {
    let mut machine = Machinery::with_app("editor");
    machine.task(SERVICE, SERVICE, 1, "daemon", 1).typing(500_000, 5).press(KEY);
    for turn in 0..times {
        let us = KEY + 1_000 + turn * (1_000_000 / times);
        machine.switch(us, 1, 0, 1).switch(us + 10, 0, SERVICE, 0).wake_from(us + 20, APP, SERVICE, 0, 1);
        machine.switch(us + 25, 0, 0, 1).switch(us + 30, 1, APP, 0);
    }
    machine.draw(DONE + 10_000);
    machine
}

#[test]
fn flood_is_named_by_the_process_that_sends_it() {
    let named = |times| first(&mut woken(times)).evidence.iter().any(|line| line.contains("daemon (pid 600) kept"));
    assert_eq!([200, 10].map(named), [true, false]);
}
