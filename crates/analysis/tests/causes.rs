// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes that depend on several kinds of records: quotas, reclaim, softirqs, recurring causes.

#[path = "support/stall.rs"]
mod stall;
mod support;

use stall::{NEIGHBOUR, culprit, first, kinds, stall};
use support::{APP, Machinery};
use tipme_analysis::model::{CauseKind, Culprit, Verdict};
use tipme_analysis::{DiagnoseOptions, diagnose};
use tipme_record::Tid;

/// The editor is runnable from 3.005 to 3.995 s while the neighbour runs on its CPU.
fn beside_neighbour(machine: &mut Machinery) {
    machine.switch(3_005_000, 1, NEIGHBOUR, 0).switch(3_995_000, 1, APP, 0);
}

#[test]
fn a_throttled_group_is_named_and_never_the_neighbour() {
    let verdict = stall(|machine| {
        beside_neighbour(machine);
        machine.throttled(3_005_000, APP, 3).limited(3, "/tipme/a", &[APP]);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, kinds(&verdict).len()), (CauseKind::CpuThrottled, 1));
    assert_eq!(culprit(finding), (APP, Some("/tipme/a (5 ms per 100 ms)")));
    assert!((finding.ms - 990.0).abs() < 15.0, "{}", finding.ms);
    assert!(
        finding.remedy.contains("/sys/fs/cgroup/cpu/tipme/a/cpu.cfs_quota_us"),
        "{}",
        finding.remedy
    );
    let evidence = finding.evidence.join("\n");
    assert!(
        evidence.contains("the group was throttled in 10 periods, 990 ms of 990 ms"),
        "{evidence}"
    );
}

/// The hog, which is in the group or not, runs on another CPU for `ms` until the group is
/// throttled.
fn hog_until_throttled(machine: &mut Machinery, ms: u64, pids: &'static [u32]) {
    beside_neighbour(machine);
    machine
        .task(600, 600, 1, "hog", 0)
        .switch(2_990_000 - 1_000 * ms, 2, 600, 1)
        .switch(2_990_000, 2, 0, 0);
    machine.throttled(3_005_000, APP, 3).limited(3, "/tipme/a", pids);
}

#[test]
fn who_used_the_quota_up_is_named_and_how_much_of_it() {
    let verdict = stall(|machine| hog_until_throttled(machine, 8, &[APP, 600]));
    let finding = first(&verdict);
    assert_eq!(
        (finding.kind, culprit(finding)),
        (CauseKind::CpuThrottled, (600, Some("/tipme/a (5 ms per 100 ms)")))
    );
    let evidence = finding.evidence.iter().map(String::as_str).collect::<Vec<_>>();
    let expected = [
        "hog (pid 600) used up the CPU quota of editor's control group /tipme/a (5 ms per 100 ms)",
        "the group was throttled in 10 periods, 990 ms of 990 ms",
        "hog (pid 600) ran 8.0 ms of the 13 ms that the group ran in the 100 ms until it was throttled last",
    ];
    assert_eq!(evidence, expected);
}

#[test]
fn who_used_less_than_half_of_the_quota_did_not_use_it_up() {
    let verdict = stall(|machine| {
        beside_neighbour(machine);
        for (pid, name, from) in [(600, "one", 2_910_000), (601, "two", 2_915_000)] {
            machine.task(pid, pid, 1, name, 0).switch(from, 2, pid, 1);
        }
        machine.switch(2_919_900, 2, 0, 1);
        machine.throttled(3_005_000, APP, 3).limited(3, "/tipme/a", &[APP, 600, 601]);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::CpuThrottled, APP));
    let held =
        "editor was held back by the CPU quota of its control group /tipme/a (5 ms per 100 ms)";
    assert_eq!(finding.evidence.first().map(String::as_str), Some(held));
    assert!(
        finding
            .evidence
            .iter()
            .any(|line| line.contains("ran 5.0 ms of the 15 ms that the group ran")),
        "{finding:?}"
    );
}

