// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench fork` as a user runs it. Root is needed only for the explanations.

use rustix::process::Signal;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};
use support::{Ran, as_nobody, expect_ended, lab_with, measured, names, number, numbers, run};
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
    let mut command = lab_with("bench fork --samples 10 -d 20s --every 300ms --svg");
    let (ran, document) = measured("fork", command.arg(folder.path()), &[0, 1]);
    assert_eq!(document["expected_ms"], 60.0);
    let loads = document["loads"].as_array().unwrap();
    let all = "none hog fork storm crowd wide sessions container nice realtime";
    assert_eq!(names(&document["loads"], "load").join(" "), all);
    for (load, run) in loads.iter().zip(document["runs"].as_array().unwrap()) {
        check(load, run);
    }
    assert_eq!(document["not_explained_because"], Value::Null);
    ran.expect_text(&["none ", "storm ", "over 150 ms", "max ms", "kernel ", "all on CPU "]);
    assert!(std::fs::read_to_string(folder.path().join("fork.svg")).unwrap().starts_with("<svg"));
}

fn check(load: &Value, run: &Value) {
    let intervals = numbers(&load["intervals_ns"]);
    let counts = load["histogram_10ms"].as_array().unwrap().iter();
    // A load that starves it may reduce the number in the given time.
    assert!((1..=10).contains(&intervals.len()), "{load:#}");
    let counted: u64 = counts.map(|bucket| bucket[1].as_u64().unwrap()).sum();
    assert_eq!(counted, intervals.len() as u64, "{load:#}");
    let events = &run["classes"][0];
    assert_eq!(events["latencies_ns"].as_array().unwrap().len(), intervals.len());
    assert_eq!((&run["name"], &events["threshold_ns"]), (&load["load"], &50_000_000.into()));
    // The CPU clock and the wall clock may differ slightly.
    assert!(intervals.iter().all(|interval| *interval >= LEAST_NS - 500_000), "{intervals:?}");
}

#[test]
fn another_user_measures_as_well() {
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let (_folder, mut command) = as_nobody("bench fork --load storm --samples 10 -d 20s");
    let ran = Ran::of(&mut command).expect(&[0, 1]);
    ran.expect_text(&["not explained: recording needs root", "storm"]);
}

/// New processes with a higher weight starve the measuring one on any machine; with the manager the
/// measuring one has the higher weight.
#[test]
fn what_weighs_more_starves_and_the_manager_cures_it() {
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    // The manager leaves processes with a foreign nice value alone, such as niced tests.
    rustix::process::setpriority_process(None, 0).unwrap();
    let words = "bench fork --load nice --managed --samples 10 -d 15s --no-trace";
    let (_, document) = measured("fork", &mut lab_with(words), &[0, 1]);
    assert_eq!(names(&document["loads"], "load"), ["none", "nice", "nice, managed"]);
    // In the shortest intervals no other thread came between.
    let loads = document["loads"].as_array().unwrap().iter();
    let least: Vec<f64> = loads.map(|load| number(&load["figures"], "min_ms")).collect();
    assert!(least[1] > 4.0 * least[0] && least[2] < least[1] / 2.0, "{least:?}");
}

#[test]
fn no_child_outlives_ctrl_c_or_a_kill() {
    let _alone = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    for (signal, code, load) in [(Signal::INT, Some(2), "storm"), (Signal::KILL, None, "fork")] {
        let words = format!("bench fork --load {load} --every 200ms -d 10s --no-trace");
        // The cleanup process, the timer, the load and its children.
        expect_ended(&words, &format!("fork: {load}: measuring"), 4, (signal, code));
    }
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    run("bench fork --cpu 100000 --no-trace")
        .expect_refused(&["this process may not use CPU 100000; it may use "]);
}
