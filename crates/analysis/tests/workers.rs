// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that somebody asked about while nobody waited for them: their threads wait for work most of the time.

mod support;

use support::locks::FUTEX;
use support::{Machinery, tid};
use tipme_analysis::model::{CauseKind, Verdict};
use tipme_analysis::{DiagnoseOptions, diagnose};
use tipme_record::Pid;

const SERVICE: u32 = 800;
const WORKER: u32 = 801;
const HOLDER: u32 = 802;
const CPU: u32 = 2;
const MARK: u64 = 9_000_000;

/// As a condition of the C library waits, and as a lock that is held does.
const CONDITION: [u64; 3] = [4_096, 0x189, 0];
const LOCK: [u64; 3] = [64, 0x80, 2];

fn service() -> Machinery {
    let mut machine = Machinery::new();
    machine.task(SERVICE, SERVICE, 1, "service", 1).task(WORKER, SERVICE, 1, "service", 1);
    machine.task(HOLDER, SERVICE, 1, "service", 1);
    machine
}

/// Until a time a thread waited, which another one ended; it runs for 5 ms.
fn waited(machine: &mut Machinery, (from, until): (u64, u64), who: u32, by: u32, args: [u64; 3]) {
    machine.wake_from(until, who, by, 0, CPU as u16);
    machine.wait(until + 1, who, from, |wait| (wait.syscall, wait.args, wait.waker) = (FUTEX, args, tid(by)));
    machine.switch(until + 10, CPU, who, 0).switch(until + 5_000, CPU, 0, 1);
}

/// The worker waits for a job again from some time on.
fn verdict(machine: &mut Machinery, from: u64) -> Verdict {
    machine.still_waiting(MARK, WORKER, from, |wait| (wait.syscall, wait.args) = (FUTEX, CONDITION));
    let options = DiagnoseOptions { pid: Some(Pid(SERVICE)), ..DiagnoseOptions::default() };
    diagnose(&machine.incident(MARK), &options).expect("the scene is well formed")
}

/// A job for the worker each second from 1 s on, up to some time.
fn jobs(machine: &mut Machinery, seconds: std::ops::RangeInclusive<u64>) {
    for second in seconds {
        let from = if second == 1 { 100_000 } else { (second - 1) * 1_000_000 + 5_000 };
        waited(machine, (from, second * 1_000_000), WORKER, SERVICE, CONDITION);
    }
}

fn exceeded(verdict: &Verdict) -> bool {
    verdict.interval.as_ref().is_some_and(|interval| interval.exceeded)
}

#[test]
fn a_worker_that_waits_for_its_next_job_was_not_held_up() {
    let mut machine = service();
    jobs(&mut machine, 1..=3);
    waited(&mut machine, (3_005_000, 8_000_000), WORKER, SERVICE, CONDITION);
    let verdict = verdict(&mut machine, 8_005_000);
    assert!(verdict.findings.is_empty() && !exceeded(&verdict), "{verdict:#?}");
}

/// It hands its result over, and the service sleeps before it gives the next job, and until the mark after that.
#[test]
fn a_worker_that_gave_its_answer_waits_for_nobody() {
    let mut machine = service();
    jobs(&mut machine, 1..=3);
    machine.wake_from(3_004_900, SERVICE, WORKER, 0, 1).switch(3_005_100, 1, SERVICE, 0);
    machine.wait(3_004_901, SERVICE, 2_000_100, |wait| (wait.syscall, wait.args) = (FUTEX, CONDITION));
    machine.switch(3_006_000, 1, 0, 1).wake_from(7_990_000, SERVICE, 0, 2, 1).switch(7_990_010, 1, SERVICE, 0);
    machine.wait(7_990_001, SERVICE, 3_006_000, |wait| (wait.syscall, wait.context) = (35, 2));
    waited(&mut machine, (3_005_000, 8_000_000), WORKER, SERVICE, CONDITION);
    machine.switch(8_006_000, 1, 0, 1);
    machine.still_waiting(MARK, SERVICE, 8_006_000, |wait| wait.syscall = 35);
    let verdict = verdict(&mut machine, 8_005_000);
    assert!(verdict.findings.is_empty() && !exceeded(&verdict), "{verdict:#?}");
}

#[test]
fn a_worker_that_waits_for_a_lock_in_a_job_was_held_up() {
    let mut machine = service();
    jobs(&mut machine, 1..=3);
    waited(&mut machine, (3_005_000, 8_000_000), WORKER, HOLDER, LOCK);
    let verdict = verdict(&mut machine, 8_005_000);
    assert!(exceeded(&verdict), "{verdict:#?}");
    let first = verdict.findings.first().expect("there is a cause");
    assert!(first.kind == CauseKind::LockWait && first.ms > 4_900.0, "{first:#?}");
}

/// It waits for another thread of the service, which it has given something to do.
#[test]
fn a_thread_that_waits_for_an_answer_was_held_up() {
    let mut machine = service();
    jobs(&mut machine, 1..=3);
    machine.wake_from(3_004_000, HOLDER, WORKER, 0, 1).switch(3_004_100, 1, HOLDER, 0);
    waited(&mut machine, (3_005_000, 6_000_000), WORKER, HOLDER, CONDITION);
    machine.switch(6_006_000, 1, 0, 1);
    machine.wait(3_004_001, HOLDER, 0, |wait| (wait.syscall, wait.args) = (FUTEX, CONDITION));
    machine.still_waiting(MARK, HOLDER, 6_006_000, |wait| (wait.syscall, wait.args) = (FUTEX, CONDITION));
    let verdict = verdict(&mut machine, 6_005_000);
    assert!(exceeded(&verdict), "{verdict:#?}");
    let first = verdict.findings.first().expect("there is a cause");
    assert!(first.kind == CauseKind::LockWait && (first.ms - 2_995.0).abs() < 1.0, "{first:#?}");
}
