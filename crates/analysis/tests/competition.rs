// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owners of the CPU and the reason: priorities, background work, and a hypervisor that takes it
//! from all.

mod support;

use support::{APP, Machinery, SERVER};
use tipme_analysis::model::{CauseKind, Culprit, Finding, Outsider, Verdict};
use tipme_analysis::{DiagnoseOptions, diagnose};

const NEIGHBOUR: u32 = 500;

/// An editor that types well, with a key at 3 s that `fill` makes slow; it answers at 4 s.
/// Priorities and policies of editor and neighbour are as given.
fn stall(
    prios: &[(u32, u8)],
    policies: &[(u32, u32)],
    fill: impl FnOnce(&mut Machinery),
) -> Verdict {
    let mut machine = Machinery::new();
    machine.prios.extend(prios.iter().copied());
    machine.policies.extend(policies.iter().copied());
    machine.task(APP, APP, 1, "editor", 1).task(NEIGHBOUR, NEIGHBOUR, 1, "neighbour", 1);
    machine.typing(100_000, 12).press(3_000_000);
    fill(&mut machine);
    machine.draw(4_000_000).diagnose(6_000_000)
}

/// The editor is runnable from 3.005 to 3.995 s while the neighbour runs on its CPU.
fn beside_neighbour(machine: &mut Machinery) {
    machine.switch(3_005_000, 1, NEIGHBOUR, 0).switch(3_995_000, 1, APP, 0);
}

/// The editor is runnable from 3.005 to 3.995 s while its CPU is idle.
fn beside_idle(machine: &mut Machinery) {
    machine.switch(3_005_000, 1, 0, 0).switch(3_995_000, 1, APP, 0);
}

fn first(verdict: &Verdict) -> &Finding {
    verdict.findings.first().expect("there is a finding")
}

/// Returns evidence and remedy for the competition with a neighbour.
fn evidence_and_remedy(prios: &[(u32, u8)], policies: &[(u32, u32)]) -> (String, String) {
    let verdict = stall(prios, policies, beside_neighbour);
    let finding = first(&verdict);
    assert_eq!(finding.kind, CauseKind::CpuCompetition);
    (finding.evidence.join("\n"), finding.remedy.clone())
}

#[test]
fn equals_are_reported_without_priorities() {
    let (evidence, remedy) = evidence_and_remedy(&[], &[]);
    assert!(
        !evidence.contains("nice") && remedy.starts_with("renice -n 19 -p 500"),
        "{evidence}\n{remedy}"
    );
}

/// Four others have the CPU for a sixth of the time each; the editor computes for a third of it.
#[test]
fn many_competitors_come_before_less_own_computation() {
    let verdict = stall(&[], &[], |machine| {
        for (index, other) in (600..604).enumerate() {
            machine.task(other, other, 1, "hog", 1);
            machine.switch(3_005_000 + 165_000 * index as u64, 1, other, 0);
        }
        machine.switch(3_665_000, 1, APP, 0);
    });
    let kinds: Vec<CauseKind> = verdict.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(
        kinds,
        [[CauseKind::CpuCompetition; 4].as_slice(), &[CauseKind::OwnComputation]].concat()
    );
    let ms: Vec<f64> = verdict.findings.iter().map(|finding| finding.ms.round()).collect();
    assert!(ms[4] > ms[0], "{ms:?}");
}

