// SPDX-License-Identifier: MIT OR Apache-2.0
//! A display server or a client that waits for an event which another of its threads has, but
//! cannot pass on.

mod support;

use support::{APP, KEY_PRESS, Machinery, SERVER, VDA, WINDOW};
use tipme_analysis::model::{CauseKind, Culprit, Verdict};
use tipme_analysis::{DiagnoseOptions, diagnose};

/// The server's input thread, the process that takes its CPU, and another one.
const READER: u32 = 101;
const HOG: u32 = 500;
const OTHER: u32 = 300;
/// The editor's thread that receives events for the first one.
const TAKER: u32 = 201;

const EPOLL_WAIT: i32 = 232;
const FUTEX: i32 = 202;
const WAIT_BITSET: u64 = 9;

/// Time stamp of the key, start of the server's wait for events, and the time at which its input
/// thread passes the key on.
const PRESSED: u64 = 3_000_000;
const IDLE: u64 = 2_300_800;
const BROUGHT: u64 = 3_980_000;

/// An editor that types well, with a key of a device at 3 s that the input thread passes on at 3.98
/// s; `fill` has that thread run on CPU 0 by then. The answer comes at 4 s.
fn late_key(fill: impl FnOnce(&mut Machinery)) -> Verdict {
    let mut machine = Machinery::with_app("editor");
    machine.task(READER, SERVER, 1, "InputThread", 1).task(HOG, HOG, 1, "hog", 1);
    machine.task(OTHER, OTHER, 1, "panel", 1);
    machine.typing(100_000, 12).device_key(PRESSED);
    fill(&mut machine);
    woken(&mut machine, BROUGHT + 50, READER, IDLE);
    machine.switch(BROUGHT + 100, 0, SERVER, 1).message(
        BROUGHT + 200,
        SERVER,
        WINDOW,
        2,
        32,
        &[KEY_PRESS],
    );
    machine.wake_from(BROUGHT + 205, APP, SERVER, 0, 1).switch(BROUGHT + 300, 0, 0, 1);
    machine.switch(BROUGHT + 310, 1, APP, 0);
    let incident =
        machine.message(BROUGHT + 320, APP, WINDOW, 3, 32, &[]).draw(4_000_000).incident(6_000_000);
    diagnose(&incident, &DiagnoseOptions::default()).expect("the scene is well formed")
}

/// A thread ends the wait of the idle server.
fn woken(machine: &mut Machinery, us: u64, by: u32, since: u64) {
    machine.wake(us, SERVER, by).wait(us + 1, SERVER, since, |wait| wait.syscall = EPOLL_WAIT);
}

/// The device's interrupt wakes the input thread.
fn interrupt(machine: &mut Machinery, us: u64) {
    machine
        .wake_from(us, READER, 0, 2, 0)
        .wait(us + 1, READER, IDLE, |wait| wait.syscall = EPOLL_WAIT);
}

/// The input thread is runnable from the key on, and the hog has its CPU until it passes the key
/// on.
fn starved(machine: &mut Machinery) {
    machine.switch(PRESSED - 1_000, 0, HOG, 0);
    interrupt(machine, PRESSED + 20);
    machine.switch(BROUGHT, 0, READER, 0);
}

/// The input thread runs at once, and then waits in a task state until it passes the key on; `end`
/// adds the wakeup.
fn blocked(machine: &mut Machinery, state: u16, end: impl FnOnce(&mut Machinery)) {
    interrupt(machine, PRESSED + 20);
    machine.switch(PRESSED + 50, 0, READER, 0).switch(PRESSED + 100, 0, 0, state);
    end(machine);
    machine.switch(BROUGHT, 0, READER, 0);
}

fn first(verdict: &Verdict) -> (CauseKind, Option<u32>, bool) {
    let finding = verdict.findings.first().expect("there is a finding");
    let pid = match &finding.culprit {
        Culprit::Process { pid, .. } => Some(*pid),
        _ => None,
    };
    (finding.kind, pid, (finding.ms - 980.0).abs() < 5.0)
}

#[test]
fn a_process_that_starves_the_input_thread_is_named() {
    let verdict = late_key(starved);
    assert_eq!(first(&verdict), (CauseKind::CpuCompetition, Some(HOG), true), "{verdict:?}");
    let evidence = verdict.findings[0].evidence.join("\n");
    assert!(evidence.contains("ran 980 ms while Xvfb was runnable"), "{evidence}");
    assert_eq!(verdict.findings[0].waiter, "Xvfb", "it needed the CPU, and not the editor");
}

