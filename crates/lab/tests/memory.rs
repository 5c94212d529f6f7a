// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench memory` as a user runs it. Needs root.

use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use support::family::{Member, Program, expect_gone};
use support::{Ran, as_nobody, lab_with, measured, names, number, numbers, run};
use tempfile::TempDir;
use tipme_bench::until;

#[test]
fn a_disk_that_takes_few_requests_delays_a_page() {
    let svg = TempDir::new().unwrap();
    let words = "bench memory --children 0,2 --samples 25 -d 20s --requests 20 --svg";
    let (ran, document) = measured("memory", lab_with(words).arg(svg.path()), &[1]);
    assert_eq!(document["conditions"]["limit_bytes"], 12 << 20);
    assert_eq!(names(&document["runs"], "name"), ["no children", "2 children"]);
    for at in 0..2 {
        check_load(&document["runs"][at], &document["loads"][at]);
    }
    assert_eq!(document["loads"][0]["figures"]["n"], 25);
    let beside = &document["loads"][1];
    assert!(number(&beside["figures"], "max_ms") > 130.0, "{beside:#}");
    check_explained(&beside["longest"]);
    let words =
        ["12 MiB of memory", "20 reads", "no children", "over 150 ms", "ms late", "kernel "];
    ran.expect_text(&words);
    assert!(std::fs::read_to_string(svg.path().join("memory.svg")).unwrap().starts_with("<svg"));
}

/// Asserts that intervals, latencies and histogram agree, and that none is shorter than the sleep.
fn check_load(run: &Value, load: &Value) {
    let events = &run["classes"][0];
    let intervals = numbers(&load["intervals_ns"]);
    let counts = load["histogram_10ms"].as_array().unwrap().iter();
    let counted: u64 = counts.map(|bucket| bucket[1].as_u64().unwrap()).sum();
    assert_eq!(load["figures"]["n"], counted);
    // Fails where an interval is shorter.
    let expected: Vec<u64> = intervals.iter().map(|interval| interval - 100_000_000).collect();
    assert_eq!(numbers(&events["latencies_ns"]), expected);
    assert_eq!(counted, expected.len() as u64);
    let known = (&events["class"], &events["threshold_ns"]);
    assert_eq!(known, (&"interval".into(), &100_000_000.into()));
    assert_eq!((&run["lost"], &load["casualties"]), (&0.into(), &0.into()));
}

/// Asserts that the recorder explains the interval, with shares that sum to it.
fn check_explained(longest: &Value) {
    let longest = longest.as_array().unwrap();
    assert!(!longest.is_empty());
    for one in longest {
        let why = &one["explanation"];
        let pieces = why["partition"].as_array().unwrap().iter();
        let sum: f64 = pieces.map(|piece| number(piece, "ms")).sum();
        assert!((sum - number(why, "interval_ms")).abs() < 0.01, "{why:#}");
    }
    let kinds: Vec<&Value> =
        longest.iter().map(|one| &one["explanation"]["findings"][0]["kind"]).collect();
    let causes = ["page-in", "disk-queue", "reclaim", "io-held-back"];
    assert!(kinds.iter().any(|kind| causes.iter().any(|cause| *kind == cause)), "{kinds:?}");
}

/// Returns the control groups of a benchmark's process.
fn groups(pid: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let ours =
                    entry.file_name().to_string_lossy().starts_with(&format!("tipme-bench-{pid}-"));
                if ours { found.push(entry.path()) } else { folders.push(entry.path()) }
            }
        }
    }
    found
}

/// Starts a benchmark beside two children; also returns the file behind its private disk.
fn measuring() -> (Program, PathBuf) {
    let mut program = Program::start(lab_with("bench memory --children 2 -d 100s"));
    let line = program.wait_for("a private disk (");
    let device =
        line.split_once("a private disk (").unwrap().1.split_once(')').unwrap().0.to_owned();
    let file = std::fs::read_to_string(format!("/sys/block/{device}/loop/backing_file")).unwrap();
    program.wait_for("2 children: measuring");
    (program, PathBuf::from(file.trim()))
}

fn expect_clean(program: &Program, disk: &Path, members: &[Member]) {
    expect_gone(members);
    let pid = program.child.id();
    until("the end of its groups", || groups(pid).is_empty());
    until("the end of its folder", || !disk.parent().unwrap().exists());
    until("the end of its disk", || {
        let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
        let files = devices.filter_map(|device| {
            std::fs::read_to_string(device.path().join("loop/backing_file")).ok()
        });
        !files.into_iter().any(|file| file.starts_with(disk.to_str().unwrap()))
    });
}

#[test]
fn nothing_is_left_after_ctrl_c_and_after_a_kill() {
    for (signal, code) in [(Signal::INT, Some(2)), (Signal::KILL, None)] {
        let (mut program, disk) = measuring();
        let members = program.descendants();
        assert!(
            members.len() >= 6,
            "recorder, cleanup processes, disk, timer, children: {members:?}"
        );
        assert!(!groups(program.child.id()).is_empty());
        program.signal(signal);
        assert_eq!(program.wait().code(), code, "{:?}", program.said());
        expect_clean(&program, &disk, &members);
    }
}

#[test]
fn the_error_for_another_user_names_the_remedy() {
    let (_folder, mut command) = as_nobody("bench memory");
    Ran::of(&mut command).expect_refused(&["needs root; run it with sudo"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (wrong, why) in [
        ("--limit 1M", "below 12 MiB"),
        ("--children 33", "--children"),
        ("--samples 0", "--samples"),
        ("-d 10", "--duration"),
    ] {
        run(&format!("bench memory {wrong}")).expect_refused(&[why]);
    }
}
