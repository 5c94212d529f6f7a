// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes that depend on several kinds of records: reclaim, softirqs, recurring causes, stops,
//! children.

#[path = "support/stall.rs"]
mod stall;
mod support;

use stall::{NEIGHBOUR, culprit, first, stall};
use support::{APP, Machinery};
use tipme_analysis::model::{CauseKind, Culprit, Verdict};
use tipme_record::Tid;

#[test]
fn time_in_reclaim_is_not_the_applications_own() {
    let verdict = stall(|machine| {
        machine.reclaim(3_005_000, APP, 4, 0, 0).reclaim(3_990_000, APP, 4, 1, 64);
    });
    assert_eq!(first(&verdict).kind, CauseKind::Reclaim);
}

#[test]
fn a_softirq_thread_stands_for_what_it_handles() {
    let verdict = stall(|machine| {
        machine.task(16, 16, 2, "ksoftirqd/1", 1).switch(3_005_000, 1, 16, 0);
        machine.switch(3_995_000, 1, APP, 1);
        for number in 0..90 {
            let us = 3_010_000 + number * 10_000;
            machine.interrupt(us, 1, 60, 3, 1);
            machine.interrupt(us + 5_000, 1, if number % 3 == 0 { 55 } else { 0 }, 6, 1);
        }
    });
    let finding = first(&verdict);
    assert_eq!(finding.kind, CauseKind::Interrupt);
    assert_eq!(finding.culprit, Culprit::Device { device: "softirq network receive".to_owned() });
    assert!(finding.ms > 970.0, "{}", finding.ms);
}

#[test]
fn a_job_that_comes_back_regularly_has_a_period() {
    let verdict = stall(|machine| {
        machine.task(600, 600, 1, "poller", 1);
        for begin in [500_000, 1_500_000, 2_500_000, 4_500_000, 5_500_000] {
            machine.switch(begin, 2, 600, 0).switch(begin + 300_000, 2, 0, 1);
        }
        machine.switch(3_500_000, 1, 600, 0).switch(3_800_000, 1, APP, 1);
    });
    let finding = verdict
        .findings
        .iter()
        .find(|finding| finding.kind == CauseKind::CpuCompetition)
        .expect("it competed");
    assert_eq!((culprit(finding).0, finding.period_s), (600, Some(1.0)));
    assert!(
        finding.evidence.contains(&"every 1.0 s (6 times, deviation 0.0%)".to_owned()),
        "{:?}",
        finding.evidence
    );
    assert!(
        verdict
            .findings
            .iter()
            .any(|finding| finding.kind == CauseKind::OwnComputation && finding.period_s.is_none())
    );
}

#[test]
fn an_interrupt_that_comes_back_regularly_has_a_period() {
    let verdict = stall(|machine| {
        for begin in [200_000, 1_150_000, 2_100_000, 3_050_000, 4_000_000, 4_950_000] {
            machine.interrupt(begin + 160_000, 1, 160_000, 36, 0);
        }
    });
    let finding = verdict
        .findings
        .iter()
        .find(|finding| finding.kind == CauseKind::Interrupt)
        .expect("it took the CPU");
    assert_eq!(finding.period_s, Some(0.95));
}

/// The process that stopped the editor has exited, its pid was reused, and its exit record is no
/// longer held.
#[test]
fn a_stopping_process_keeps_its_name_after_pid_reuse() {
    let verdict = stall(|machine| {
        machine.fork(2_900_000, NEIGHBOUR, 700).signal(3_000_300, 700, APP, 19);
        machine.switch(3_000_310, 1, 0, 4);
        machine.signal(3_995_000, 700, APP, 18).wake(3_995_001, APP, 700);
        machine.switch(3_995_100, 1, APP, 0);
        machine.fork(4_200_000, APP, 700).exit(4_300_000, 700, APP, APP, "forks");
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::Stopped, 700));
    assert!(
        matches!(&finding.culprit, Culprit::Process { comm, .. } if comm == "neighbour"),
        "{finding:?}"
    );
}

