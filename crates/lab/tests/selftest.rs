// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known faults, as a user runs them. Needs root.

use serde_json::Value;
use std::path::Path;
use support::{Ran, number, run, schema};
use tempfile::TempDir;

/// Faults of different kinds that do not need the CPU, so that a busy machine does not affect them.
const FAULTS: [&str; 5] = ["lock", "bus", "network", "child", "stopped"];

/// Runs the self-test on a display.
fn selftest(display: &str, words: &str) -> (Ran, Value) {
    let ran = run(&format!("selftest --json --display {display} {words}")).expect(&[0]);
    let document: Value = serde_json::from_str(&ran.text).unwrap();
    schema::assert_fits("selftest", &document);
    (ran, document)
}

#[test]
fn known_faults_are_named() {
    assert_named("x11", &[&FAULTS[..], &["grab"]].concat());
}

#[test]
fn known_faults_are_named_under_wayland() {
    assert_named("wayland", &FAULTS);
}

fn assert_named(display: &str, faults: &[&str]) {
    let folder = TempDir::new().unwrap();
    let words = format!("{} --keep {}", faults.join(" "), folder.path().display());
    let (ran, document) = selftest(display, &words);
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), faults.len(), "{ran:#?}");
    for result in results {
        assert_eq!(result["hit"], true, "{result:#}");
        let kinds = result["expected_kinds"].as_array().unwrap();
        assert!(kinds.contains(&result["kind"]), "{result:#}");
        for field in ["injected_ms", "attributed_ms"] {
            assert!(number(result, field) > 100.0, "{result:#}");
        }
        number(result, "unattributed_ms");
        assert!(result["expected_pids"].is_array(), "{result:#}");
        let incident = Path::new(result["incident"].as_str().unwrap());
        assert!(incident.starts_with(folder.path()), "{result:#}");
    }
    assert_eq!((&document["schema"], &document["accuracy"]), (&1.into(), &1.0.into()));
    assert_eq!((&document["n"], &document["clean_runs"]), (&faults.len().into(), &0.into()));
    let line = format!("selftest: 1/{} lock ... ", faults.len());
    assert!(ran.said.contains(&line), "{ran:#?}");
}

#[test]
fn a_calm_run_has_no_finding() {
    assert_calm("x11");
}

#[test]
fn a_calm_run_has_no_finding_under_wayland() {
    assert_calm("wayland");
}

fn assert_calm(display: &str) {
    let (ran, document) = selftest(display, "calm");
    assert_eq!(document["false_findings"], 0, "{document:#}");
    assert_eq!((&document["n"], &document["clean_runs"]), (&0.into(), &1.into()));
    assert!(document["accuracy"].is_null() && ran.said.contains("no finding hit"), "{ran:#?}");
}

#[test]
fn an_unknown_fault_is_refused() {
    run("selftest gremlins").expect_refused(&["there is no fault \"gremlins\""]);
}

#[test]
fn the_list_names_the_faults() {
    let list = run("selftest --list").expect(&[0]).text;
    let listed: Vec<&str> = list.lines().filter_map(|line| line.split(' ').next()).collect();
    for name in FAULTS.into_iter().chain(["cpu", "grab", "calm"]) {
        assert!(listed.contains(&name), "{name} is not in:\n{list}");
    }
}
