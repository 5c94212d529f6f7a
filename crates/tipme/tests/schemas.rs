// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schemas in `docs/schemas` match the types of this version, and printed documents match the
//! schemas. `TIPME_BLESS=1 cargo test -p tipme --test schemas` rewrites them. Documents that need a
//! recorder, a display or faults are checked in the tests that run these: `day`, `status`,
//! `incidents`, `demo`, `selftest`, and output of benchmarks. `tests/documents` contains one
//! document of each kind, written by an earlier version: it still matches, member by member.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::{schema, tipme};
use tipme_analysis::Verdict;
use tipme_control::manager::{ManagerStatus, ProcessTreatment};
use tipme_report::measure::MeasureDocument;

/// Documents printed by `tipme`.
const DOCUMENTS: [&str; 8] =
    ["verdict", "interactions", "incidents", "day", "status", "doctor", "manage", "why"];
/// Documents printed or written by `tipme-lab`.
const RESULTS: [&str; 14] = [
    "demo",
    "selftest",
    "fork",
    "memory",
    "typing",
    "scroll",
    "system",
    "warmstart",
    "pagein",
    "timer",
    "load",
    "idle",
    "measure",
    "compare",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn printed(words: &[&str]) -> String {
    String::from_utf8(tipme().args(words).output().unwrap().stdout).unwrap()
}

fn printed_by_lab(words: &[&str]) -> String {
    String::from_utf8(support::lab().args(words).output().unwrap().stdout).unwrap()
}

/// Returns the names of the files in a folder, up to the first dot.
fn names_in(folder: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(repository().join(folder)).unwrap().flatten();
    let names = files
        .map(|file| file.file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json"));
    names.map(|name| name.split('.').next().unwrap().to_owned()).collect()
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    support::lab();
    for name in DOCUMENTS {
        expect_committed(name, &printed(&["schema", name]));
    }
    for name in RESULTS {
        expect_committed(name, &printed_by_lab(&["schema", name]));
    }
}

fn expect_committed(name: &str, text: &str) {
    let file = schema::path(name);
    if std::env::var_os("TIPME_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let file = file.display();
    assert!(
        committed == text,
        "{file} is behind the types; TIPME_BLESS=1 cargo test -p tipme --test schemas writes it"
    );
}

#[test]
fn every_document_has_a_schema() {
    let all: BTreeSet<String> =
        DOCUMENTS.iter().chain(&RESULTS).map(|name| (*name).to_owned()).collect();
    assert_eq!(names_in("docs/schemas"), all, "each is made by a type");
    let words = ["schema", "--help"];
    let [own, lab] = [printed(&words), printed_by_lab(&words)].map(|help| {
        let lines =
            help.lines().filter_map(|line| line.trim_start().strip_prefix("- ")?.split_once(':'));
        lines.map(|(name, _)| name.to_owned()).collect::<BTreeSet<String>>()
    });
    assert_eq!(lab, RESULTS.map(str::to_owned).into());
    assert_eq!(&own | &lab, all);
}

#[test]
fn documents_of_an_earlier_version_fit() {
    assert_eq!(names_in("tests/documents"), names_in("docs/schemas"), "one of each");
    for name in names_in("tests/documents") {
        schema::assert_fits(&name, &document(&name));
    }
    schema::assert_fits("verdict", &document("verdict.unresponsive"));
}

fn document(name: &str) -> Value {
    serde_json::from_slice(
        &std::fs::read(repository().join(format!("tests/documents/{name}.json"))).unwrap(),
    )
    .unwrap()
}

/// The documents of an incident do not change.
#[test]
fn an_incident_gives_the_same_documents() {
    let documents = [
        ("verdict", "stopped", &[][..]),
        ("interactions", "stopped", &["--interactions"]),
        ("verdict.unresponsive", "field-panel-key-flock", &[]),
    ];
    for (name, incident, more) in documents {
        let incident = repository().join(format!("tests/golden/{incident}.tipme"));
        let text = printed(&[&["diagnose", "--json", incident.to_str().unwrap()], more].concat());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document(name), "{name}");
    }
}

/// A document survives deserialization and serialization, for the kinds that programs read.
#[test]
fn documents_are_read_and_written_alike() {
    fn again<T: DeserializeOwned + Serialize>(name: &str) {
        let read: T = serde_json::from_value(document(name)).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), document(name), "{name}");
    }
    again::<Verdict>("verdict");
    again::<Verdict>("verdict.unresponsive");
    again::<MeasureDocument>("measure");
    again::<ManagerStatus>("manage");
    again::<ProcessTreatment>("why");
}

#[test]
fn verdicts_fit() {
    let golden = std::fs::read_dir(repository().join("tests/golden"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let incidents: Vec<PathBuf> =
        golden.filter(|path| path.extension().is_some_and(|end| end == "tipme")).collect();
    assert!(incidents.len() > 30);
    for incident in incidents {
        let text = printed(&["diagnose", "--json", incident.to_str().unwrap()]);
        schema::assert_fits("verdict", &serde_json::from_str(&text).unwrap());
    }
}

#[test]
fn the_document_of_doctor_fits() {
    schema::assert_fits("doctor", &serde_json::from_str(&printed(&["doctor", "--json"])).unwrap());
}

/// Tests the check itself: in a matching verdict, no member can be omitted, added, or have another
/// type.
#[test]
fn misfits_are_noticed() {
    let incident = repository().join("tests/golden/stopped.tipme");
    let verdict: Value =
        serde_json::from_str(&printed(&["diagnose", "--json", incident.to_str().unwrap()]))
            .unwrap();
    let whole: Value =
        serde_json::from_slice(&std::fs::read(schema::path("verdict")).unwrap()).unwrap();
    type Change = fn(&mut Value);
    let changes: [(usize, Change); 6] = [
        (0, |_| ()),
        (1, |verdict| verdict["more"] = json!(1)),
        (1, |verdict| verdict["findings"][0]["kind"] = json!("gremlins")),
        (1, |verdict| verdict["findings"][0]["culprit"] = json!({ "device": 7 })),
        (1, |verdict| verdict["interval"]["latency_ms"] = json!(null)),
        (1, |verdict| drop(verdict.as_object_mut().unwrap().remove("chain"))),
    ];
    for (count, change) in changes {
        let mut verdict = verdict.clone();
        change(&mut verdict);
        let misfits = schema::misfits(&whole, &verdict, "verdict");
        assert_eq!(misfits.len(), count, "{misfits:?}");
    }
}