/// A debugger seizes the editor without a signal, and continues it.
#[test]
fn a_debugger_is_known_by_letting_the_program_go_on() {
    let verdict = stall(|machine| {
        machine.switch(3_000_300, 1, 0, 8).wake_from(3_995_000, APP, NEIGHBOUR, 0, 1);
        machine
            .wait(3_995_001, APP, 3_000_300, |wait| (wait.waker, wait.state) = (Tid(NEIGHBOUR), 8));
        machine.switch(3_995_100, 1, APP, 0);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::Stopped, NEIGHBOUR));
    let held = format!("neighbour (pid {NEIGHBOUR}) held editor as a debugger does");
    assert_eq!(finding.evidence.first(), Some(&held));
}

/// The freezer of the editor's group holds it in a poll; the process that thaws it wakes it. The
/// kernel stack is unknown.
#[test]
fn a_frozen_program_is_known_by_its_state() {
    let verdict = stall(|machine| {
        machine.switch(3_000_300, 1, 0, 0x4000).wake_from(3_995_000, APP, NEIGHBOUR, 0, 1);
        machine.wait(3_995_001, APP, 3_000_300, |wait| {
            (wait.syscall, wait.args, wait.state) = (7, [1, 3, 0], 0x4000)
        });
        machine.switch(3_995_100, 1, APP, 0);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::Stopped, APP));
    assert_eq!(
        finding.evidence.first().map(String::as_str),
        Some("the control group of editor was frozen")
    );
}

/// The editor waits for a child, which waits for a signal until a timer ends that wait. Meanwhile a
/// child of the child is stopped by its terminal.
#[test]
fn a_grandchild_stopped_by_the_terminal_is_found() {
    let verdict = stall(|machine| {
        machine.fork(3_002_000, APP, 700).switch(3_003_000, 2, 700, 1).fork(3_003_100, 700, 701);
        machine.switch(3_003_200, 2, 701, 1).signal(3_003_500, 701, 701, 22);
        machine.switch(3_003_510, 2, 0, 4);
        machine.switch(3_005_000, 1, 0, 1).wake_from(3_985_000, 700, 0, 2, 2);
        machine.switch(3_985_050, 2, 700, 0);
        machine.wait(3_985_001, 700, 3_003_200, |wait| (wait.syscall, wait.context) = (130, 2));
        machine.signal(3_985_100, 700, 701, 9).wake_from(3_985_101, 701, 700, 0, 2);
        machine.switch(3_985_150, 2, 701, 1);
        machine.wait(3_985_102, 701, 3_003_510, |wait| {
            (wait.pid, wait.state) = (tipme_record::Pid(701), 4)
        });
        machine.exit(3_985_200, 701, 700, 700, "stty").wake_from(3_985_210, 700, 701, 0, 2);
        machine.switch(3_985_250, 2, 700, 16).exit(3_989_990, 700, APP, 700, "timeout");
        machine.wake_from(3_990_000, APP, 700, 0, 1).switch(3_990_050, 1, APP, 0);
        machine.wait(3_990_001, APP, 3_005_000, |wait| wait.syscall = 61);
        machine.switch(3_990_060, 2, 0, 16);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::Stopped, 701), "{finding:?}");
    let stopped = "the terminal stopped stty (pid 701) for writing to it or changing its settings \
                   while in the background (SIGTTOU)";
    assert_eq!(finding.evidence[0].replace(", job \"timeout\"", ""), stopped);
    assert!(
        finding.remedy.starts_with("let the process group of timeout have the terminal"),
        "{}",
        finding.remedy
    );
}

/// A child of the editor computes data that the editor reads from a pipe, and exits at `ends`, by
/// itself or because the editor terminates it.
fn answered_by_child(ends: u64, ended: bool) -> Verdict {
    stall(|machine| {
        if ended {
            machine.signal(ends - 10, APP, 700, 15);
        }
        machine.fork(2_900_000, APP, 700).exit(ends, 700, APP, APP, "spell");
        machine.switch(3_003_000, 2, 700, 1);
        machine.switch(3_005_000, 1, 0, 1).wake_from(3_990_000, APP, 700, 0, 1);
        machine.switch(3_990_050, 1, APP, 0);
        machine.wait(3_990_001, APP, 3_005_000, |wait| (wait.syscall, wait.mode) = (0, 0o010_000));
        machine.switch(3_990_100, 2, 0, 1);
    })
}

