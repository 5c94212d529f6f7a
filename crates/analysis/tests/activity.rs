// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnosis of a requested process without any input.

mod support;

use support::{APP, Machinery};
use tipme_analysis::model::{CauseKind, Verdict};
use tipme_analysis::{DiagnoseOptions, diagnose};
use tipme_record::Pid;

/// A service and its second thread.
const SERVICE: u32 = 700;
const THREAD: u32 = 701;

const POLL: i32 = 7;
const READ: i32 = 0;
const ACCEPT4: i32 = 288;
const FUTEX: i32 = 202;
const CLOCK_NANOSLEEP: i32 = 230;

/// A service with its first thread waiting for events.
fn service() -> Machinery {
    let mut machine = Machinery::new();
    machine.task(APP, APP, 1, "editor", 1).typing(100_000, 5);
    machine.task(SERVICE, SERVICE, 1, "service", 1).task(THREAD, SERVICE, 1, "service", 1);
    for us in [500_000, 1_000_000] {
        machine.wake_from(us, SERVICE, 0, 1, 2).switch(us + 20, 2, SERVICE, 0);
        machine.switch(us + 100, 2, 0, 1);
        machine.wait(us, SERVICE, us - 450_000, |wait| {
            (wait.syscall, wait.args) = (POLL, [1, 3, u64::MAX])
        });
    }
    machine
}

/// A thread on CPU 3 is in a call in `from..until`, and makes the next one 50 µs later.
fn was_in(machine: &mut Machinery, tid: u32, from: u64, until: u64, call: (i32, [u64; 3])) {
    machine.wake_from(until, tid, 0, 2, 3).switch(until + 10, 3, tid, 0);
    machine.switch(until + 50, 3, 0, 1);
    machine.wait(until, tid, from, |wait| {
        (wait.syscall, wait.args, wait.context) = (call.0, call.1, 2)
    });
}

fn of_service(machine: &mut Machinery) -> Verdict {
    let options = DiagnoseOptions { pid: Some(Pid(SERVICE)), ..DiagnoseOptions::default() };
    diagnose(&machine.incident(6_000_000), &options).expect("the scene is well formed")
}

fn kinds(machine: &mut Machinery) -> Vec<CauseKind> {
    of_service(machine).findings.into_iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_periodic_program_is_idle_in_between() {
    let mut machine = service();
    was_in(&mut machine, THREAD, 100_000, 200_000, (POLL, [1, 3, u64::MAX]));
    for us in (200_000..5_200_000).step_by(500_000) {
        was_in(&mut machine, THREAD, us + 50, us + 500_000, (CLOCK_NANOSLEEP, [0, 0, 0]));
    }
    assert_eq!(kinds(&mut machine), []);
}

#[test]
fn a_long_sleep_amid_the_work_is_found() {
    let mut machine = service();
    was_in(&mut machine, THREAD, 100_000, 2_000_000, (POLL, [1, 3, u64::MAX]));
    was_in(&mut machine, THREAD, 2_000_050, 3_500_000, (CLOCK_NANOSLEEP, [0, 0, 0]));
    was_in(&mut machine, THREAD, 3_500_050, 5_000_000, (POLL, [1, 3, u64::MAX]));
    assert_eq!(kinds(&mut machine), [CauseKind::TimerSleep]);
}

#[test]
fn a_thread_that_waits_for_its_next_work_is_idle() {
    let mut machine = service();
    was_in(&mut machine, THREAD, 100_000, 200_000, (POLL, [1, 3, u64::MAX]));
    was_in(&mut machine, THREAD, 200_050, 4_000_000, (FUTEX, [0x7000, 0x89, 0]));
    machine.still_waiting(6_000_000, THREAD, 4_000_050, |wait| {
        (wait.syscall, wait.args) = (FUTEX, [0x7000, 0x89, 0])
    });
    assert_eq!(kinds(&mut machine), []);
}

#[test]
fn a_thread_that_accepts_connections_is_idle() {
    let mut machine = service();
    was_in(&mut machine, THREAD, 100_000, 200_000, (POLL, [1, 3, u64::MAX]));
    machine.wake_from(4_000_000, THREAD, 0, 2, 3).switch(4_000_010, 3, THREAD, 0);
    machine.switch(4_000_050, 3, 0, 1);
    machine.wait(4_000_000, THREAD, 200_050, |wait| {
        (wait.syscall, wait.family, wait.mode) = (ACCEPT4, 2, 0o140_000)
    });
    assert_eq!(kinds(&mut machine), []);
}

#[test]
fn a_process_without_a_finding_is_described_by_what_it_did() {
    let notes = of_service(&mut service()).notes;
    let waited = format!("service (pid {SERVICE}) waited for events for");
    assert!(notes.iter().any(|note| note.contains(&waited)), "{notes:?}");
}

/// A file system in user space reads its requests from a device.
#[test]
fn a_file_system_daemon_is_idle_without_requests() {
    let mut machine = service();
    let stack =
        machine.stack(&["__schedule", "schedule", "fuse_dev_do_read", "fuse_dev_read", "vfs_read"]);
    was_in(&mut machine, THREAD, 100_000, 200_000, (POLL, [1, 3, u64::MAX]));
    machine.wake_from(4_000_000, THREAD, 0, 2, 3).switch(4_000_010, 3, THREAD, 0);
    machine.switch(4_000_050, 3, 0, 1);
    machine.wait(4_000_000, THREAD, 200_050, |wait| {
        (wait.syscall, wait.args, wait.stack) = (READ, [3, 0, 0], stack)
    });
    assert_eq!(kinds(&mut machine), []);
}
