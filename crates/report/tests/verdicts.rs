// SPDX-License-Identifier: MIT OR Apache-2.0
//! From recorded bytes to printed text: one scene per kind of cause.

#[path = "../../analysis/tests/support/mod.rs"]
mod support;

use support::{APP, Machinery, SERVER};
use tipme_analysis::{DiagnoseOptions, diagnose};
use tipme_record::Pid;
use tipme_record::incident::Incident;

fn printed(incident: &Incident) -> String {
    let verdict =
        diagnose(incident, &DiagnoseOptions::default()).expect("the scene is well formed");
    tipme_report::text(&verdict, &tipme_report::Layout::default())
}

/// Twelve quick keys, then a key at 3 s that the scene handles, drawn at 3 s + `ms`.
fn stall(ms: u64, scene: impl FnOnce(&mut Machinery)) -> String {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000);
    scene(&mut machine);
    printed(&machine.draw(3_000_000 + ms * 1_000).incident(6_000_000))
}

#[test]
fn quick_typing_is_no_finding() {
    let incident = Machinery::with_app("editor").typing(100_000, 12).incident(6_000_000);
    insta::assert_snapshot!(printed(&incident), @r"
    No finding: nothing unusual; the longest interaction in the last 6.00 s was typing in editor, 0.79 ms (noticeable from 100 ms on). 12 inputs to editor were checked (tipme diagnose --interactions lists them).
    ");
}

#[test]
fn a_long_computation_is_the_applications_own() {
    let text = stall(1_500, |machine| {
        let function = machine.function(APP, "count_words");
        for sample in 0..140 {
            machine.sample(3_010_000 + sample * 10_000, APP, function);
        }
    });
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 1.50 s; usually it takes 0.79 ms.
    editor was busy computing (100% of the time).
    Try: report to the developers of editor what it computes

    Where the 1.50 s went:
       1.50 s 100%  own-computation: editor (pid 200) computed
                     - 100% of 140 samples in count_words
       1.1 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About own-computation: tipme diagnose --explain own-computation
    ");
}

#[test]
fn a_build_that_takes_the_cpu_is_one_job() {
    let text = stall(700, |machine| {
        machine.task_in(300, 300, 1, 300, "make", 1);
        for child in 0..30 {
            machine.exit(5_000_000 + u64::from(child), 301 + child, 300, 300, "cc1");
        }
        for turn in 0..30 {
            let us = 3_010_000 + u64::from(turn) * 20_000;
            machine.switch(us, 1, 301 + turn, 0).switch(us + 19_000, 1, APP, 0);
        }
    });
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 700 ms; usually it takes 0.79 ms.
    make took the CPU time that editor needed (81% of the time).
    Try: renice -n 19 -p 300 (what it starts from then on inherits it); or tipme manage, which favours what you are using

    Where the 700 ms went:
       570 ms  81%  cpu-competition: cc1 x 30 (job make, pid 300)
                     - ran 570 ms while editor was runnable, on CPU 1
       129 ms  18%  own-computation: editor (pid 200) computed
       1.1 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About cpu-competition: tipme diagnose --explain cpu-competition
    ");
}

#[test]
fn a_page_in_behind_a_backup_names_the_backup() {
    let text = stall(2_000, |machine| {
        machine.task_in(400, 400, 1, 400, "nightly", 1).task_in(432, 432, 400, 400, "rsync", 2);
        let stack = machine.stack(&[
            "__schedule",
            "io_schedule",
            "folio_wait_bit_common",
            "filemap_fault",
            "__do_fault",
        ]);
        for request in 0..1_412 {
            machine.block(3_004_000 + request * 1_400, 432, 3_001_000 + request, 900_000, 1);
        }
        machine.block(4_990_000, APP, 3_010_900, 4_096, 0).switch(3_011_000, 1, 0, 0x8002);
        machine.wake_from(4_990_010, APP, 0, 2, 1);
        machine.wait(4_990_012, APP, 3_011_000, |wait| {
            (wait.stack, wait.syscall, wait.state, wait.context) = (stack, -1, 0x8002, 2);
        });
        machine.switch(4_990_050, 1, APP, 0);
    });
    insta::assert_snapshot!(text, @r#"
    Typing in editor stalled for 2.00 s; usually it takes 0.79 ms.
    editor was waiting for parts of a file to be read back into memory, because of rsync (of nightly) (99% of the time).
    Try: ionice -c 3 -p 432 (its I/O waits for an idle disk)

    Where the 2.00 s went:
       1.98 s  99%  page-in: rsync (pid 432, job "nightly") had 1,406 writes (1.2 GiB) queued on vda ahead of editor's page-in
                     - editor (pid 200) waited for a page of a file, at most 1.98 s
        21 ms   1%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About page-in: tipme diagnose --explain page-in
    "#);
}

#[test]
fn a_lock_whose_owner_sleeps_names_the_owner() {
    let text = stall(900, |machine| {
        machine.task(500, 500, 1, "indexer", 1);
        machine.switch(3_005_000, 1, 0, 1);
        machine.wait(3_880_000, 500, 3_000_500, |wait| (wait.syscall, wait.context) = (230, 2));
        machine.switch(3_000_400, 0, 500, 0).switch(3_000_500, 0, 0, 1);
        machine.wake_from(3_880_000, 500, 0, 2, 0);
        machine.switch(3_880_050, 0, 500, 0).wake_from(3_881_000, APP, 500, 0, 1);
        machine.wait(3_881_002, APP, 3_005_000, |wait| {
            (wait.syscall, wait.args, wait.waker) = (202, [0x7000, 128, 2], support::tid(500))
        });
        machine.switch(3_881_050, 0, 0, 1).switch(3_881_060, 1, APP, 0);
    });
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 900 ms; usually it takes 0.79 ms.
    indexer held a lock that editor was waiting for (97% of the time).
    Try: report it to the developers of indexer (pid 500): it must not hold the lock while it waits or computes

    Where the 900 ms went:
       876 ms  97%  lock-wait: indexer (pid 500) held a lock that editor needed
                     - editor (pid 200) waited for a lock in futex
                     - meanwhile indexer (pid 500) slept in clock_nanosleep for 875 ms
        24 ms   3%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About lock-wait: tipme diagnose --explain lock-wait
    ");
}

#[test]
fn a_stopped_application_names_what_stopped_it() {
    let text = stall(1_200, |machine| {
        machine.task(600, 600, 1, "powersave", 1);
        machine.signal(3_004_990, 600, APP, 19).switch(3_005_000, 1, 0, 4);
        machine.signal(4_190_000, 600, APP, 18).wake_from(4_190_000, APP, 600, 0, 1);
        machine.switch(4_190_050, 1, APP, 0);
    });
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 1.20 s; usually it takes 0.79 ms.
    powersave stopped editor (99% of the time).
    Try: kill -CONT the process that was stopped; see why powersave (pid 600) stopped it

    Where the 1.20 s went:
       1.19 s  99%  stopped: powersave (pid 600) stopped editor
                     - editor (pid 200) was stopped, at most 1.19 s
        15 ms   1%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About stopped: tipme diagnose --explain stopped
    ");
}

#[test]
fn a_child_that_is_waited_for_is_named() {
    let text = stall(800, |machine| {
        machine.fork(3_004_000, APP, 700).exit(3_780_000, 700, APP, APP, "spell");
        machine.switch(3_004_100, 0, 700, 0).switch(3_005_000, 1, 0, 1);
        machine
            .wait(3_780_000, APP, 3_005_000, |wait| (wait.syscall, wait.args) = (61, [700, 0, 0]));
        machine.wake_from(3_780_000, APP, 700, 0, 1).switch(3_780_010, 0, 0, 0x80);
        machine.switch(3_780_050, 1, APP, 0);
    });
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 800 ms; usually it takes 0.79 ms.
    editor was waiting for spell to finish (97% of the time).
    Try: run spell in the background; editor should not wait for it in its event loop

    Where the 800 ms went:
       775 ms  97%  child-wait: editor waited for spell (pid 700) to exit
                     - editor (pid 200) waited for a child in wait4
                     - meanwhile spell (pid 700) ran for 775 ms
        25 ms   3%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About child-wait: tipme diagnose --explain child-wait
    ");
}

#[test]
fn an_application_that_sleeps_is_named_itself() {
    let text = stall(600, |machine| {
        machine.switch(3_005_000, 1, 0, 1).wake_from(3_590_000, APP, 0, 2, 1);
        machine.wait(3_590_000, APP, 3_005_000, |wait| (wait.syscall, wait.context) = (230, 2));
        machine.switch(3_590_050, 1, APP, 0);
    });
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 600 ms; usually it takes 0.79 ms.
    editor slept on a timer instead of responding (97% of the time).
    Try: report it to the developers of editor: it sleeps where it should wait for an event

    Where the 600 ms went:
       585 ms  97%  timer-sleep: editor (pid 200) slept on a timer
                     - editor (pid 200) slept in clock_nanosleep, at most 585 ms
        15 ms   3%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About timer-sleep: tipme diagnose --explain timer-sleep
    ");
}

#[test]
fn a_slow_peer_is_named() {
    let text = stall(600, |machine| {
        machine.task(800, 800, 1, "fontserver", 1);
        machine.wake(3_004_000, 800, APP).switch(3_004_100, 0, 800, 0).switch(3_005_000, 1, 0, 1);
        machine.wake_from(3_590_000, APP, 800, 0, 1).switch(3_590_020, 0, 0, 1);
        machine.switch(3_590_050, 1, APP, 0);
        machine.wait(3_590_000, APP, 3_005_000, |wait| {
            (wait.syscall, wait.family, wait.peer) = (47, 1, Pid(800))
        });
    });
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 600 ms; usually it takes 0.79 ms.
    editor was waiting for an answer from fontserver (97% of the time).
    Try: look at why fontserver (pid 800) is slow: tipme diagnose --pid 800

    Where the 600 ms went:
       585 ms  97%  peer-wait: editor waited for an answer from fontserver (pid 800)
                     - editor (pid 200) waited for another process in recvmsg
                     - meanwhile fontserver (pid 800) ran for 585 ms
        15 ms   3%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About peer-wait: tipme diagnose --explain peer-wait
    ");
}

#[test]
fn a_remote_host_is_named_by_its_address() {
    let text = stall(600, |machine| {
        machine.switch(3_005_000, 1, 0, 1).wake_from(3_590_000, APP, 0, 1, 1);
        machine.switch(3_590_050, 1, APP, 0);
        machine.wait(3_590_000, APP, 3_005_000, |wait| {
            (wait.syscall, wait.family, wait.context) = (45, 2, 1);
            (wait.address, wait.port) = (u32::from_le_bytes([10, 0, 0, 7]), 443);
        });
    });
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 600 ms; usually it takes 0.79 ms.
    editor was waiting for 10.0.0.7:443 on the network (97% of the time).
    Try: check the network and the host; editor should not wait for it in its event loop

    Where the 600 ms went:
       585 ms  97%  network-wait: editor waited for 10.0.0.7:443
                     - editor (pid 200) waited for the network in recvfrom, at most 585 ms
        15 ms   3%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About network-wait: tipme diagnose --explain network-wait
    ");
}

#[test]
fn a_server_that_serves_another_client_names_that_client() {
    let text = {
        let mut machine = Machinery::with_app("editor");
        machine.task(900, 900, 1, "wallpaper", 1);
        machine.typing(100_000, 12);
        machine.switch(2_999_000, 0, SERVER, 0).message(2_999_100, SERVER, (9, 900), 1, 4_000, &[]);
        machine.press_while_busy(3_000_000, 3_400_000);
        machine.draw(3_401_000);
        printed(&machine.incident(6_000_000))
    };
    insta::assert_snapshot!(text, @r"
    Typing in editor stalled for 401 ms; usually it takes 0.79 ms.
    The display server was busy drawing for wallpaper (100% of the time).
    Try: renice -n 10 -p 900 (its requests come in smaller portions)

    Where the 401 ms went:
       400 ms 100%  server-busy: the display server served wallpaper (pid 900)
       1.2 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About server-busy: tipme diagnose --explain server-busy
    ");
}

#[test]
fn a_grab_of_the_server_names_its_holder() {
    let mut machine = Machinery::with_app("editor");
    machine.task(950, 950, 1, "locker", 1).typing(100_000, 12);
    machine.message(2_990_000, 950, (8, 950), 0, 4, &[[36, 0, 1, 0]]).message(
        2_990_010,
        SERVER,
        (8, 950),
        1,
        4,
        &[],
    );
    machine.press(3_000_000).draw_taken_late(3_000_600, 3_700_000);
    machine.message(3_699_900, 950, (8, 950), 0, 4, &[[37, 0, 1, 0]]);
    insta::assert_snapshot!(printed(&machine.incident(6_000_000)), @r"
    Typing in editor stalled for 700 ms; usually it takes 0.79 ms.
    locker had grabbed the whole display (100% of the time).
    Try: report the grab to the developers of locker; ending 950 releases it

    Where the 700 ms went:
       699 ms 100%  server-grab: locker (pid 950) had grabbed the display server
                     - Xvfb (pid 100) waited, at most 699 ms
      0.89 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About server-grab: tipme diagnose --explain server-grab
    ");
}

#[test]
fn an_answer_that_is_missing_at_the_mark_is_at_least_that_long() {
    let mut machine = Machinery::with_app("editor");
    machine.typing(100_000, 12).press(3_000_000);
    let incident = machine.incident(4_000_000);
    insta::assert_snapshot!(printed(&incident), @r"
    Typing in editor stalled for at least 1.00 s, unfinished at the mark; usually it takes 0.79 ms.
    editor was busy computing (100% of the time).
    Try: report to the developers of editor what it computes

    Where the 1.00 s went:
       999 ms 100%  own-computation: editor (pid 200) computed
      0.88 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About own-computation: tipme diagnose --explain own-computation
    ");
}
