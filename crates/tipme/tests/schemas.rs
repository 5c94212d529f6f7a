// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schemas in `docs/schemas`, and those of benchmarks in `docs/results`, are what the types of this version give, and
//! what is printed fits them. `TIPME_BLESS=1 cargo test -p tipme --test schemas` rewrites them. Documents that take a recorder, a display or
//! faults are held against them where these run: `day`, `status`, `incidents`, `demo`, `selftest`.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

mod support;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{schema, tipme};

const DOCUMENTS: [&str; 7] = ["verdict", "incidents", "day", "status", "doctor", "demo", "selftest"];
/// What benchmarks write.
const RESULTS: [&str; 10] =
    ["fork", "memory", "typing", "scroll", "system", "warmstart", "pagein", "timer", "load", "idle"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn printed(words: &[&str]) -> String {
    String::from_utf8(tipme().args(words).output().unwrap().stdout).unwrap()
}

#[test]
fn what_is_committed_is_what_the_types_give() {
    support::lab();
    for name in DOCUMENTS {
        expect_committed(&format!("docs/schemas/{name}.schema.json"), &printed(&["schema", name]));
    }
    for name in RESULTS {
        let output = Command::new(support::lab()).args(["schema", name]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        expect_committed(&format!("docs/results/{name}.schema.json"), &text);
    }
}

fn expect_committed(file: &str, text: &str) {
    if std::env::var_os("TIPME_BLESS").is_some() {
        std::fs::write(repository().join(file), text).unwrap();
    }
    let committed = std::fs::read_to_string(repository().join(file)).unwrap_or_default();
    assert!(
        committed == text,
        "{file} is behind the types; TIPME_BLESS=1 cargo test -p tipme --test schemas writes it"
    );
}

#[test]
fn every_document_has_a_schema() {
    let help = printed(&["schema", "--help"]);
    let folder = std::fs::read_dir(repository().join("docs/schemas")).unwrap().count();
    assert_eq!(folder, DOCUMENTS.len());
    assert!(DOCUMENTS.iter().all(|name| help.contains(&format!("- {name}:"))), "{help}");
    let output = Command::new(support::lab()).args(["schema", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let choices = help.lines().filter(|line| line.trim_start().starts_with("- ")).count();
    assert!(RESULTS.iter().all(|name| help.contains(&format!("- {name}:"))), "{help}");
    assert_eq!(choices, RESULTS.len() + 2, "those of demo and selftest are among the documents: {help}");
}

#[test]
fn verdicts_fit() {
    let golden = std::fs::read_dir(repository().join("tests/golden")).unwrap().flatten().map(|entry| entry.path());
    let incidents: Vec<PathBuf> = golden.filter(|path| path.extension().is_some_and(|end| end == "tipme")).collect();
    assert!(incidents.len() > 30);
    for incident in incidents {
        let text = printed(&["diagnose", "--json", incident.to_str().unwrap()]);
        schema::assert_fits("verdict", &serde_json::from_str(&text).unwrap());
    }
}

#[test]
fn what_doctor_says_fits() {
    schema::assert_fits("doctor", &serde_json::from_str(&printed(&["doctor", "--json"])).unwrap());
}

/// The check itself: of a verdict that fits, no member can be left out, added, or be of another type.
#[test]
fn what_does_not_fit_is_noticed() {
    let incident = repository().join("tests/golden/stopped.tipme");
    let verdict: Value = serde_json::from_str(&printed(&["diagnose", "--json", incident.to_str().unwrap()])).unwrap();
    let whole: Value = serde_json::from_slice(&std::fs::read(schema::path("verdict")).unwrap()).unwrap();
    let spoilt = |spoil: &dyn Fn(&mut Value)| {
        let mut verdict = verdict.clone();
        spoil(&mut verdict);
        schema::misfits(&whole, &verdict, "verdict").len()
    };
    assert_eq!(spoilt(&|_| ()), 0);
    assert_eq!(spoilt(&|verdict| verdict["more"] = json!(1)), 1);
    assert_eq!(spoilt(&|verdict| verdict["findings"][0]["kind"] = json!("gremlins")), 1);
    assert_eq!(spoilt(&|verdict| verdict["findings"][0]["culprit"] = json!({ "device": 7 })), 1);
    assert_eq!(spoilt(&|verdict| verdict["interval"]["latency_ms"] = json!(null)), 1);
    assert_eq!(spoilt(&|verdict| drop(verdict.as_object_mut().unwrap().remove("chain"))), 1);
}