#[test]
fn others_that_wake_the_server_meanwhile_change_nothing() {
    let verdict = late_key(|machine| {
        starved(machine);
        machine.switch(3_499_900, 1, OTHER, 0);
        woken(machine, 3_500_000, OTHER, IDLE);
        machine.message(3_500_002, OTHER, (3, OTHER), 0, 8, &[]).switch(3_500_010, 1, SERVER, 1);
        machine.message(3_500_020, SERVER, (3, OTHER), 1, 8, &[]).switch(3_500_200, 1, 0, 1);
    });
    assert_eq!(first(&verdict), (CauseKind::CpuCompetition, Some(HOG), true), "{verdict:?}");
}

#[test]
fn the_wait_of_a_servers_input_thread_is_explained() {
    let page_in = late_key(|machine| {
        let stack =
            machine.stack(&["__schedule", "io_schedule", "folio_wait_bit_common", "filemap_fault"]);
        blocked(machine, 0x8002, |machine| {
            machine.block(BROUGHT - 70, READER, PRESSED + 90, 4_096, 0);
            machine.wake_from(BROUGHT - 50, READER, 0, 2, 0);
            machine.wait(BROUGHT - 49, READER, PRESSED + 100, |wait| {
                (wait.stack, wait.syscall, wait.state, wait.context, wait.device) =
                    (stack, -1, 0x8002, 2, VDA);
            });
        });
    });
    assert_eq!(first(&page_in), (CauseKind::PageIn, Some(SERVER), true), "{page_in:?}");
    let traced = late_key(|machine| {
        blocked(machine, 8, |machine| {
            machine.wake(BROUGHT - 50, READER, HOG);
            machine.wait(BROUGHT - 49, READER, PRESSED + 100, |wait| {
                (wait.syscall, wait.state) = (EPOLL_WAIT, 8)
            });
        });
    });
    assert_eq!(first(&traced), (CauseKind::Stopped, Some(SERVER), true), "{traced:?}");
}

#[test]
fn an_input_thread_that_had_nothing_to_bring_held_nobody_up() {
    let told_late = late_key(|machine| {
        interrupt(machine, BROUGHT - 50);
        machine.switch(BROUGHT, 0, READER, 0);
    });
    assert!(told_late.findings.is_empty(), "{:?}", told_late.findings);
    let given_late = late_key(|machine| {
        blocked(machine, 1, |machine| {
            machine.wake(BROUGHT - 50, READER, HOG).wait(
                BROUGHT - 49,
                READER,
                PRESSED + 100,
                |wait| {
                    (wait.syscall, wait.args) = (FUTEX, [0x1000, WAIT_BITSET, 0]);
                },
            );
        });
    });
    assert!(given_late.findings.is_empty(), "{:?}", given_late.findings);
}

/// The server sends the key at once; the editor's first thread waits for events that another of its
/// threads receives.
#[test]
fn a_process_that_starves_the_event_thread_is_named() {
    let mut machine = Machinery::with_app("editor");
    machine.task(READER, SERVER, 1, "InputThread", 1).task(HOG, HOG, 1, "hog", 1);
    machine.task(TAKER, APP, 1, "events", 1);
    machine.typing(100_000, 12).device_key(PRESSED).switch(PRESSED - 1_000, 1, HOG, 0);
    interrupt(&mut machine, PRESSED + 20);
    machine.switch(PRESSED + 50, 0, READER, 0);
    woken(&mut machine, PRESSED + 60, READER, IDLE);
    machine.switch(PRESSED + 100, 0, SERVER, 1).message(
        PRESSED + 200,
        SERVER,
        WINDOW,
        2,
        32,
        &[KEY_PRESS],
    );
    machine.wake_from(PRESSED + 205, TAKER, SERVER, 0, 1).switch(PRESSED + 300, 0, 0, 1);
    machine.switch(BROUGHT, 1, TAKER, 0);
    machine.message(BROUGHT + 20, TAKER, WINDOW, 3, 32, &[]).wake_from(
        BROUGHT + 50,
        APP,
        TAKER,
        0,
        1,
    );
    machine.wait(BROUGHT + 51, APP, IDLE - 190, |wait| wait.syscall = EPOLL_WAIT);
    machine.switch(BROUGHT + 100, 1, APP, 1);
    let verdict =
        diagnose(&machine.draw(4_000_000).incident(6_000_000), &DiagnoseOptions::default());
    let verdict = verdict.expect("the scene is well formed");
    assert_eq!(first(&verdict), (CauseKind::CpuCompetition, Some(HOG), true), "{verdict:?}");
}