/// Another thread of the hog runs for long outside the group.
#[test]
fn what_a_thread_outside_of_the_group_ran_used_nothing_of_its_quota() {
    let verdict = stall(|machine| {
        beside_neighbour(machine);
        machine.task(600, 600, 1, "hog", 0).task(601, 600, 1, "hog", 0);
        machine
            .switch(2_910_000, 2, 601, 1)
            .switch(2_980_000, 2, 600, 0)
            .switch(2_988_000, 2, 0, 0);
        machine.throttled(3_005_000, APP, 3).limited_threads(3, "/tipme/a", &[APP, 600]);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::CpuThrottled, 600));
    let ran = "hog (pid 600) ran 8.0 ms of the 13 ms that the group ran in the 100 ms until it was throttled last";
    assert!(finding.evidence.iter().any(|line| line == ran), "{:?}", finding.evidence);
}

/// A worker of the hog exits after the mark, before the members of the group are read.
#[test]
fn who_ended_before_the_members_were_read_was_with_its_main_thread() {
    let ran = |ended: &[u32]| {
        let verdict = stall(|machine| {
            beside_neighbour(machine);
            machine.task(600, 600, 1, "hog", 0).task(601, 600, 1, "hog", 0);
            machine.switch(2_980_000, 2, 601, 1).switch(2_988_000, 2, 0, 0);
            machine.throttled(3_005_000, APP, 3).limited_threads(3, "/tipme/a", &[APP, 600]);
            machine.groups.ended = ended.to_vec();
        });
        culprit(first(&verdict)).0
    };
    assert_eq!([ran(&[601]), ran(&[])], [600, APP], "one that still lived was elsewhere");
}

/// The same for a process with its parent in the group, or with its parent elsewhere and its
/// grandparent in it.
#[test]
fn a_process_that_ended_before_the_members_were_read_was_where_its_parent_is() {
    let used_up = |ended: &[u32], members: &[u32]| {
        let verdict = stall(|machine| {
            beside_neighbour(machine);
            machine
                .task(600, 600, 1, "shell", 1)
                .task(601, 601, 600, "make", 1)
                .task(602, 602, 601, "compiler", 0);
            machine.switch(2_980_000, 2, 602, 1).switch(2_988_000, 2, 0, 0);
            machine.throttled(3_005_000, APP, 3).limited_threads(3, "/tipme/a", members);
            machine.groups.ended = ended.to_vec();
        });
        culprit(first(&verdict)).0 != APP
    };
    assert!(used_up(&[602], &[APP, 600, 601]));
    assert!(used_up(&[601, 602], &[APP, 600]), "of its parent nothing is known");
    assert!(!used_up(&[602], &[APP, 600]), "its parent is elsewhere");
    assert!(!used_up(&[], &[APP, 600, 601]), "it is elsewhere itself");
}

/// The other process runs while the editor waits for the next period, so it joins the group only
/// then.
#[test]
fn what_a_process_ran_before_it_came_into_the_group_used_nothing_of_its_quota() {
    let verdict = stall(|machine| {
        machine.switch(3_005_000, 1, NEIGHBOUR, 0).switch(3_400_000, 1, APP, 0);
        machine.switch(3_405_000, 1, NEIGHBOUR, 0).switch(3_995_000, 1, APP, 0);
        machine
            .task(600, 600, 1, "late", 0)
            .switch(3_100_000, 2, 600, 1)
            .switch(3_300_000, 2, 0, 0);
        machine.switch(3_400_000, 2, 600, 1).switch(3_404_000, 2, 0, 0);
        machine.throttled(3_005_000, APP, 3).throttled(3_405_000, APP, 3).limited(
            3,
            "/tipme/a",
            &[APP, 600],
        );
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::CpuThrottled, APP));
    let ran = "editor (pid 200) ran 9.8 ms of the 14 ms that the group ran in the 500 ms until it was throttled last";
    assert!(finding.evidence.iter().any(|line| line == ran), "{:?}", finding.evidence);
}

/// A quota may be overrun until the next tick of the kernel, and is paid back later.
#[test]
fn who_overran_a_quota_by_a_tick_used_it_up() {
    let verdict = stall(|machine| hog_until_throttled(machine, 20, &[APP, 600]));
    assert_eq!(culprit(first(&verdict)).0, 600);
}

/// Without records of the processes elsewhere.
#[test]
fn nobody_used_a_quota_up_whose_group_cannot_have_run_for_so_long() {
    let verdict = stall(|machine| hog_until_throttled(machine, 80, &[APP, 600]));
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::CpuThrottled, APP));
    assert!(
        !finding.evidence.iter().any(|line| line.contains("that the group ran")),
        "{finding:?}"
    );
}

