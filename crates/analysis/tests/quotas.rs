// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups throttled by a CPU quota, and the processes that used it up.

#[path = "support/stall.rs"]
mod stall;
mod support;

use stall::{NEIGHBOUR, culprit, first, stall};
use support::{APP, Machinery};
use tipme_analysis::model::CauseKind;

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
    assert_eq!((finding.kind, verdict.findings.len()), (CauseKind::CpuThrottled, 1));
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
    machine.task(600, 600, 1, "hog", 0).switch(2_990_000 - 1_000 * ms, 2, 600, 1);
    machine.switch(2_990_000, 2, 0, 0);
    machine.throttled(3_005_000, APP, 3).limited(3, "/tipme/a", pids);
}

#[test]
fn the_process_that_used_up_the_quota_is_named() {
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
        "hog (pid 600) ran 8.0 ms of the 13 ms that the group ran in the 100 ms until it was \
         throttled last",
    ];
    assert_eq!(evidence, expected);
}

#[test]
fn using_less_than_half_of_a_quota_does_not_use_it_up() {
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
        "editor was throttled by the CPU quota of its control group /tipme/a (5 ms per 100 ms)";
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
fn a_thread_outside_the_group_uses_none_of_its_quota() {
    let verdict = stall(|machine| {
        beside_neighbour(machine);
        machine.task(600, 600, 1, "hog", 0).task(601, 600, 1, "hog", 0);
        machine.switch(2_910_000, 2, 601, 1).switch(2_980_000, 2, 600, 0);
        machine.switch(2_988_000, 2, 0, 0);
        machine.throttled(3_005_000, APP, 3).limited_threads(3, "/tipme/a", &[APP, 600]);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::CpuThrottled, 600));
    let ran = "hog (pid 600) ran 8.0 ms of the 13 ms that the group ran in the 100 ms until it was \
               throttled last";
    assert!(finding.evidence.iter().any(|line| line == ran), "{:?}", finding.evidence);
}

/// A worker of the hog exits after the mark, before the members of the group are read.
#[test]
fn an_ended_thread_was_in_the_group_of_its_main_thread() {
    for (ended, owner) in [(vec![601], 600), (vec![], APP)] {
        let verdict = stall(|machine| {
            beside_neighbour(machine);
            machine.task(600, 600, 1, "hog", 0).task(601, 600, 1, "hog", 0);
            machine.switch(2_980_000, 2, 601, 1).switch(2_988_000, 2, 0, 0);
            machine.throttled(3_005_000, APP, 3).limited_threads(3, "/tipme/a", &[APP, 600]);
            machine.groups.ended = ended;
        });
        assert_eq!(culprit(first(&verdict)).0, owner, "one that still lived was elsewhere");
    }
}

/// The same for a process with its parent in the group, or with its parent elsewhere and its
/// grandparent in it.
#[test]
fn an_ended_process_was_in_the_group_of_its_parent() {
    let (alone, parent): (&[u32], &[u32]) = (&[APP, 600], &[APP, 600, 601]);
    for (ended, members, used_up, why) in [
        (vec![602], parent, true, "its parent is in the group"),
        (vec![601, 602], alone, true, "nothing is known of its parent"),
        (vec![602], alone, false, "its parent is elsewhere"),
        (vec![], parent, false, "it is elsewhere itself"),
    ] {
        let verdict = stall(|machine| {
            beside_neighbour(machine);
            machine.task(600, 600, 1, "shell", 1).task(601, 601, 600, "make", 1);
            machine.task(602, 602, 601, "compiler", 0);
            machine.switch(2_980_000, 2, 602, 1).switch(2_988_000, 2, 0, 0);
            machine.throttled(3_005_000, APP, 3).limited_threads(3, "/tipme/a", members);
            machine.groups.ended = ended;
        });
        assert_eq!(culprit(first(&verdict)).0 != APP, used_up, "{why}");
    }
}

/// The other process runs while the editor waits for the next period, so it joins the group only
/// then.
#[test]
fn time_before_joining_a_group_uses_none_of_its_quota() {
    let verdict = stall(|machine| {
        machine.switch(3_005_000, 1, NEIGHBOUR, 0).switch(3_400_000, 1, APP, 0);
        machine.switch(3_405_000, 1, NEIGHBOUR, 0).switch(3_995_000, 1, APP, 0);
        machine.task(600, 600, 1, "late", 0).switch(3_100_000, 2, 600, 1);
        machine.switch(3_300_000, 2, 0, 0);
        machine.switch(3_400_000, 2, 600, 1).switch(3_404_000, 2, 0, 0);
        machine.throttled(3_005_000, APP, 3).throttled(3_405_000, APP, 3);
        machine.limited(3, "/tipme/a", &[APP, 600]);
    });
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::CpuThrottled, APP));
    let ran = "editor (pid 200) ran 9.8 ms of the 14 ms that the group ran in the 500 ms until it \
               was throttled last";
    assert!(finding.evidence.iter().any(|line| line == ran), "{:?}", finding.evidence);
}

/// A quota may be overrun until the next tick of the kernel, and is paid back later.
#[test]
fn overrunning_a_quota_by_a_tick_uses_it_up() {
    let verdict = stall(|machine| hog_until_throttled(machine, 20, &[APP, 600]));
    assert_eq!(culprit(first(&verdict)).0, 600);
}

