// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known faults, as a user runs them. Needs root.

use serde_json::Value;
use std::path::Path;
use support::{lab, schema};
use tempfile::TempDir;

/// Faults of different kinds that do not need the CPU, so that a busy machine does not affect them.
const FAULTS: [&str; 5] = ["lock", "bus", "network", "child", "stopped"];

/// Runs the self-test on a display; exit code, document, and standard error.
fn selftest(display: &str, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output =
        lab().args(["selftest", "--json", "--display", display]).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let document =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code(), document, said)
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
    let keep = folder.path().to_str().unwrap();
    let (code, document, said) = selftest(display, &[faults, &["--keep", keep]].concat());
    schema::assert_fits("selftest", &document);
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), faults.len(), "{said}");
    for result in results {
        assert_eq!(result["hit"], true, "{result:#}");
        assert!(
            result["expected_kinds"].as_array().unwrap().contains(&result["kind"]),
            "{result:#}"
        );
        assert!(result["injected_ms"].as_f64().unwrap() > 100.0, "{result:#}");
        assert!(result["attributed_ms"].as_f64().unwrap() > 100.0, "{result:#}");
        assert!(
            result["unattributed_ms"].is_number() && result["expected_pids"].is_array(),
            "{result:#}"
        );
        assert!(
            Path::new(result["incident"].as_str().unwrap()).starts_with(folder.path()),
            "{result:#}"
        );
    }
    assert_eq!(
        (code, &document["schema"], &document["accuracy"]),
        (Some(0), &1.into(), &1.0.into())
    );
    assert_eq!((&document["n"], &document["clean_runs"]), (&faults.len().into(), &0.into()));
    assert!(said.contains(&format!("selftest: 1/{} lock ... ", faults.len())), "{said}");
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
    let (code, document, said) = selftest(display, &["calm"]);
    assert_eq!((code, &document["false_findings"]), (Some(0), &0.into()), "{document:#}");
    assert_eq!(
        (&document["n"], &document["clean_runs"], &document["accuracy"]),
        (&0.into(), &1.into(), &Value::Null)
    );
    assert!(said.contains("no finding hit"), "{said}");
}

#[test]
fn an_unknown_fault_is_refused() {
    let output = lab().args(["selftest", "gremlins"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no fault \"gremlins\""));
}

#[test]
fn the_list_names_the_faults() {
    let output = lab().args(["selftest", "--list"]).output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    for name in FAULTS.into_iter().chain(["cpu", "grab", "calm"]) {
        assert!(
            list.lines().any(|line| line.split(' ').next() == Some(name)),
            "{name} is not in:\n{list}"
        );
    }
}