/// A helper that holds the editor's lock is in a group of its own, and throttled with it.
fn behind_helper(machine: &mut Machinery) {
    machine.task(600, 600, 1, "helper", 0).switch(2_999_000, 2, 600, 1);
    machine
        .switch(3_005_000, 1, 0, 1)
        .switch(3_006_000, 2, NEIGHBOUR, 0)
        .switch(3_985_000, 2, 600, 0);
    machine.throttled(3_006_000, 600, 3).limited(3, "/tipme/helper", &[600]);
    machine.wake_from(3_990_000, APP, 600, 0, 1).switch(3_990_050, 1, APP, 0);
    machine.wait(3_990_001, APP, 3_005_000, |wait| {
        (wait.syscall, wait.args) = (support::locks::FUTEX, [64, 0, 2])
    });
}

#[test]
fn who_waits_for_a_throttled_helper_is_not_in_its_group() {
    let verdict = stall(behind_helper);
    let finding = first(&verdict);
    assert_eq!(
        (finding.kind, culprit(finding)),
        (CauseKind::CpuThrottled, (600, Some("/tipme/helper (5 ms per 100 ms)")))
    );
    let evidence = finding.evidence.iter().take(2).map(String::as_str).collect::<Vec<_>>();
    let held = "helper was held back by the CPU quota of its control group /tipme/helper (5 ms per 100 ms)";
    assert_eq!(evidence, [held, "editor (pid 200) waited for a lock in futex"]);
}

#[test]
fn who_is_not_in_the_group_did_not_use_its_quota_up() {
    let verdict = stall(|machine| hog_until_throttled(machine, 80, &[APP]));
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::CpuThrottled, APP));
    let alone = "editor (pid 200) ran 4.8 ms of the 4.8 ms that the group ran in the 100 ms until it was throttled last";
    assert!(finding.evidence.iter().any(|line| line == alone), "{:?}", finding.evidence);
}

#[test]
fn a_process_that_was_in_a_group_for_a_time_was_throttled_then() {
    let moved_on = |machine: &mut Machinery| {
        beside_neighbour(machine);
        machine.throttled(3_005_000, APP, 3);
    };
    let left = stall(|machine| {
        moved_on(machine);
        machine.limited(3, "/tipme/a", &[]);
    });
    assert_eq!(culprit(first(&left)), (APP, Some("/tipme/a (5 ms per 100 ms)")));
    let gone = stall(moved_on);
    assert_eq!(first(&gone).kind, CauseKind::CpuThrottled);
    assert_eq!(culprit(first(&gone)), (APP, Some("which is gone (5 ms per 100 ms)")));
}

#[test]
fn who_is_ready_in_a_throttled_group_gets_no_cpu_either() {
    let throttled = |from: u64, pids: &'static [u32]| {
        move |machine: &mut Machinery| {
            beside_neighbour(machine);
            machine.task(600, 600, 1, "hog", 0).switch(from, 2, 600, 1).switch(
                from + 5_000,
                2,
                0,
                0,
            );
            machine
                .throttled(from + 5_000, 600, 3)
                .switch(from + 980_000, 2, 600, 1)
                .limited(3, "/tipme/a", pids);
        }
    };
    assert_eq!(first(&stall(throttled(3_004_000, &[APP]))).kind, CauseKind::CpuThrottled);
    assert_eq!(
        first(&stall(throttled(1_500_000, &[APP]))).kind,
        CauseKind::CpuCompetition,
        "it was throttled earlier"
    );
    let verdict = stall(throttled(3_004_000, &[NEIGHBOUR]));
    assert_eq!(
        (first(&verdict).kind, culprit(first(&verdict)).0),
        (CauseKind::CpuCompetition, NEIGHBOUR)
    );
    let verdict = stall(|machine| {
        throttled(3_004_000, &[])(machine);
        machine.groups.limited.clear();
        machine.task(201, APP, 1, "worker", 1).limited_threads(3, "/tipme/a", &[201, 600]);
    });
    assert_eq!(
        first(&verdict).kind,
        CauseKind::CpuCompetition,
        "only another thread of the editor is in the group"
    );
}