#[test]
fn a_living_child_answers_and_an_ended_one_was_waited_for() {
    for (ends, kind) in [(3_990_080, CauseKind::ChildWait), (5_000_000, CauseKind::PeerWait)] {
        let verdict = answered_by_child(ends, false);
        assert_eq!((first(&verdict).kind, culprit(first(&verdict)).0), (kind, 700));
    }
    let verdict = answered_by_child(3_990_080, true);
    assert_eq!(first(&verdict).kind, CauseKind::PeerWait, "it would have gone on");
    assert_eq!(
        first(&answered_by_child(5_000_000, false)).evidence[0],
        "editor waited for an answer from spell (pid 700)"
    );
}

#[test]
fn a_child_that_sleeps_until_its_exit_was_waited_for() {
    for (ends, kind) in [(3_990_080, CauseKind::ChildWait), (5_000_000, CauseKind::TimerSleep)] {
        let verdict = stall(|machine| {
            machine.fork(3_002_500, APP, 700).exit(ends, 700, APP, APP, "spell");
            machine.wake_from(3_002_600, 700, APP, 0, 2);
            machine.switch(3_003_000, 2, 700, 1);
            machine.switch(3_004_000, 2, 0, 1).switch(3_005_000, 1, 0, 1);
            machine.wake_from(3_989_000, 700, 0, 2, 2);
            machine
                .wait(3_989_002, 700, 3_004_000, |wait| wait.syscall = 230)
                .switch(3_989_050, 2, 700, 0);
            machine.wake_from(3_990_000, APP, 700, 0, 1).switch(3_990_050, 1, APP, 0);
            machine
                .wait(3_990_001, APP, 3_005_000, |wait| (wait.syscall, wait.args) = (7, [1, 1, 0]));
            machine.switch(3_990_100, 2, 0, 1);
        });
        let finding = first(&verdict);
        assert_eq!((finding.kind, culprit(finding).0), (kind, 700));
        let waited = finding.evidence[0].starts_with("editor waited for spell (pid 700) to exit");
        assert_eq!(waited, kind == CauseKind::ChildWait, "{:?}", finding.evidence);
    }
}

/// The editor waits in a futex for a thread of its own, or for another process, that computes
/// meanwhile.
fn waits_in_futex(waker: (u32, u32), operation: u64, value: u64) -> Verdict {
    stall(|machine| {
        machine.task(waker.0, waker.1, 1, "worker", 1).switch(3_003_000, 2, waker.0, 1);
        machine.switch(3_005_000, 1, 0, 1).wake_from(3_990_000, APP, waker.0, 0, 1);
        machine.switch(3_990_050, 1, APP, 0);
        machine.wait(3_990_001, APP, 3_005_000, |wait| {
            (wait.syscall, wait.args) = (202, [0x7000, operation, value]);
        });
        machine.switch(3_990_100, 2, 0, 1);
    })
}

#[test]
fn a_thread_due_to_signal_a_condition_holds_no_lock() {
    let own = "editor waited for another of its threads to signal a condition or semaphore";
    let other = "editor waited for worker (pid 700) to signal a condition or semaphore";
    let held = "editor waited for a lock held by another of its threads";
    for (waker, operation, value, evidence, is_lock) in [
        ((205, APP), 0x89, 0, own, false),
        ((700, 700), 9, 0, other, false),
        ((205, APP), 0x80, 2, held, true),
    ] {
        let verdict = waits_in_futex(waker, operation, value);
        let finding = first(&verdict);
        assert_eq!((finding.kind, finding.evidence[0].as_str()), (CauseKind::LockWait, evidence));
        assert_eq!(finding.remedy.contains("hold the lock"), is_lock, "{evidence}");
        assert_eq!(finding.signalled, !is_lock, "{evidence}");
    }
}

/// Keys at 3 and at 6 s that make the editor compute for `first` and `second` milliseconds; the
/// mark is at 9 s.
fn two_in_a_row(first: u64, second: u64) -> Verdict {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12);
    for (pressed, ms) in [(3_000_000, first), (6_000_000, second)] {
        machine.press(pressed).draw(pressed + 1_000 * ms);
    }
    machine.diagnose(9_000_000)
}

#[test]
fn the_last_delay_is_explained_unless_it_is_much_shorter() {
    for (second, explained) in [(1_490, 1_490.0), (900, 900.0), (600, 1_500.0)] {
        let interval = two_in_a_row(1_500, second).interval;
        assert_eq!(interval.map(|interval| interval.latency_ms.round()), Some(explained));
    }
}
