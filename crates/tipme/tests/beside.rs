// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench typing`, `scroll`, `system` and `warmstart` as a user runs them, with a stand-in for the manager.
#![allow(clippy::unwrap_used, reason = "a failed test may panic")]

#[path = "support/family.rs"]
#[allow(dead_code, reason = "each test target uses a part")]
mod family;
mod support;

use family::{Program, expect_gone};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::tipme;
use tempfile::TempDir;

/// A program that does as the manager does, and leaves traces of how it was started and ended.
const STAND_IN: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/started"
trap 'echo "$PPID" >> "$here/ended"; exit 0' TERM
echo "managing nothing"
while :; do sleep 0.05; done
"#;

fn program(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("manager");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn bench(arguments: &[&str], manager: &Path) -> Output {
    tipme().arg("bench").args(arguments).arg("--managed").arg("--manager").arg(manager).output().unwrap()
}

fn lines(folder: &TempDir, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The result, after the text has been looked at.
fn result(folder: &TempDir, arguments: &[&str], words: &[&str]) -> Value {
    let json = folder.path().join("result.json");
    let manager = program(folder, STAND_IN);
    let output = bench(&[arguments, &["--json", json.to_str().unwrap()]].concat(), &manager);
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    for word in words {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
    serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap()
}

/// The stand-in was started for this process and its display, and ended by itself each time.
fn expect_managed(folder: &TempDir, times: usize) {
    let (started, ended) = (lines(folder, "started"), lines(folder, "ended"));
    assert_eq!((started.len(), ended.len()), (times, times), "{started:?}");
    for (started, parent) in started.iter().zip(ended) {
        assert!(started.starts_with("manage --display :"), "{started}");
        assert!(started.contains(&format!(" --under {parent} ")), "{started}: started by {parent}");
        assert!(started.contains(" --state-dir "), "{started}");
    }
}

#[test]
fn typing_is_measured_as_the_contract_says() {
    let folder = TempDir::new().unwrap();
    let plots = folder.path().join("plots");
    let arguments = ["typing", "--load", "0,3", "--keys", "8", "--blocks", "2", "--against", "nice19,weight", "--svg"];
    let arguments = [&arguments[..], &[plots.to_str().unwrap()]].concat();
    let words = ["unloaded", "load 3, unmanaged", "load 3, managed", "load 3, nice19", "Evans et al. (1993), figure 2"];
    let document = result(&folder, &arguments, &words);
    support::schema::assert_fits("typing", &document);
    assert_eq!((&document["schema"], &document["load"]), (&1.into(), &3.into()));
    for arm in ["unloaded", "unmanaged", "managed"] {
        let figures = &document[arm];
        let number = |key: &str| figures[key].as_f64().unwrap();
        assert_eq!((number("n"), number("unanswered")), (8.0, 0.0), "{arm}: {figures:#}");
        assert!(number("p50_ms") > 0.0 && number("p50_ms") <= number("p95_ms"), "{arm}: {figures:#}");
        assert!(number("p95_ms") <= number("p99_ms") && number("p99_ms") <= number("max_ms"), "{arm}: {figures:#}");
    }
    assert_eq!(document["against"]["nice19"]["n"], 8);
    let weight_lacks = document["not_available"].as_array().unwrap().iter().any(|one| one["arm"] == "weight");
    assert_eq!(document["against"]["weight"].is_null(), weight_lacks, "{:#}", document["not_available"]);
    let names: Vec<&str> =
        document["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect();
    for turn in ["unloaded", "unloaded, managed", "load 3, unmanaged", "load 3, managed", "load 3, nice19"] {
        assert_eq!(names.iter().filter(|name| **name == turn).count(), 2, "{turn}: {names:?}");
    }
    let rows = document["arms"].as_array().unwrap();
    let loaded = rows.iter().filter(|row| row["level"] == 3);
    assert!(loaded.clone().all(|row| row["rounds_per_s"].as_f64().unwrap() > 0.0), "{rows:#?}");
    expect_managed(&folder, 4);
    assert!(std::fs::read_to_string(plots.join("typing.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn scrolling_takes_its_time() {
    let folder = TempDir::new().unwrap();
    let arguments = ["scroll", "--load", "2", "--bytes", "64K", "--blocks", "1"];
    let document = result(&folder, &arguments, &["scrolling", "load 2, managed", "64 KiB by dd"]);
    assert!(document["managed"]["p50_ms"].as_f64().unwrap() > 0.0, "{document:#}");
    assert_eq!((&document["kind"], &document["bytes"]), (&"scroll".into(), &65_536.into()));
    expect_managed(&folder, 1);
}

#[test]
fn the_first_key_after_a_pause_is_measured() {
    let folder = TempDir::new().unwrap();
    let arguments = ["warmstart", "--load", "2", "--memory", "32M", "--pause", "700ms", "--blocks", "1"];
    let document = result(&folder, &arguments, &["first key", "a pause of 0.7 s", "load 2, managed"]);
    assert_eq!((&document["kind"], &document["conditions"]["type"]), (&"warmstart".into(), &"big".into()));
    assert_eq!(document["managed"]["n"], 1);
    assert_eq!(document["pauses"][0]["after_ns"].as_array().unwrap().len(), 10);
    expect_managed(&folder, 1);
}

#[test]
fn a_script_goes_round_the_applications() {
    let folder = TempDir::new().unwrap();
    let arguments = ["system", "--beside", "nothing,build", "--rounds", "1", "--blocks", "1"];
    let document = result(&folder, &arguments, &["paper (1993), managed", "vi, less, shell", "beside nothing"]);
    let rows = document["rows"].as_array().unwrap();
    let names: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["beside"].as_str().unwrap(), row["arm"].as_str().unwrap())).collect();
    let expected = [("nothing", "unmanaged"), ("build", "unmanaged"), ("nothing", "managed"), ("build", "managed")];
    assert_eq!(names, expected);
    assert!(rows.iter().all(|row| row["median_s"].as_f64().unwrap() > 0.5), "{rows:#?}");
    expect_managed(&folder, 2);
}

#[test]
fn nothing_is_left_after_ctrl_c_and_after_a_kill() {
    for (signal, code) in [(Signal::INT, Some(2)), (Signal::KILL, None)] {
        let mut command = tipme();
        command.args(["bench", "typing", "--load", "4", "--keys", "60", "--blocks", "1"]);
        let mut program = Program::start(command);
        program.wait_for("load 4, unmanaged");
        family::until("the load", || program.descendants().len() >= 10);
        let members = program.descendants();
        program.signal(signal);
        assert_eq!(program.wait().code(), code, "{:?}", program.said());
        expect_gone(&members);
    }
}

#[test]
fn a_manager_that_fails_is_told() {
    let folder = TempDir::new().unwrap();
    for (text, message) in [
        ("#!/bin/sh\nexit 2\n", "tipme manage ended early"),
        ("#!/bin/sh\ntrap 'exit 3' TERM\necho managing\\ it\nwhile :; do sleep 0.05; done\n", "did not end well"),
    ] {
        let output = bench(&["typing", "--load", "0", "--keys", "1", "--blocks", "1"], &program(&folder, text));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(message), "{said}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let wrong = [
        ["typing", "--load", "65"],
        ["typing", "--keys", "0"],
        ["typing", "--strength", "normal"],
        ["scroll", "--bytes", "1"],
        ["warmstart", "--pause", "10"],
        ["system", "--beside", "cake"],
    ];
    for arguments in wrong {
        let output = tipme().arg("bench").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
