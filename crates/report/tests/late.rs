// SPDX-License-Identifier: MIT OR Apache-2.0
//! From recorded bytes to printed text: pages drawn long after the first echo, and inputs that pile
//! up behind a thread without a CPU.

#[path = "../../analysis/tests/support/mod.rs"]
mod support;

use support::{APP, Machinery, SHELL};
use tipme_analysis::{DiagnoseOptions, diagnose};

/// Clears the prompt at once; the page follows after two seconds of waiting for the disk.
fn page_after_two_seconds() -> Machinery {
    let mut machine = Machinery::with_app("pager");
    machine.typing(100_000, 12).press(3_000_000).draw(3_000_600);
    machine.block(4_999_990, APP, 3_000_605, 4_096, 0).wake_from(5_000_000, APP, 0, 2, 1);
    machine.wait(5_000_002, APP, 3_000_610, |wait| {
        (wait.syscall, wait.state, wait.context) = (74, 0x8002, 2)
    });
    machine.switch(5_000_100, 1, APP, 0).draw(5_001_000);
    machine
}

#[test]
fn a_page_drawn_late_is_a_stall_despite_a_quick_echo() {
    let incident = page_after_two_seconds().incident(6_000_000);
    let verdict =
        diagnose(&incident, &DiagnoseOptions::default()).expect("the scene is well formed");
    insta::assert_snapshot!(tipme_report::text(&verdict, &tipme_report::Layout::default()), @r"
    Typing in pager was completed after 2.00 s; usually it takes 0.79 ms.
    pager was waiting for data to be flushed to vda (100% of the time).
    Try: check the health of the device (smartctl) and its scheduler (/sys/block/*/queue/scheduler): the device itself is slow

    Where the 2.00 s went:
       2.00 s 100%  fsync: pager waited for vda, with 1 read (4.0 KiB) of its own queued
                     - pager (pid 200) waited for data to reach the disk in fsync, at most 2.00 s
       1.8 ms   0%  usual work and small shares

    Usual time: 0.79 ms, p50 of 12. Recording overhead: 0.000%.
    About fsync: tipme diagnose --explain fsync
    ");
}

#[test]
fn a_drawing_after_the_next_key_is_no_page_of_the_first() {
    let mut machine = Machinery::with_app("pager");
    machine.typing(100_000, 12).press(3_000_000).draw(3_000_600).press(4_500_000).draw(4_500_600);
    let found = machine.timed(6_000_000);
    assert!(found.iter().all(|interaction| interaction.class == "key"));
    assert_eq!(found.len(), 14);
}

#[test]
fn keys_piled_up_before_a_starved_shell_are_all_answered() {
    let mut machine = Machinery::with_terminal();
    machine.task(500, 500, 1, "hog", 0);
    for key in 0..12 {
        let us = 100_000 + key * 200_000;
        machine.press(us).reach_shell(us).echo(us + 1_000);
    }
    machine.press(3_000_000).reach_shell(3_000_000).switch(3_000_800, 1, 500, 0);
    machine.switch(3_900_000, 1, SHELL, 0).echo(3_901_000);
    let found = machine.timed(6_000_000);
    let last = found.last().expect("there are keys");
    assert_eq!((found.len(), last.join.as_str()), (13, "exact"));
    assert!(((last.end_ns - last.input_ns) as f64 / 1e6 - 901.0).abs() < 1.0);
}
