// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench memory` as a user runs it. Needs root.

use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::family::{Program, expect_gone, for_everybody};
use support::lab;
use tempfile::TempDir;
use tipme_bench::until;

fn bench(arguments: &[&str]) -> Output {
    lab().args(["bench", "memory"]).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).collect()
}

#[test]
fn a_disk_that_takes_few_requests_delays_a_page() {
    let folder = TempDir::new().unwrap();
    let (json, svg) = (folder.path().join("memory.json"), folder.path().join("plots"));
    let output = lab()
        .args([
            "bench",
            "memory",
            "--children",
            "0,2",
            "--samples",
            "25",
            "-d",
            "20s",
            "--requests",
            "20",
            "--json",
        ])
        .arg(&json)
        .arg("--svg")
        .arg(&svg)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    support::schema::assert_fits("memory", &document);
    assert_eq!(document["conditions"]["limit_bytes"], 12 << 20);
    let names: Vec<&str> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["no children", "2 children"]);
    for at in 0..2 {
        check_load(&document["runs"][at], &document["loads"][at]);
    }
    assert_eq!(document["loads"][0]["figures"]["n"], 25);
    assert!(
        document["loads"][1]["figures"]["max_ms"].as_f64().unwrap() > 130.0,
        "{:#}",
        document["loads"][1]
    );
    check_explained(&document["loads"][1]["longest"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for words in
        ["12 MiB of memory", "20 reads", "no children", "over 150 ms", "ms late", "kernel "]
    {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
    assert!(std::fs::read_to_string(svg.join("memory.svg")).unwrap().starts_with("<svg"));
}

/// Asserts that intervals, latencies and histogram agree, and that none is shorter than the sleep.
fn check_load(run: &Value, load: &Value) {
    let n = load["figures"]["n"].as_u64().unwrap();
    let intervals = numbers(&load["intervals_ns"]);
    let latencies = numbers(&run["classes"][0]["latencies_ns"]);
    let counts =
        load["histogram_10ms"].as_array().unwrap().iter().map(|bucket| bucket[1].as_u64().unwrap());
    assert_eq!((counts.sum::<u64>(), latencies.len() as u64), (n, n));
    assert!(intervals.iter().all(|interval| *interval >= 100_000_000), "{intervals:?}");
    assert!(
        intervals
            .iter()
            .zip(&latencies)
            .all(|(interval, latency)| interval - 100_000_000 == *latency)
    );
    assert_eq!(
        (&run["classes"][0]["class"], &run["classes"][0]["threshold_ns"]),
        (&"interval".into(), &100_000_000.into())
    );
    assert_eq!((&run["lost"], &load["casualties"]), (&0.into(), &0.into()));
}

/// Asserts that the recorder explains the interval, with shares that sum to it.
fn check_explained(longest: &Value) {
    let longest = longest.as_array().unwrap();
    assert!(!longest.is_empty());
    for one in longest {
        let why = &one["explanation"];
        let pieces: f64 = why["partition"]
            .as_array()
            .unwrap()
            .iter()
            .map(|piece| piece["ms"].as_f64().unwrap())
            .sum();
        assert!((pieces - why["interval_ms"].as_f64().unwrap()).abs() < 0.01, "{why:#}");
    }
    let kinds: Vec<&Value> =
        longest.iter().map(|one| &one["explanation"]["findings"][0]["kind"]).collect();
    assert!(
        kinds.iter().any(|kind| ["page-in", "disk-queue", "reclaim", "io-held-back"]
            .contains(&kind.as_str().unwrap_or(""))),
        "{kinds:?}"
    );
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
    let mut command = lab();
    command.args(["bench", "memory", "--children", "2", "-d", "100s"]);
    let mut program = Program::start(command);
    let line = program.wait_for("a private disk (");
    let device =
        line.split_once("a private disk (").unwrap().1.split_once(')').unwrap().0.to_owned();
    let file = std::fs::read_to_string(format!("/sys/block/{device}/loop/backing_file")).unwrap();
    program.wait_for("2 children: measuring");
    (program, PathBuf::from(file.trim()))
}

fn expect_clean(program: &Program, disk: &Path, members: &[support::family::Member]) {
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
    let (_folder, path) = for_everybody(&["tipme-lab", "tipme"]);
    let output =
        Command::new(path).args(["bench", "memory"]).uid(65_534).gid(65_534).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("takes root; run it with sudo"), "{}", said(&output));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let output = bench(&["--limit", "1M"]);
    assert_eq!(
        (output.status.code(), said(&output).contains("below 12 MiB")),
        (Some(2), true),
        "{}",
        said(&output)
    );
    for wrong in [["--children", "33"], ["--samples", "0"], ["-d", "10"], ["--backing", "tape"]] {
        assert_eq!(bench(&wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn what_is_not_available_says_why() {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() > 1 {
        return;
    }
    let output = bench(&["--backing", "anonymous"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("anonymous is not available, because this machine has no swap"),
        "{}",
        said(&output)
    );
}