#[test]
fn a_child_that_died_unseen_was_in_its_parents_group() {
    let mut child_alone = None;
    for (parent, kind) in [(APP, CauseKind::CpuThrottled), (NEIGHBOUR, CauseKind::CpuCompetition)] {
        let verdict = stall(|machine| {
            machine.fork(3_001_000, APP, 700).exit(3_998_000, 700, APP, APP, "spell");
            machine.switch(3_002_000, 1, 700, 1).switch(3_005_000, 1, NEIGHBOUR, 0);
            machine.wait(3_999_000, APP, 3_002_000, |wait| {
                (wait.syscall, wait.args) = (61, [700, 0, 0])
            });
            machine
                .switch(3_995_000, 1, 700, 0)
                .wake_from(3_999_000, APP, 700, 0, 1)
                .switch(3_999_010, 1, APP, 0x80);
            machine
                .task(600, 600, 1, "hog", 0)
                .switch(3_001_000, 2, 600, 1)
                .switch(3_003_000, 2, 0, 0);
            machine.throttled(3_003_000, 600, 3).switch(3_996_000, 2, 600, 1).limited(
                3,
                "/tipme/a",
                &[parent],
            );
        });
        assert_eq!(first(&verdict).kind, kind);
        child_alone = child_alone.or(culprit(first(&verdict)).1.map(str::to_owned));
    }
    assert_eq!(child_alone.as_deref(), Some("/tipme/a (5 ms per 100 ms)"));
}

