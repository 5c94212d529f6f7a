// SPDX-License-Identifier: MIT OR Apache-2.0
//! From recorded bytes to printed text: chains over terminals, the mark, and confidence.

#[path = "../../analysis/tests/support/mod.rs"]
mod support;

use support::{APP, DRAW_TEXT, Machinery, SERVER, SHELL};
use tipme_analysis::{DiagnoseOptions, diagnose};
use tipme_record::incident::{Damage, FutexOwner, Incident, Loss, ProgramCost};
use tipme_record::{Nanos, Pid};

fn printed_with(incident: &Incident, options: &DiagnoseOptions) -> String {
    let verdict = diagnose(incident, options).expect("the scene is well formed");
    tipme_report::text(&verdict, &tipme_report::Layout::default())
}

fn printed(incident: &Incident) -> String {
    printed_with(incident, &DiagnoseOptions::default())
}

#[test]
fn an_echo_is_followed_through_the_terminal_to_the_shell() {
    let mut machine = Machinery::with_terminal();
    for key in 0..12 {
        let us = 100_000 + key * 200_000;
        machine.press(us).reach_shell(us).echo(us + 1_000);
    }
    machine.press(3_000_000).reach_shell(3_000_000).switch(3_001_000, 1, 0, 0x8002);
    machine.block(3_900_000, SHELL, 3_000_900, 4_096, 1).wake_from(3_900_010, SHELL, 0, 2, 1);
    machine.wait(3_900_012, SHELL, 3_001_000, |wait| {
        (wait.syscall, wait.state, wait.context) = (74, 0x8002, 2)
    });
    machine.switch(3_900_100, 1, SHELL, 0).echo(3_901_000);
    let incident = machine.incident(6_000_000);
    insta::assert_snapshot!(printed(&incident), @r"
    Typing in xterm stalled for 901 ms; usually it takes 1.4 ms.
    bash, in xterm, was waiting for data to be flushed to vda (100% of the time).
    Try: check the health of the device (smartctl) and its scheduler (/sys/block/*/queue/scheduler): the device itself is slow

    Where the 901 ms went:
       899 ms 100%  fsync: bash waited for vda, with 1 write (4.0 KiB) of its own queued
                     - bash (pid 210) waited for data to reach the disk in fsync, at most 899 ms
       2.4 ms   0%  usual work and small shares

    Usual time: 1.4 ms, p50 of 12. Recording overhead: 0.000%.
    About fsync: tipme diagnose --explain fsync
    ");
    let verdict =
        diagnose(&incident, &DiagnoseOptions::default()).expect("the scene is well formed");
    let steps: Vec<String> = verdict
        .chain
        .iter()
        .map(|step| {
            format!(
                "{:8.3} ms  {} {}: {}",
                (step.end_ns - step.start_ns) as f64 / 1e6,
                step.comm,
                step.state,
                step.detail
            )
        })
        .collect();
    insta::assert_snapshot!(steps.join("\n"), @r"
      0.008 ms  Xvfb runnable: was runnable while xdotool (pid 90) ran
      0.082 ms  Xvfb running: served requests of xdotool (pid 90)
      0.098 ms  xterm runnable: was runnable while its CPU was idle
      0.101 ms  xterm running: ran
      0.099 ms  kworker/u8:1 runnable: was runnable while xterm (pid 200) ran
      0.060 ms  kworker/u8:1 running: ran
      0.240 ms  bash runnable: was runnable while kworker/u8:1 (pid 40) ran
      0.300 ms  bash running: ran
    899.010 ms  bash blocked: waited for data to reach the disk in fsync
      0.090 ms  bash runnable: was runnable while its CPU was idle
      0.901 ms  bash running: ran
      0.049 ms  kworker/u8:1 runnable: was runnable while bash (pid 210) ran
      0.020 ms  kworker/u8:1 running: ran
      0.030 ms  xterm runnable: was runnable while kworker/u8:1 (pid 40) ran
      0.102 ms  xterm running: ran
      0.048 ms  Xvfb runnable: was runnable while its CPU was idle
      0.150 ms  Xvfb running: served requests of xterm (pid 200)
    ");
}

#[test]
fn drawing_for_a_timer_answers_nothing() {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000).switch(3_000_500, 1, 0, 1);
    machine.wait(3_900_000, APP, 3_000_500, |wait| {
        (wait.syscall, wait.args, wait.context) = (7, [1, 2, 400], 1)
    });
    machine.wake_from(3_900_000, APP, 0, 1, 1).switch(3_900_050, 1, APP, 0).draw(3_900_100);
    insta::assert_snapshot!(printed(&machine.incident(6_000_000)), @r"
    No finding: nothing unusual; the longest interaction in the last 6.00 s was typing in editor, 0.79 ms (noticeable from 100 ms on). 13 inputs to editor were checked (tipme diagnose --interactions lists them).
    ");
}

#[test]
fn a_child_that_draws_answers_for_a_client_that_never_does() {
    const PAINTER: u32 = 201;
    const CANVAS: (u32, u32) = (5, PAINTER);
    let mut machine = Machinery::with_app("browser");
    machine.task(PAINTER, PAINTER, APP, "painter", 1);
    let presses = (0..12).map(|key| (100_000 + key * 200_000, 1_000)).chain([(3_000_000, 700_000)]);
    for (us, delay) in presses {
        let drawn = us + delay;
        machine.press(us).wake(us + 400, PAINTER, APP).switch(us + 410, 1, PAINTER, 1);
        machine.message(drawn, PAINTER, CANVAS, 0, 20, &[DRAW_TEXT]).wake(
            drawn + 2,
            SERVER,
            PAINTER,
        );
        machine.switch(drawn + 10, 1, 0, 1).switch(drawn + 50, 0, SERVER, 0);
        machine.message(drawn + 60, SERVER, CANVAS, 1, 20, &[]).switch(drawn + 200, 0, 0, 1);
    }
    let verdict = machine.diagnose(6_000_000);
    let interval = verdict.interval.expect("there are keys");
    assert_eq!(
        (interval.client.pid, interval.join.as_str(), interval.latency_ms.round()),
        (APP, "exact", 700.0)
    );
    assert_eq!(verdict.baseline.map(|baseline| baseline.n), Some(12));
}

#[test]
fn keys_that_pile_up_in_one_drawing_keep_their_own_times() {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000);
    machine.press_more(3_200_000, 3_400_050).press_more(3_400_000, 3_400_060).draw(3_401_000);
    let verdict = machine.diagnose(6_000_000);
    let interval = verdict.interval.expect("there are keys");
    assert_eq!(
        (interval.latency_ms.round(), verdict.baseline.map(|baseline| baseline.n)),
        (401.0, Some(12))
    );
}

#[test]
fn a_key_of_a_device_begins_with_the_device() {
    let mut machine = Machinery::with_app("editor");
    machine.device_key(2_999_900).switch(2_990_000, 0, 500, 0);
    machine.wake_from(3_000_000, SERVER, 0, 2, 0);
    machine.task(500, 500, 1, "backup", 0).switch(3_250_000, 0, SERVER, 0);
    machine.wake_from(3_250_100, APP, SERVER, 0, 1);
    machine.message(3_250_102, SERVER, (2, APP), 2, 32, &[[2, 0, 0, 0]]).switch(3_250_150, 0, 0, 1);
    machine
        .switch(3_250_200, 1, APP, 0)
        .message(3_250_250, APP, (2, APP), 3, 32, &[])
        .draw(3_250_900);
    insta::assert_snapshot!(printed(&machine.incident(6_000_000)), @r"
    Typing in editor stalled for 251 ms.
    backup took the CPU time that Xvfb needed (100% of the time).
    Try: renice -n 19 -p 500 (what it starts from then on inherits it); or tipme manage, which favours what you are using

    Where the 251 ms went:
       250 ms 100%  cpu-competition: backup (pid 500)
                     - ran 250 ms while Xvfb was runnable, on CPU 0
       1.1 ms   0%  usual work and small shares

    Usual time: unknown (nothing comparable was recorded). Recording overhead: 0.000%.
    About cpu-competition: tipme diagnose --explain cpu-competition
    Note: Few other interactions of this kind were seen, so the usual latency is uncertain.
    ");
}

#[test]
fn a_mutex_held_at_the_mark_names_the_owner_in_the_lock_word() {
    let mut machine = Machinery::with_app("editor");
    machine.task(500, 500, 1, "indexer", 1).typing(100_000, 12).press(3_000_000);
    machine.switch(3_005_000, 1, 0, 1);
    machine.still_waiting(4_000_000, APP, 3_005_000, |wait| {
        (wait.syscall, wait.args) = (202, [0x7000, 128, 2])
    });
    machine.still_waiting(4_000_000, 500, 50_000, |wait| wait.syscall = 230);
    machine.locks.futexes = vec![FutexOwner { tid: APP, address: 0x7000, owner: 500 }];
    insta::assert_snapshot!(printed(&machine.incident(4_000_000)), @r"
    Typing in editor stalled for at least 1.00 s, unfinished at the mark; usually it takes 0.79 ms.
    indexer held a lock that editor was waiting for (100% of the time).
    Try: report it to the developers of indexer (pid 500): it must not hold the lock while it waits or computes

    Where the 1.00 s went:
       995 ms 100%  lock-wait: indexer (pid 500) held a lock that editor needed
                     - editor (pid 200) waited for a lock in futex
                     - meanwhile indexer (pid 500) slept in clock_nanosleep for 995 ms
       5.0 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About lock-wait: tipme diagnose --explain lock-wait
    ");
}

#[test]
fn a_file_lock_held_at_the_mark_names_its_holder() {
    let mut machine = Machinery::with_app("editor");
    machine.task(500, 500, 1, "indexer", 1).typing(100_000, 12).press(3_000_000);
    machine.switch(3_005_000, 1, 0, 1);
    machine.still_waiting(4_000_000, APP, 3_005_000, |wait| (wait.syscall, wait.inode) = (73, 77));
    machine.still_waiting(4_000_000, 500, 50_000, |wait| wait.syscall = 230);
    machine.locks.proc_locks =
        "1: FLOCK  ADVISORY  WRITE 500 fe:00:77 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 200 fe:00:77 0 EOF\n".to_owned();
    insta::assert_snapshot!(printed(&machine.incident(4_000_000)), @r"
    Typing in editor stalled for at least 1.00 s, unfinished at the mark; usually it takes 0.79 ms.
    indexer held a lock that editor was waiting for (100% of the time).
    Try: report it to the developers of indexer (pid 500): it must not hold the lock while it waits or computes

    Where the 1.00 s went:
       995 ms 100%  lock-wait: indexer (pid 500) held a lock that editor needed
                     - editor (pid 200) waited for a file lock in flock
                     - meanwhile indexer (pid 500) slept in clock_nanosleep for 995 ms
       5.0 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About lock-wait: tipme diagnose --explain lock-wait
    ");
}

#[test]
fn interrupt_time_is_not_counted_as_running() {
    let mut machine = Machinery::with_app("editor");
    machine.meta.irq_names = vec![(36, "virtio1-req.0".to_owned())];
    machine.typing(100_000, 12).press(3_000_000);
    for storm in 0..20 {
        machine.interrupt(3_020_000 + storm * 15_000, 1, 14_000, 36, 0);
    }
    insta::assert_snapshot!(printed(&machine.draw(3_320_000).incident(6_000_000)), @r"
    Typing in editor stalled for 320 ms; usually it takes 0.79 ms.
    Interrupts (interrupt 36 (virtio1-req.0)) took the CPU that editor needed (87% of the time).
    Try: move the interrupt to another CPU (/proc/irq/*/smp_affinity), or update its driver

    Where the 320 ms went:
       280 ms  87%  interrupt: interrupt 36 (virtio1-req.0) took the CPU from editor
        39 ms  12%  own-computation: editor (pid 200) computed
       1.1 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About interrupt: tipme diagnose --explain interrupt
    ");
}

#[test]
fn memory_pressure_names_the_process_that_took_the_memory() {
    let mut machine = Machinery::with_app("editor");
    machine.task(550, 550, 1, "chrome", 1).typing(100_000, 12).press(3_000_000);
    let stack = machine.stack(&[
        "schedule_timeout",
        "reclaim_throttle",
        "shrink_node",
        "try_to_free_pages",
    ]);
    machine.reclaim(3_004_000, APP, 0, 0, 0).switch(3_005_000, 1, 0, 2);
    machine.wake_from(3_590_000, APP, 0, 2, 1);
    machine.wait(3_590_000, APP, 3_005_000, |wait| {
        (wait.stack, wait.syscall, wait.state, wait.context) = (stack, -1, 2, 2)
    });
    machine.reclaim(3_591_000, APP, 0, 1, 32).switch(3_590_050, 1, APP, 0);
    machine.reclaim(2_900_000, 550, 0, 0, 0).reclaim(2_950_000, 550, 0, 1, 4_000);
    insta::assert_snapshot!(printed(&machine.draw(3_600_000).incident(6_000_000)), @r"
    Typing in editor stalled for 600 ms; usually it takes 0.79 ms.
    Memory ran short: chrome took what editor needed (97% of the time).
    Try: limit chrome (pid 550) by memory.high of its control group

    Where the 600 ms went:
       585 ms  97%  reclaim: chrome (pid 550) took the memory that editor needed
                     - editor (pid 200) waited for memory to be freed, at most 585 ms
        15 ms   3%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About reclaim: tipme diagnose --explain reclaim
    ");
}

#[test]
fn a_windowless_process_is_explained_by_its_longest_activity() {
    let mut machine = Machinery::with_app("editor");
    machine.task(560, 560, 1, "syncd", 1).typing(100_000, 3);
    for beat in 0..12 {
        let us = 100_000 + beat * 100_000;
        machine.wait(us, 560, us - 99_000, |wait| wait.syscall = 232).wake_from(us, 560, 0, 2, 1);
        machine.switch(us + 10, 1, 560, 0).switch(us + 500, 1, 0, 1);
    }
    machine
        .wait(2_000_000, 560, 1_200_500, |wait| wait.syscall = 232)
        .wake_from(2_000_000, 560, 0, 2, 1);
    machine.switch(2_000_010, 1, 560, 0).switch(2_400_000, 1, 0, 1);
    machine.still_waiting(6_000_000, 560, 2_400_000, |wait| wait.syscall = 232);
    let options = DiagnoseOptions { pid: Some(Pid(560)), ..DiagnoseOptions::default() };
    insta::assert_snapshot!(printed_with(&machine.incident(6_000_000), &options), @r"
    syncd (pid 560) stalled for 400 ms; usually it takes 0.50 ms.
    syncd was busy computing (100% of the time).
    Try: report to the developers of syncd what it computes

    Where the 400 ms went:
       400 ms 100%  own-computation: syncd (pid 560) computed
      0.50 ms   0%  usual work and small shares

    Usual time: 0.50 ms, p50 of 11. Recording overhead: 0.000%.
    About own-computation: tipme diagnose --explain own-computation
    ");
}

#[test]
fn losses_and_damage_are_reported() {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000).draw(3_500_000);
    machine.losses.per_second =
        vec![Loss { until_ns: Nanos::from_millis(4_400).0, class: "rare".to_owned(), count: 17 }];
    let programs = [("sched_switch", 300.0), ("softirq_entry", 200.0)];
    machine.cost.programs = programs
        .map(|(name, ns_per_run)| ProgramCost {
            name: name.to_owned(),
            runs_per_second: 1_000.0,
            ns_per_run,
        })
        .to_vec();
    let mut incident = machine.incident(6_000_000);
    incident
        .damage
        .push(Damage { place: "section Samples".to_owned(), why: "checksum differs".to_owned() });
    insta::assert_snapshot!(printed(&incident), @r"
    Typing in editor stalled for 500 ms; usually it takes 0.79 ms.
    Not sure, but perhaps editor was busy computing (100% of the time).
    Try: report to the developers of editor what it computes

    Where the 500 ms went:
       499 ms 100%  own-computation: editor (pid 200) computed
       1.1 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.010%.
    About own-computation: tipme diagnose --explain own-computation
    Note: The file is damaged at section Samples: checksum differs.
    Note: Not sure of the cause (confidence 47%): 17 records were lost during the interval.
    ");
}

#[test]
fn one_lost_record_of_many_means_little() {
    let [few, many] = [0, 800].map(|samples| {
        let mut machine = Machinery::with_app("editor");
        machine.typing(100_000, 12).press(3_000_000).draw(3_500_000);
        let function = machine.function(APP, "count_words");
        for sample in 0..samples {
            machine.sample(3_110_000 + sample * 100, APP, function);
        }
        machine.losses.per_second = vec![Loss {
            until_ns: Nanos::from_millis(4_400).0,
            class: "rare".to_owned(),
            count: 1,
        }];
        let verdict = machine.diagnose(6_000_000);
        verdict.findings[0].confidence
    });
    assert!(few < 0.85, "one of a few: {few}");
    assert!(many > 0.93, "one of hundreds: {many}");
}

#[test]
fn an_unsure_verdict_names_the_next_candidate() {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000);
    machine.wait(3_200_000, APP, 3_005_000, |wait| (wait.syscall, wait.context) = (230, 2));
    machine.switch(3_005_000, 1, 0, 1).wake_from(3_199_998, APP, 0, 2, 1);
    machine.switch(3_200_050, 1, APP, 0);
    machine.draw(3_500_000);
    machine.losses.per_second =
        vec![Loss { until_ns: Nanos::from_millis(4_400).0, class: "rare".to_owned(), count: 99 }];
    let verdict = machine.diagnose(6_000_000);
    let note = verdict.notes.first().expect("it is not sure");
    assert!(note.starts_with("Not sure of the cause (confidence "), "{note}");
    assert!(note.contains("99 records were lost during the interval"), "{note}");
    assert!(note.contains(" The next candidate is "), "{note}");
}

/// Latencies of the keys from 3 s on, in milliseconds, with their joins.
fn late_keys(incident: &Incident) -> Vec<(u64, String)> {
    let timed = tipme_analysis::timed(incident).expect("the scene is well formed");
    let late = timed
        .into_iter()
        .filter(|one| one.class == "key" && one.input_ns >= support::BEGIN + 3_000_000_000);
    late.map(|one| ((one.end_ns - one.input_ns) / 1_000_000, one.join)).collect()
}

#[test]
fn keys_waiting_in_the_terminal_of_a_busy_shell_are_answered() {
    let mut machine = Machinery::with_terminal();
    machine.press(3_000_000).reach_shell(3_000_000).press(3_300_000).reach_shell(3_300_000);
    machine.echo(3_900_000);
    let keys = late_keys(&machine.incident(6_000_000));
    assert_eq!(keys, [(900, "exact".to_owned()), (600, "exact".to_owned())]);
}

#[test]
fn a_receive_that_was_not_recorded_delays_nothing() {
    let mut machine = Machinery::with_app("editor");
    machine.press(3_000_000).switch(3_000_500, 1, 0, 1).message(
        3_000_402,
        APP,
        (2, APP),
        0,
        20,
        &[[76, 1, 5, 0]],
    );
    machine.press(3_500_000).draw(3_500_600).press(4_000_000).draw(4_000_600);
    let keys: Vec<u64> =
        late_keys(&machine.incident(6_000_000)).into_iter().map(|(ms, _)| ms).collect();
    assert_eq!(keys, [0, 0, 0]);
}

#[test]
fn many_jobs_together_are_a_cause() {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000);
    for turn in 0..40 {
        let us = 3_010_000 + u64::from(turn) * 10_000;
        machine.task(300 + turn, 300 + turn, 1, "sh", 0);
        machine.switch(us, 1, 300 + turn, 0).switch(us + 9_500, 1, APP, 0);
    }
    insta::assert_snapshot!(printed(&machine.draw(3_420_000).incident(6_000_000)), @r"
    Typing in editor stalled for 420 ms; usually it takes 0.79 ms.
    sh and others took the CPU time that editor needed (90% of the time).
    Try: renice -n 19 -p 300 (what it starts from then on inherits it); or tipme manage, which favours what you are using

    Where the 420 ms went:
       380 ms  90%  cpu-competition: sh (pid 300), and 40 other jobs with smaller shares
        39 ms   9%  own-computation: editor (pid 200) computed
       1.1 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About cpu-competition: tipme diagnose --explain cpu-competition
    ");
}

#[test]
fn an_empty_recording_is_reported_as_such() {
    insta::assert_snapshot!(printed(&Machinery::new().incident(1_000)), @r"
    No finding: nothing to explain was recorded.
    Note: No display was recorded; name a process with --pid or --app.
    ");
}
