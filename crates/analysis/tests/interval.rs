// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes of the delay of a thread without any input.

mod support;

use support::verdicts::explained;
use support::{BEGIN, Machinery, VDA};
use tipme_analysis::model::{CauseKind, Culprit};
use tipme_analysis::{IntervalExplanation, Recording};
use tipme_record::Nanos;
use tipme_record::incident::ClassHeld;

const TIMER: u32 = 700;
const HOG: u32 = 701;

/// A thread sleeps until 3.0 s and is runnable until 3.2 s, while another one has its CPU; then it
/// runs for 10 ms.
fn late() -> Recording {
    let mut machine = Machinery::new();
    machine.task(TIMER, TIMER, 1, "timer", 1).task(HOG, HOG, 1, "newborn", 0);
    machine.switch(1_000_000, 0, TIMER, 0).switch(2_900_000, 0, HOG, 1);
    machine.wake(3_000_000, TIMER, 0);
    machine.switch(3_200_000, 0, TIMER, 0).switch(3_210_000, 0, HOG, 1);
    Recording::read(&machine.incident(4_000_000)).expect("the scene is well formed")
}

fn explained_timer(recording: &Recording, from: u64, to: u64) -> Option<IntervalExplanation> {
    explained(recording, TIMER, (from, to), Nanos::from_millis(10))
}

#[test]
fn the_process_that_had_the_cpu_is_named() {
    let explanation = explained_timer(&late(), 3_000, 3_210).expect("the incident holds it");
    let finding = explanation.findings.first().expect("there is a cause");
    assert_eq!((finding.kind, explanation.findings.len()), (CauseKind::CpuCompetition, 1));
    assert!(
        matches!(&finding.culprit, Culprit::Process { pid: HOG, comm, .. } if comm == "newborn")
    );
    assert!((finding.ms - 200.0).abs() < 1.0 && finding.share > 0.99, "{finding:?}");
    let sum: f64 = explanation.partition.iter().map(|piece| piece.ms).sum();
    assert!((sum - explanation.interval_ms).abs() < 1e-6 && (sum - 210.0).abs() < 1e-6);
}

#[test]
fn times_outside_the_incident_are_not_explained() {
    let recording = late();
    assert_eq!(explained_timer(&recording, 3_000, 4_001), None);
    assert_eq!(explained_timer(&recording, 3_000, 3_000), None);
}

const WRITER: u32 = 702;
const BYSTANDER: u32 = 703;
const KWORKER: u32 = 20;

/// The timer thread waits for a page from 3.0 s to 3.2 s, behind reads that a kernel thread issued.
/// A writer has reclaimed memory in a control group, and a bystander has taken much of the
/// machine's memory.
fn behind_held_back_reads() -> Recording {
    let mut machine = Machinery::new();
    machine.task(TIMER, TIMER, 1, "timer", 1).task(HOG, HOG, 1, "other", 0);
    machine.task(KWORKER, KWORKER, 2, "kworker/1:1", 1);
    machine.task(WRITER, WRITER, 1, "writer", 1).task(BYSTANDER, BYSTANDER, 1, "bystander", 1);
    let stack = machine.stack(&["clear_page_erms", "do_anonymous_page"]);
    for sample in 0..50 {
        machine.kernel_sample(2_000_000 + sample * 10_000, BYSTANDER, stack);
    }
    machine.reclaim(1_500_000, WRITER, IN_GROUP, 0, 0).reclaim(1_550_000, WRITER, IN_GROUP, 1, 400);
    machine.switch(1_000_000, 0, TIMER, 0).switch(3_000_000, 0, HOG, 0x8002);
    let waiting = machine.stack(&[
        "__schedule",
        "io_schedule",
        "folio_wait_bit_common",
        "filemap_fault",
        "__do_fault",
    ]);
    machine.wait(3_200_002, TIMER, 3_000_000, |wait| {
        (wait.stack, wait.syscall, wait.state, wait.context) = (waiting, -1, 0x8002, 2);
        (wait.device, wait.inode, wait.mode) = (VDA, 77, 0x8000);
    });
    for number in 0..8 {
        machine.block(3_020_000 + number * 20_000, KWORKER, 3_000_000, 131_072, 0);
    }
    machine.block(3_199_990, KWORKER, 3_000_000, 4_096, 0).wake_from(3_200_000, TIMER, 0, 2, 0);
    machine.switch(3_200_100, 0, TIMER, 0).switch(3_300_000, 0, HOG, 1);
    Recording::read(&machine.incident(4_000_000)).expect("the scene is well formed")
}

/// Reclaim at the limit of a control group.
const IN_GROUP: u32 = 4;

#[test]
fn the_process_that_took_the_groups_memory_is_named() {
    let explanation =
        explained_timer(&behind_held_back_reads(), 3_000, 3_200).expect("the incident holds it");
    let finding = explanation.findings.first().expect("there is a cause");
    assert_eq!(finding.kind, CauseKind::PageIn, "{finding:?}");
    assert!(matches!(&finding.culprit, Culprit::Process { pid: WRITER, .. }), "{finding:?}");
}

/// Returns the notes of a recording with scheduler events held from `sched_s` on and other records
/// from `rare_s` on; the mark is at 41 s, and the recording began at `armed_s`.
fn noted(armed_s: u64, sched_s: u64, rare_s: u64) -> Vec<String> {
    let mut machine = Machinery::new();
    machine.meta.window_requested_ns = 40_000_000_000;
    machine.meta.armed_ns = BEGIN + armed_s * 1_000_000_000;
    let classes = [("sched", sched_s), ("rare", rare_s), ("exits", 40)];
    machine.meta.classes = classes
        .map(|(name, from_s)| ClassHeld {
            name: name.to_owned(),
            held_from_ns: BEGIN + from_s * 1_000_000_000,
            ..ClassHeld::default()
        })
        .to_vec();
    Recording::read(&machine.incident(41_000_000)).expect("the scene is well formed").notes
}

#[test]
fn a_window_beyond_the_memory_is_noted() {
    for (rare_s, seconds, what) in [(1, 12, "scheduler events"), (31, 10, "other events")] {
        let note = format!(
            "Only {seconds} s of 40 s were recorded: the memory was full of {what}; \
             enlarge it with tipme record --memory."
        );
        assert_eq!(noted(0, 29, rare_s), [note]);
    }
    let complete = [noted(0, 1, 0), noted(0, 2, 1), noted(30, 30, 30)].concat();
    assert!(complete.is_empty(), "{complete:?}");
}