/// A shell has started four processes of these names, which have the CPU one after the other.
fn culprit_of_many(names: [&str; 4]) -> (u32, String) {
    const SHELL: u32 = 590;
    let verdict = stall(&[], &[], |machine| {
        machine.task_in(SHELL, SHELL, 1, SHELL, "bash", 1);
        for (index, (name, other)) in names.into_iter().zip(600..).enumerate() {
            machine.task_in(other, other, SHELL, SHELL, name, 1);
            machine.switch(3_005_000 + 250_000 * index as u64, 1, other, 0);
        }
        machine.switch(3_995_000, 1, APP, 0);
    });
    match &first(&verdict).culprit {
        Culprit::Process { pid, comm, .. } => (*pid, comm.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn many_processes_of_one_program_are_named_by_it() {
    assert_eq!(culprit_of_many(["hog"; 4]), (602, "hog".to_owned()));
    assert_eq!(culprit_of_many(["hog", "hog", "hog", "indexer"]), (602, "hog".to_owned()));
    assert_eq!(culprit_of_many(["hog", "hog", "indexer", "indexer"]), (590, "bash".to_owned()));
}

#[test]
fn an_ended_process_is_not_to_be_reniced() {
    const GONE: u32 = 600;
    let [reaped, zombie] = [false, true].map(|is_zombie| {
        let verdict = stall(&[], &[], |machine| {
            machine.switch(3_005_000, 1, GONE, 0).switch(3_995_000, 1, APP, 0x80);
            machine.exit(3_995_000, GONE, 1, GONE, "compiler");
            if is_zombie {
                machine.task(GONE, GONE, 1, "compiler", 0x80);
            }
        });
        assert_eq!(first(&verdict).kind, CauseKind::CpuCompetition);
        first(&verdict).remedy.clone()
    });
    let remedy = "start compiler with nice -n 19 next time (this one has ended)";
    assert!(reaped.starts_with(remedy), "{reaped}");
    assert_eq!(zombie, reaped, "its parent has not asked for its exit code");
}

#[test]
fn a_lower_nice_value_is_reported() {
    let (evidence, remedy) = evidence_and_remedy(&[(NEIGHBOUR, 115)], &[]);
    assert!(evidence.contains("neighbour runs at nice -5, editor at nice 0"), "{evidence}");
    assert!(remedy.starts_with("renice -n 19 -p 500"), "{remedy}");
    let (evidence, _) = evidence_and_remedy(&[(NEIGHBOUR, 130)], &[]);
    assert!(!evidence.contains("nice"), "who has the worse priority did not win by it: {evidence}");
}

#[test]
fn a_real_time_policy_is_reported_and_revoked() {
    let (evidence, remedy) = evidence_and_remedy(&[(NEIGHBOUR, 49)], &[(NEIGHBOUR, 1)]);
    assert!(evidence.contains("neighbour runs with real-time priority FIFO 50"), "{evidence}");
    assert_eq!(
        remedy, "chrt -o -p 0 500 (it runs with real-time priority FIFO 50)",
        "no manager helps against it"
    );
}

/// Nice values do not affect a real-time thread, even if its priority was not decisive.
#[test]
fn no_renice_for_a_real_time_thread_behind_another() {
    let (evidence, remedy) =
        evidence_and_remedy(&[(NEIGHBOUR, 49), (APP, 49)], &[(NEIGHBOUR, 1), (APP, 1)]);
    assert!(!evidence.contains("priority"), "{evidence}");
    assert_eq!(remedy, "chrt -o -p 0 500 (it runs with real-time priority FIFO 50)");
}

#[test]
fn a_real_time_policy_taken_while_running_is_noticed() {
    const GONE: u32 = 600;
    let verdict = stall(&[], &[], |machine| {
        machine.switch(3_005_000, 1, GONE, 0).prios.insert(GONE, 94);
        machine.switch(3_995_000, 1, APP, 0x80).exit(3_995_000, GONE, 1, GONE, "player");
    });
    let finding = first(&verdict);
    assert!(
        finding.evidence.iter().any(|line| line.starts_with("player runs with real-time")),
        "{finding:?}"
    );
    let remedy = "start it without real-time priority next time (it ran with real-time priority 5, \
                  and has ended)";
    assert_eq!(finding.remedy, remedy);
}

#[test]
fn no_renice_for_a_real_time_client_of_the_server() {
    let renice = "renice -n 10 -p 900 (its requests come in smaller portions)";
    let chrt = "chrt -o -p 0 900 (it runs with real-time priority FIFO 50)";
    for (prio, policy, remedy) in [(120, 0, renice), (49, 1, chrt)] {
        let mut machine = Machinery::new();
        machine.prios.insert(900, prio);
        machine.policies.insert(900, policy);
        machine.task(APP, APP, 1, "editor", 1).task(900, 900, 1, "wallpaper", 1);
        machine.typing(100_000, 12);
        machine.switch(2_990_000, 1, 900, 0).switch(2_991_000, 1, 0, 1);
        machine.switch(2_999_000, 0, SERVER, 0).message(2_999_100, SERVER, (9, 900), 1, 4_000, &[]);
        machine.press_while_busy(3_000_000, 3_400_000);
        let verdict =
            diagnose(&machine.draw(3_401_000).incident(6_000_000), &DiagnoseOptions::default());
        let verdict = verdict.expect("the scene is well formed");
        let finding = first(&verdict);
        assert_eq!((finding.kind, finding.remedy.as_str()), (CauseKind::ServerBusy, remedy));
    }
}

#[test]
fn a_waiter_with_a_worse_priority_is_raised() {
    let (evidence, remedy) = evidence_and_remedy(&[(APP, 139)], &[]);
    assert!(evidence.contains("neighbour runs at nice 0, editor at nice 19"), "{evidence}");
    assert!(
        remedy.starts_with("renice -n 0 -p 200 (the waiting process runs at nice 19)"),
        "{remedy}"
    );
    let (_, remedy) = evidence_and_remedy(&[], &[(APP, 5)]);
    assert!(
        remedy.starts_with("chrt -o -p 0 200 (the waiting process runs with the idle policy)"),
        "{remedy}"
    );
}

#[test]
fn the_manager_is_offered_against_work_in_the_background_only() {
    let background = stall(&[], &[], beside_neighbour);
    assert!(first(&background).remedy.contains("tipme manage"), "{}", first(&background).remedy);
    let on_display = stall(&[], &[], |machine| {
        beside_neighbour(machine);
        machine.message(1_500_000, SERVER, (3, NEIGHBOUR), 1, 20, &[support::DRAW_TEXT]);
    });
    assert!(!first(&on_display).remedy.contains("tipme manage"), "{}", first(&on_display).remedy);
    let managed = stall(&[], &[], |machine| {
        beside_neighbour(machine);
        machine.task(700, 700, 1, "tipme", 1).cmdline(700, b"/usr/bin/tipme\0manage");
    });
    assert!(!first(&managed).remedy.contains("tipme manage"), "{}", first(&managed).remedy);
}

/// Steal time of each CPU: `before` ticks of 10 ms, and `ticks` more from 3 to 4 s.
fn taken(machine: &mut Machinery, before: u64, ticks: [u64; 2]) {
    for us in (0..=60).map(|tenth| tenth * 100_000) {
        let part = us.clamp(3_000_000, 4_000_000) - 3_000_000;
        machine.stolen(us, ticks.map(|ticks| before + ticks * part / 1_000_000));
    }
}

#[test]
fn a_stall_includes_the_reported_steal_time() {
    let verdict = stall(&[], &[], |machine| {
        beside_idle(machine);
        taken(machine, 7, [0, 95]);
    });
    let (finding, evidence) = (first(&verdict), first(&verdict).evidence.join("\n"));
    assert_eq!((finding.kind, kinds(&verdict)), (CauseKind::Stall, 1));
    assert!(
        evidence.contains("the hypervisor reported 950 ms of stolen CPU time in these "),
        "{evidence}"
    );
    assert!(
        evidence.contains("a free CPU did not run editor: the hypervisor held it"),
        "{evidence}"
    );
    let note = "The hypervisor took 47% of the CPUs' time in this interval.".to_owned();
    assert!(verdict.notes.contains(&note), "{:?}", verdict.notes);
}

fn kinds(verdict: &Verdict) -> usize {
    verdict.findings.len()
}

#[test]
fn a_stall_that_the_counters_contradict_is_less_certain() {
    let counters = [None, Some((7, [0, 95])), Some((0, [0, 0])), Some((7, [0, 0]))];
    let [unknown, confirmed, unaccounted, contradicted] = counters.map(|counters| {
        let verdict = stall(&[], &[], |machine| {
            beside_idle(machine);
            if let Some((before, ticks)) = counters {
                taken(machine, before, ticks);
            }
        });
        assert_eq!(first(&verdict).kind, CauseKind::Stall);
        (first(&verdict).confidence, first(&verdict).evidence.join("\n"))
    });
    assert!(!unknown.1.contains("stolen"), "{}", unknown.1);
    let reason = "no hypervisor has reported stolen time";
    assert!(unaccounted.1.contains(reason), "{}", unaccounted.1);
    assert!(contradicted.1.contains("reported no stolen CPU time"), "{}", contradicted.1);
    let [unknown, confirmed, unaccounted, contradicted] =
        [unknown, confirmed, unaccounted, contradicted].map(|(confidence, _)| confidence);
    assert!(confirmed >= unknown && unaccounted >= unknown, "{confirmed} {unaccounted} {unknown}");
    assert!(contradicted < 0.8 * unknown, "{contradicted} {unknown}");
}

#[test]
fn a_stall_while_others_waited_much_longer_is_less_certain() {
    let [little, much] = [10, 90].map(|waited_ms| {
        let verdict = stall(&[], &[], |machine| {
            for us in [3_100_000, 3_500_000, 3_900_000] {
                machine.switch(us, 1, 0, 0).switch(us + 60_000, 1, APP, 0);
            }
            for tenth in 0..=60 {
                machine.pressure(tenth * 100_000, tenth * waited_ms);
            }
        });
        let stall = verdict.findings.iter().find(|finding| finding.kind == CauseKind::Stall);
        stall.expect("a free CPU did not run the editor").confidence
    });
    assert!(much < 0.8 * little, "{much} {little}");
}

#[test]
fn waiting_for_a_cpu_that_was_away_is_a_stall() {
    let [off, away] = [1, 2].map(|found| {
        stall(&[], &[], |machine| {
            beside_neighbour(machine);
            machine.overdue(3_990_000, 1, 980_000, NEIGHBOUR, found);
        })
    });
    let evidence = first(&away).evidence.join("\n");
    assert_eq!(first(&away).kind, CauseKind::Stall, "{evidence}");
    let timer = "the timer of CPU 1 fired 980 ms late and interrupted a program, which cannot hold \
                 interrupts off";
    assert!(evidence.contains(timer) && !evidence.contains("neighbour"), "{evidence}");
    assert_eq!(first(&off).kind, CauseKind::CpuCompetition, "it held interrupts off itself");
}

/// The editor's CPU is away for almost a second; its late timer hits a kernel function, or else the
/// neighbour.
fn away(function: Option<&str>, more: impl FnOnce(&mut Machinery)) -> Finding {
    let verdict = stall(&[], &[], |machine| {
        beside_neighbour(machine);
        match function {
            Some(function) => machine.overdue_at(3_990_000, 1, 980_000, NEIGHBOUR, function),
            None => machine.overdue(3_990_000, 1, 980_000, NEIGHBOUR, 2),
        };
        more(machine);
    });
    first(&verdict).clone()
}

/// A thread runs on the other CPU meanwhile.
fn other_goes_on(machine: &mut Machinery) {
    machine.task(510, 510, 1, "clock", 1).switch(3_300_000, 0, 510, 0).switch(3_600_000, 0, 0, 1);
}

fn other_is_away(machine: &mut Machinery) {
    machine.overdue(3_991_000, 0, 981_000, 0, 0);
}

fn virtualized(machine: &mut Machinery) {
    machine.meta.machine.virtualized = true;
}

/// Returns the owner of the CPU, and the first line of the evidence.
fn taker(finding: &Finding) -> (Option<Outsider>, &str) {
    assert_eq!(finding.kind, CauseKind::Stall);
    (finding.outsider, finding.evidence[0].as_str())
}

const HYPERVISOR: (Option<Outsider>, &str) =
    (Some(Outsider::Hypervisor), "the hypervisor took the CPU from editor");
const FIRMWARE: (Option<Outsider>, &str) =
    (Some(Outsider::Firmware), "the firmware took the CPU from editor");
const DEVICE: (Option<Outsider>, &str) =
    (Some(Outsider::Device), "a device took the CPU from editor");
const UNDECIDED: (Option<Outsider>, &str) =
    (Some(Outsider::Undecided), "the firmware or the hardware took the CPU from editor");

#[test]
fn a_virtual_machine_without_steal_was_held_by_its_hypervisor() {
    for function in [None, Some("clear_page_erms")] {
        assert_eq!(taker(&away(function, virtualized)), HYPERVISOR);
        let all = away(function, |machine| {
            virtualized(machine);
            other_is_away(machine);
        });
        assert_eq!(taker(&all), HYPERVISOR);
    }
}

/// An interrupt handler has the editor's CPU for almost a second.
fn long_handler(more: impl FnOnce(&mut Machinery)) -> Finding {
    let verdict = stall(&[], &[], |machine| {
        machine.interrupt(3_990_000, 1, 980_000, 24, 0);
        more(machine);
    });
    first(&verdict).clone()
}

#[test]
fn a_handler_may_be_innocent_without_steal_counters() {
    let named = long_handler(|_| {});
    assert_eq!(
        (named.kind, named.outsider),
        (CauseKind::Interrupt, None),
        "a machine without a hypervisor"
    );
    let open = long_handler(virtualized);
    assert_eq!(
        taker(&open),
        (Some(Outsider::Undecided), "the hypervisor or interrupt 24 took the CPU from editor")
    );
    assert!(
        open.evidence.iter().any(
            |line| line.contains("which is usually far shorter or was seen too seldom to tell")
        ),
        "{open:?}"
    );
    assert!(open.confidence < named.confidence && !open.remedy.contains("no software"), "{open:?}");
    let often = long_handler(|machine| {
        virtualized(machine);
        for other in 0..3 {
            machine.interrupt(4_800_000 + other * 400_000, 0, 300_000, 24, 0);
        }
    });
    assert_eq!(often.kind, CauseKind::Interrupt);
    let [nothing_taken, almost_all_taken] = [[0, 0], [0, 95]].map(|ticks| {
        long_handler(|machine| {
            virtualized(machine);
            taken(machine, 7, ticks);
        })
    });
    assert_eq!(nothing_taken.kind, CauseKind::Interrupt, "the hypervisor counts what it takes");
    assert_eq!(taker(&almost_all_taken), HYPERVISOR);
}

#[test]
fn a_neighbour_may_be_innocent_that_had_interrupts_held_off() {
    let [real, guest] = [false, true].map(|virtualized| {
        let verdict = stall(&[], &[], |machine| {
            beside_neighbour(machine);
            machine.overdue(3_990_000, 1, 980_000, NEIGHBOUR, 1);
            machine.meta.machine.virtualized = virtualized;
        });
        first(&verdict).clone()
    });
    assert_eq!(real.kind, CauseKind::CpuCompetition);
    let open = "the hypervisor or neighbour with interrupts held off took the CPU from editor";
    assert_eq!(taker(&guest), (Some(Outsider::Undecided), open));
}

#[test]
fn firmware_stops_all_cpus_of_a_machine_without_a_hypervisor() {
    let all = away(None, other_is_away);
    assert_eq!(taker(&all), FIRMWARE);
    assert!(all.confidence > 0.9 && all.remedy.starts_with("update the firmware"), "{all:?}");
    assert!(
        all.evidence
            .contains(&"no CPU ran anything meanwhile: all of them stopped at once".to_owned()),
        "{all:?}"
    );
    assert_eq!(
        taker(&away(Some("ioread32"), other_is_away)),
        FIRMWARE,
        "a device stops only the CPU that accesses it"
    );
}

#[test]
fn a_device_is_named_if_only_one_cpu_waited_for_it() {
    let device = away(Some("ioread32"), other_goes_on);
    assert_eq!(taker(&device), DEVICE);
    let evidence = device.evidence.join("\n");
    assert!(
        evidence.contains("just allowed it (ioread32, which accesses a device): nothing ran there"),
        "{evidence}"
    );
    assert!(evidence.contains("other CPUs kept running"), "{evidence}");
    assert!(device.confidence > 0.9 && device.remedy.starts_with("check the device"), "{device:?}");
    let open = "the hypervisor or a device took the CPU from editor";
    for (before, ticks, owner) in [
        (7, [0, 0], DEVICE),
        (7, [0, 95], HYPERVISOR),
        // A hypervisor without counters may have taken the CPU there as well.
        (0, [0, 0], (Some(Outsider::Undecided), open)),
    ] {
        let finding = away(Some("ioread32"), |machine| {
            virtualized(machine);
            other_goes_on(machine);
            taken(machine, before, ticks);
        });
        assert_eq!(taker(&finding), owner);
    }
}

#[test]
fn an_unproven_owner_is_not_named() {
    let program = away(None, other_goes_on);
    assert_eq!(taker(&program), UNDECIDED, "one CPU in a program, and no hypervisor");
    assert!(program.confidence < 0.85 && program.evidence.len() > 1, "{program:?}");
    assert_eq!(taker(&away(Some("clear_page_erms"), other_goes_on)), UNDECIDED);
    assert_eq!(
        taker(&away(Some("ioread32"), |_| {})),
        UNDECIDED,
        "nothing is known of the other CPU"
    );
    let short = stall(&[], &[], |machine| {
        beside_idle(machine);
        machine.overdue_at(3_500_000, 1, 600, 0, "ioread32");
        other_goes_on(machine);
    });
    assert_eq!(
        first(&short).outsider,
        Some(Outsider::Undecided),
        "that timer covers a small part of it"
    );
}

#[test]
fn computing_on_a_cpu_that_was_taken_is_a_stall() {
    let verdict = stall(&[], &[], |machine| taken(machine, 7, [0, 80]));
    assert_eq!(taker(first(&verdict)), HYPERVISOR);
    let verdict = stall(&[], &[], |machine| {
        beside_neighbour(machine);
        taken(machine, 7, [0, 80]);
    });
    assert_eq!(first(&verdict).kind, CauseKind::Stall);
    let other_cpu = stall(&[], &[], |machine| taken(machine, 7, [80, 20]));
    assert_eq!(first(&other_cpu).kind, CauseKind::OwnComputation);
}

/// The first of the processes that a fork storm starts.
const NEWBORN: u32 = 600;

#[test]
fn newborn_processes_are_reported_with_their_age() {
    let verdict = stall(&[], &[], |machine| {
        machine.fork(3_001_000, NEIGHBOUR, NEWBORN).switch(3_005_000, 1, NEWBORN, 0);
        for number in 1..12 {
            let (parent, at) = (NEWBORN + number - 1, 3_005_000 + u64::from(number) * 80_000);
            machine.fork(at - 10_000, parent, parent + 1).switch(at, 1, parent + 1, 0x80);
        }
        machine.switch(3_995_000, 1, APP, 0x80);
    });
    let evidence = first(&verdict).evidence.join("\n");
    assert!(
        evidence.contains("it started 12 processes meanwhile, which ran for 100%"),
        "{evidence}"
    );
    let verdict = stall(&[], &[], beside_neighbour);
    assert!(!first(&verdict).evidence.join("\n").contains("started meanwhile"));
}

/// A key is late because the display server, a compositor or a window manager has the editor's CPU.
#[test]
fn what_draws_the_session_is_not_held_back() {
    const SHELL: u32 = 501;
    for (tid, name) in [(SERVER, "Xvfb"), (SHELL, "gnome-shell"), (SHELL, "xfwm4")] {
        let verdict = stall(&[], &[], |machine| {
            machine.task(SHELL, SHELL, 1, name, 1);
            machine.switch(3_005_000, 1, tid, 0).switch(3_995_000, 1, APP, 0);
        });
        let remedies: Vec<&str> =
            verdict.findings.iter().map(|finding| finding.remedy.as_str()).collect();
        assert!(
            !remedies.is_empty() && !remedies.iter().any(|remedy| remedy.contains("nice")),
            "{name}: {remedies:?}"
        );
        assert!(
            tid == SERVER || remedies[0].contains(&format!("extensions of {name}")),
            "{name}: {remedies:?}"
        );
    }
}
