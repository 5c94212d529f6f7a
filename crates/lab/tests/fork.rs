// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench fork` as a user runs it. Root is needed only for the explanations.

use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use support::family::{Program, expect_gone, for_everybody};
use support::{lab, number};
use tempfile::TempDir;

/// Serializes tests that load a CPU: real-time processes of one would starve the measurement of
/// another.
static CPU: Mutex<()> = Mutex::new(());

/// Minimum length of an interval: the sleep and the work.
const LEAST_NS: u64 = 60_000_000;

#[test]
fn every_load_has_its_row_and_its_histogram() {
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("fork.json");
    let output = lab()
        .args(["bench", "fork", "--samples", "10", "-d", "20s", "--every", "300ms", "--json"])
        .arg(&json)
        .arg("--svg")
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    support::schema::assert_fits("fork", &document);
    assert_eq!(document["expected_ms"], 60.0);
    let loads = document["loads"].as_array().unwrap();
    let names: Vec<&str> = loads.iter().map(|load| load["load"].as_str().unwrap()).collect();
    let all = [
        "none",
        "hog",
        "fork",
        "storm",
        "crowd",
        "wide",
        "sessions",
        "container",
        "nice",
        "realtime",
    ];
    assert_eq!(names, all);
    for (load, run) in loads.iter().zip(document["runs"].as_array().unwrap()) {
        check(load, run);
    }
    assert_eq!(document["not_explained_because"], Value::Null);
    let text = String::from_utf8_lossy(&output.stdout);
    for words in ["none ", "storm ", "over 150 ms", "max ms", "kernel ", "all on CPU "] {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
    assert!(std::fs::read_to_string(folder.path().join("fork.svg")).unwrap().starts_with("<svg"));
}

fn check(load: &Value, run: &Value) {
    let intervals: Vec<u64> =
        load["intervals_ns"].as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).collect();
    let counts =
        load["histogram_10ms"].as_array().unwrap().iter().map(|bucket| bucket[1].as_u64().unwrap());
    // A load that starves it may reduce the number in the given time.
    assert!((1..=10).contains(&intervals.len()), "{load:#}");
    assert_eq!(counts.sum::<u64>(), intervals.len() as u64, "{load:#}");
    assert_eq!(run["classes"][0]["latencies_ns"].as_array().unwrap().len(), intervals.len());
    assert_eq!(
        (&run["name"], &run["classes"][0]["threshold_ns"]),
        (&load["load"], &50_000_000.into())
    );
    // The CPU clock and the wall clock may differ slightly.
    assert!(intervals.iter().all(|interval| *interval >= LEAST_NS - 500_000), "{intervals:?}");
}

#[test]
fn another_user_measures_as_well() {
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let (_folder, path) = for_everybody(&["tipme-lab", "tipme"]);
    let arguments = ["bench", "fork", "--load", "storm", "--samples", "10", "-d", "20s"];
    let output = Command::new(path).args(arguments).uid(65_534).gid(65_534).output().unwrap();
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    assert!(
        text.contains("not explained: recording takes root") && text.contains("storm"),
        "{text}"
    );
}

/// New processes with a higher weight starve the measuring one on any machine; with the manager the
/// measuring one has the higher weight.
#[test]
fn what_weighs_more_starves_and_the_manager_cures_it() {
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    // The manager leaves processes with a foreign nice value alone, such as niced tests.
    rustix::process::setpriority_process(None, 0).unwrap();
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("fork.json");
    let words = [
        "bench",
        "fork",
        "--load",
        "nice",
        "--managed",
        "--samples",
        "10",
        "-d",
        "15s",
        "--no-trace",
        "--json",
    ];
    let output = lab().args(words).arg(&json).output().unwrap();
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let loads = document["loads"].as_array().unwrap();
    let names: Vec<&str> = loads.iter().map(|load| load["load"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "nice", "nice, managed"]);
    // In the shortest intervals no other thread came between.
    let least: Vec<f64> = loads.iter().map(|load| number(&load["figures"], "min_ms")).collect();
    assert!(least[1] > 4.0 * least[0] && least[2] < least[1] / 2.0, "{least:?}");
}

#[test]
fn no_child_outlives_ctrl_c_or_a_kill() {
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    for (signal, code, load) in [(Signal::INT, Some(2), "storm"), (Signal::KILL, None, "fork")] {
        let mut command = lab();
        command.args([
            "bench",
            "fork",
            "--load",
            load,
            "--every",
            "200ms",
            "-d",
            "10s",
            "--no-trace",
        ]);
        let mut program = Program::start(command);
        program.wait_for(&format!("fork: {load}: measuring"));
        let members = program.descendants();
        assert!(members.len() >= 4, "cleanup process, timer, load and its children: {members:?}");
        program.signal(signal);
        assert_eq!(program.wait().code(), code, "{:?}", program.said());
        expect_gone(&members);
    }
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    let output = lab().args(["bench", "fork", "--cpu", "100000", "--no-trace"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("this process may not use CPU 100000; it may use ")
    );
}