#[test]
fn an_idle_cpu_beside_a_ready_thread_is_a_stall_where_no_quota_holds() {
    let beside_idle = |machine: &mut Machinery| {
        machine.switch(3_005_000, 1, 0, 0).switch(3_995_000, 1, APP, 0);
    };
    assert_eq!(first(&stall(beside_idle)).kind, CauseKind::Stall);
    let verdict = stall(|machine| {
        beside_idle(machine);
        machine.throttled(3_005_000, APP, 3).limited(3, "/tipme/a", &[APP]);
    });
    assert_eq!(first(&verdict).kind, CauseKind::CpuThrottled);
    assert_eq!(culprit(first(&verdict)).1, Some("/tipme/a (5 ms per 100 ms)"));
}

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
        machine
            .task(16, 16, 2, "ksoftirqd/1", 1)
            .switch(3_005_000, 1, 16, 0)
            .switch(3_995_000, 1, APP, 1);
        for number in 0..90 {
            let us = 3_010_000 + number * 10_000;
            machine.interrupt(us, 1, 60, 3, 1).interrupt(
                us + 5_000,
                1,
                if number % 3 == 0 { 55 } else { 0 },
                6,
                1,
            );
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
fn who_stopped_a_program_keeps_its_name_though_its_number_was_given_again() {
    let verdict = stall(|machine| {
        machine
            .fork(2_900_000, NEIGHBOUR, 700)
            .signal(3_000_300, 700, APP, 19)
            .switch(3_000_310, 1, 0, 4);
        machine
            .signal(3_995_000, 700, APP, 18)
            .wake(3_995_001, APP, 700)
            .switch(3_995_100, 1, APP, 0);
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
fn a_grandchild_that_the_terminal_stopped_is_found_behind_waits_for_children() {
    let verdict = stall(|machine| {
        machine.fork(3_002_000, APP, 700).switch(3_003_000, 2, 700, 1).fork(3_003_100, 700, 701);
        machine
            .switch(3_003_200, 2, 701, 1)
            .signal(3_003_500, 701, 701, 22)
            .switch(3_003_510, 2, 0, 4);
        machine
            .switch(3_005_000, 1, 0, 1)
            .wake_from(3_985_000, 700, 0, 2, 2)
            .switch(3_985_050, 2, 700, 0);
        machine.wait(3_985_001, 700, 3_003_200, |wait| (wait.syscall, wait.context) = (130, 2));
        machine
            .signal(3_985_100, 700, 701, 9)
            .wake_from(3_985_101, 701, 700, 0, 2)
            .switch(3_985_150, 2, 701, 1);
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
    let stopped = "the terminal stopped stty (pid 701) for writing to it or changing its settings while in the \
                   background (SIGTTOU)";
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
        machine
            .fork(2_900_000, APP, 700)
            .exit(ends, 700, APP, APP, "spell")
            .switch(3_003_000, 2, 700, 1);
        machine
            .switch(3_005_000, 1, 0, 1)
            .wake_from(3_990_000, APP, 700, 0, 1)
            .switch(3_990_050, 1, APP, 0);
        machine.wait(3_990_001, APP, 3_005_000, |wait| (wait.syscall, wait.mode) = (0, 0o010_000));
        machine.switch(3_990_100, 2, 0, 1);
    })
}

#[test]
fn a_child_that_lives_on_gave_an_answer_and_one_that_ended_was_waited_for() {
    for (ends, kind) in [(3_990_080, CauseKind::ChildWait), (5_000_000, CauseKind::PeerWait)] {
        let verdict = answered_by_child(ends, false);
        assert_eq!((first(&verdict).kind, culprit(first(&verdict)).0), (kind, 700));
    }
    let verdict = answered_by_child(3_990_080, true);
    assert_eq!(first(&verdict).kind, CauseKind::PeerWait, "it would have gone on");
    let told = "spell (pid 700) kept editor waiting for an answer";
    assert_eq!(
        first(&answered_by_child(5_000_000, false)).evidence.first().map(String::as_str),
        Some(told)
    );
}

#[test]
fn a_child_that_sleeps_until_its_end_was_waited_for_whatever_tells_of_that() {
    for (ends, kind) in [(3_990_080, CauseKind::ChildWait), (5_000_000, CauseKind::TimerSleep)] {
        let verdict = stall(|machine| {
            machine
                .fork(3_002_500, APP, 700)
                .exit(ends, 700, APP, APP, "spell")
                .wake_from(3_002_600, 700, APP, 0, 2);
            machine.switch(3_003_000, 2, 700, 1);
            machine
                .switch(3_004_000, 2, 0, 1)
                .switch(3_005_000, 1, 0, 1)
                .wake_from(3_989_000, 700, 0, 2, 2);
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
        let told = finding.evidence[0].starts_with("editor waited for spell (pid 700) to end");
        assert_eq!(told, kind == CauseKind::ChildWait, "{:?}", finding.evidence);
    }
}

/// The editor waits in a futex for a thread of its own, or for another process, that computes
/// meanwhile.
fn waits_in_futex(waker: (u32, u32), operation: u64, value: u64) -> Verdict {
    stall(|machine| {
        machine.task(waker.0, waker.1, 1, "worker", 1).switch(3_003_000, 2, waker.0, 1);
        machine
            .switch(3_005_000, 1, 0, 1)
            .wake_from(3_990_000, APP, waker.0, 0, 1)
            .switch(3_990_050, 1, APP, 0);
        machine.wait(3_990_001, APP, 3_005_000, |wait| {
            (wait.syscall, wait.args) = (202, [0x7000, operation, value]);
        });
        machine.switch(3_990_100, 2, 0, 1);
    })
}

#[test]
fn who_is_to_signal_a_condition_holds_no_lock() {
    let told = |waker, operation, value| {
        let verdict = waits_in_futex(waker, operation, value);
        let finding = first(&verdict).clone();
        assert_eq!(finding.kind, CauseKind::LockWait);
        (finding.evidence[0].clone(), finding.remedy.contains("hold the lock"), finding.signalled)
    };
    let (evidence, lock, signalled) = told((205, APP), 0x89, 0);
    assert_eq!((lock, signalled), (false, true));
    assert_eq!(
        evidence,
        "editor waited for another thread of its own to signal a condition or semaphore"
    );
    let (evidence, ..) = told((700, 700), 9, 0);
    assert_eq!(evidence, "editor waited for worker (pid 700) to signal a condition or semaphore");
    let (evidence, lock, signalled) = told((205, APP), 0x80, 2);
    assert_eq!((lock, signalled), (true, false), "{evidence}");
    assert_eq!(evidence, "editor waited for a lock that another thread of its own held");
}

/// Keys at 3 and at 6 s that make the editor compute for `first` and `second` milliseconds; the
/// mark is at 9 s.
fn two_in_a_row(first: u64, second: u64) -> Verdict {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12);
    for (pressed, ms) in [(3_000_000, first), (6_000_000, second)] {
        machine.press(pressed).draw(pressed + 1_000 * ms);
    }
    let incident = machine.incident(9_000_000);
    diagnose(&incident, &DiagnoseOptions::default()).expect("the scene is well formed")
}

#[test]
fn the_last_delay_is_meant_where_it_is_not_much_shorter_than_one_before() {
    let ms = |first, second| {
        two_in_a_row(first, second).interval.map(|interval| interval.latency_ms.round())
    };
    assert_eq!(ms(1_500, 1_490), Some(1_490.0));
    assert_eq!(ms(1_500, 900), Some(900.0));
    assert_eq!(ms(1_500, 600), Some(1_500.0));
}