/// Without records of the processes elsewhere.
#[test]
fn more_time_than_the_quota_allows_blames_no_member() {
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
    machine.switch(3_005_000, 1, 0, 1).switch(3_006_000, 2, NEIGHBOUR, 0);
    machine.switch(3_985_000, 2, 600, 0);
    machine.throttled(3_006_000, 600, 3).limited(3, "/tipme/helper", &[600]);
    machine.wake_from(3_990_000, APP, 600, 0, 1).switch(3_990_050, 1, APP, 0);
    machine.wait(3_990_001, APP, 3_005_000, |wait| {
        (wait.syscall, wait.args) = (support::locks::FUTEX, [64, 0, 2])
    });
}

#[test]
fn waiting_for_a_throttled_helper_is_not_being_in_its_group() {
    let verdict = stall(behind_helper);
    let finding = first(&verdict);
    assert_eq!(
        (finding.kind, culprit(finding)),
        (CauseKind::CpuThrottled, (600, Some("/tipme/helper (5 ms per 100 ms)")))
    );
    let evidence = finding.evidence.iter().take(2).map(String::as_str).collect::<Vec<_>>();
    let held = "helper was throttled by the CPU quota of its control group /tipme/helper (5 ms per \
                100 ms)";
    assert_eq!(evidence, [held, "editor (pid 200) waited for a lock in futex"]);
}

#[test]
fn a_process_outside_the_group_did_not_use_up_its_quota() {
    let verdict = stall(|machine| hog_until_throttled(machine, 80, &[APP]));
    let finding = first(&verdict);
    assert_eq!((finding.kind, culprit(finding).0), (CauseKind::CpuThrottled, APP));
    let alone = "editor (pid 200) ran 4.8 ms of the 4.8 ms that the group ran in the 100 ms until \
                 it was throttled last";
    assert!(finding.evidence.iter().any(|line| line == alone), "{:?}", finding.evidence);
}

#[test]
fn a_process_that_was_in_a_group_for_a_time_was_throttled_then() {
    for (is_gone, group) in [(false, "/tipme/a"), (true, "which is gone")] {
        let verdict = stall(|machine| {
            beside_neighbour(machine);
            machine.throttled(3_005_000, APP, 3);
            if !is_gone {
                machine.limited(3, "/tipme/a", &[]);
            }
        });
        let group = format!("{group} (5 ms per 100 ms)");
        assert_eq!(first(&verdict).kind, CauseKind::CpuThrottled);
        assert_eq!(culprit(first(&verdict)), (APP, Some(group.as_str())));
    }
}

/// The hog runs from a time on until its group is throttled, and after that for almost a second.
fn hog_throttled(machine: &mut Machinery, from: u64, pids: &[u32]) {
    beside_neighbour(machine);
    machine.task(600, 600, 1, "hog", 0).switch(from, 2, 600, 1).switch(from + 5_000, 2, 0, 0);
    machine.throttled(from + 5_000, 600, 3).switch(from + 980_000, 2, 600, 1);
    machine.limited(3, "/tipme/a", pids);
}

#[test]
fn a_ready_thread_in_a_throttled_group_gets_no_cpu() {
    let verdict = stall(|machine| hog_throttled(machine, 3_004_000, &[APP]));
    assert_eq!(first(&verdict).kind, CauseKind::CpuThrottled);
    let verdict = stall(|machine| hog_throttled(machine, 1_500_000, &[APP]));
    assert_eq!(first(&verdict).kind, CauseKind::CpuCompetition, "it was throttled earlier");
    let verdict = stall(|machine| hog_throttled(machine, 3_004_000, &[NEIGHBOUR]));
    assert_eq!(
        (first(&verdict).kind, culprit(first(&verdict)).0),
        (CauseKind::CpuCompetition, NEIGHBOUR)
    );
    let verdict = stall(|machine| {
        hog_throttled(machine, 3_004_000, &[]);
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
            machine.switch(3_995_000, 1, 700, 0).wake_from(3_999_000, APP, 700, 0, 1);
            machine.switch(3_999_010, 1, APP, 0x80);
            machine.task(600, 600, 1, "hog", 0).switch(3_001_000, 2, 600, 1);
            machine.switch(3_003_000, 2, 0, 0);
            machine.throttled(3_003_000, 600, 3).switch(3_996_000, 2, 600, 1);
            machine.limited(3, "/tipme/a", &[parent]);
        });
        assert_eq!(first(&verdict).kind, kind);
        child_alone = child_alone.or(culprit(first(&verdict)).1.map(str::to_owned));
    }
    assert_eq!(child_alone.as_deref(), Some("/tipme/a (5 ms per 100 ms)"));
}

#[test]
fn an_idle_cpu_beside_a_ready_thread_is_a_stall_without_quota() {
    for has_quota in [false, true] {
        let verdict = stall(|machine| {
            machine.switch(3_005_000, 1, 0, 0).switch(3_995_000, 1, APP, 0);
            if has_quota {
                machine.throttled(3_005_000, APP, 3).limited(3, "/tipme/a", &[APP]);
            }
        });
        let kind = if has_quota { CauseKind::CpuThrottled } else { CauseKind::Stall };
        assert_eq!(first(&verdict).kind, kind);
        if has_quota {
            assert_eq!(culprit(first(&verdict)).1, Some("/tipme/a (5 ms per 100 ms)"));
        }
    }
}
