// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme compare` from files to exit code.

use std::fs;
use std::path::{Path, PathBuf};
use support::{Ran, lab_with, measured};
use tempfile::TempDir;
use tipme_measure::{
    Document, Events, InputClass, MeasuredMachine, NoDetails, Run, SCHEMA, ThresholdProfile,
};

const MS: u64 = 1_000_000;

/// Returns repeats of sixty keys around a latency.
fn result(kind: &str, repeats: u64, around_ms: u64) -> Document<NoDetails> {
    let runs = (1..=repeats).map(|number| {
        let mut keys = Events::of("key", Some(InputClass::Key.limits(ThresholdProfile::Default)));
        for at in 0..60 {
            keys.push(at * 100 * MS, (around_ms + at % 10 + number * 7 % 5) * MS);
        }
        Run {
            name: format!("repeat {number}"),
            duration_ns: 6_000 * MS,
            interactive_ns: Some(6_000 * MS),
            lost: 0,
            classes: vec![keys],
        }
    });
    Document {
        schema: SCHEMA,
        kind: kind.to_owned(),
        version: "0".to_owned(),
        machine: MeasuredMachine {
            kernel: "6.1".to_owned(),
            cpus: 2,
            duration_s: 6.0 * repeats as f64,
            ..MeasuredMachine::default()
        },
        runs: runs.collect(),
        details: NoDetails {},
    }
}

fn keep(folder: &TempDir, name: &str, document: &Document<NoDetails>) -> PathBuf {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, serde_json::to_vec(document).unwrap()).unwrap();
    path
}

fn compare(arguments: &[&Path]) -> Ran {
    Ran::of(lab_with("compare").args(arguments))
}

#[test]
fn a_slower_result_is_shown_to_be_so() {
    let folder = TempDir::new().unwrap();
    let quick = keep(&folder, "quick.json", &result("measure", 5, 60));
    let slow = keep(&folder, "slow.json", &result("measure", 5, 120));
    let ran = compare(&[&quick, &slow]).expect(&[1]);
    ran.expect_text(&["p50: B is 60 ms longer than A (", "ELR: B is "]);
    assert!(!ran.text.contains("(60 ms to 60 ms)"), "{}", ran.text);
    let ran = compare(&[&slow, &quick]).expect(&[0]);
    ran.expect_text(&["p50: B is 60 ms shorter than A ("]);
}

#[test]
fn nothing_is_shown_without_reason() {
    let folder = TempDir::new().unwrap();
    let one = keep(&folder, "one.json", &result("measure", 5, 60));
    let same = keep(&folder, "same.json", &result("measure", 5, 60));
    let few = keep(&folder, "few.json", &result("measure", 4, 160));
    compare(&[&one, &same, &few]).expect(&[0]).expect_text(&[
        "p50: no significant difference between A and B",
        "A and C not compared: too few repeats, each result needs at least 5",
    ]);
}

#[test]
fn a_folder_holds_repeats() {
    let folder = TempDir::new().unwrap();
    for repeat in 0..5 {
        keep(&folder, &format!("quick/{repeat}.json"), &result("timer", 1, 60 + repeat % 2));
        keep(&folder, &format!("slow/{repeat}.json"), &result("timer", 1, 120 + repeat % 2));
    }
    let with_quick =
        |other: &str| compare(&[&folder.path().join("quick"), &folder.path().join(other)]);
    with_quick("slow").expect_text(&["ms longer than A ("]);
    keep(&folder, "slow/6.json", &result("fork", 1, 120));
    with_quick("slow").expect_refused(&["keep results of one kind in a folder"]);
    let mut elsewhere = result("timer", 1, 120);
    elsewhere.machine.cpus = 8;
    keep(&folder, "slow/5.json", &elsewhere);
    with_quick("slow")
        .expect_refused(&["keep the results of each machine in a folder of their own"]);
    fs::create_dir(folder.path().join("empty")).unwrap();
    with_quick("empty").expect_refused(&["holds no result"]);
}

#[test]
fn a_document_and_plots_are_written() {
    let folder = TempDir::new().unwrap();
    let quick = keep(&folder, "quick.json", &result("measure", 5, 60));
    let slow = keep(&folder, "slow.json", &result("measure", 5, 120));
    let svg = folder.path().join("plots");
    let mut command = lab_with("compare");
    command.args([&quick, &slow]).arg("--svg").arg(&svg);
    let (_, document) = measured("compare", &mut command, &[1]);
    let known = (&document["kind"], &document["of"], &document["schema"]);
    assert_eq!(known, (&"compare".into(), &"measure".into(), &1.into()));
    let class = &document["groups"][0]["classes"][0];
    assert_eq!(class["sides"][0]["n"], 300);
    assert_eq!(class["sides"][0]["apdex"]["score"], 1.0);
    assert_eq!(class["differences"][0]["p50_ms"]["statement"], "more");
    assert_eq!(class["differences"][0]["p50_ms"]["difference"], 60.0);
    let plots = fs::read_dir(&svg).unwrap().flatten();
    let mut plots: Vec<String> =
        plots.map(|entry| entry.file_name().into_string().unwrap()).collect();
    plots.sort_unstable();
    let expected = [
        "cumulative-latency-by-count",
        "cumulative-latency-by-latency",
        "histograms",
        "percentiles",
    ];
    assert_eq!(plots, expected.map(|plot| format!("01-key-{plot}.svg")));
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let good = keep(&folder, "good.json", &result("measure", 5, 60));
    let other = keep(&folder, "other.json", &result("timer", 5, 60));
    let mut document = result("measure", 5, 60);
    document.schema = 7;
    let newer = keep(&folder, "newer.json", &document);
    let mut document = result("measure", 5, 60);
    document.runs[1].classes[0].starts_ns.pop();
    let damaged = keep(&folder, "damaged.json", &document);
    let mut document = result("measure", 5, 60);
    document.runs.iter_mut().enumerate().for_each(|(at, run)| run.name = format!("load {at}"));
    let named = keep(&folder, "named.json", &document);
    let text = folder.path().join("text.json");
    fs::write(&text, "{\"schema\": 1, \"kind\": 7}").unwrap();
    let long = folder.path().join("long.json");
    fs::File::create(&long).unwrap().set_len((1 << 30) + 1).unwrap();
    let missing = folder.path().join("missing.json");
    let refusals = [
        (&other, "one is of tipme measure, the other of tipme timer"),
        (&newer, "newer.json has schema 7, this tipme reads 1"),
        (&damaged, "class \"key\" of run 2 has 59 begins and 60 latencies"),
        (&named, "nothing to compare: the runs of good.json are \"repeat 1\""),
        (&text, "text.json is not a result of tipme --json"),
        (&long, "long.json has 1073741825 bytes; a result or folder may have at most 1073741824"),
        (&missing, "missing.json"),
    ];
    for (path, why) in refusals {
        let ran = compare(&[&good, path]);
        ran.expect_refused(&[why]);
        assert_eq!(ran.text, "");
    }
    compare(&[&good]).expect_refused(&[]);
}

#[test]
fn details_of_a_kind_are_skipped() {
    let folder = TempDir::new().unwrap();
    let plain = keep(&folder, "plain.json", &result("idle", 5, 60));
    let mut document = serde_json::to_value(result("idle", 5, 60)).unwrap();
    document["cpus"] = serde_json::json!([{ "stolen_share": 0.25, "gaps": [1, 2, 3] }]);
    let detailed = folder.path().join("detailed.json");
    fs::write(&detailed, document.to_string()).unwrap();
    compare(&[&plain, &detailed]).expect_text(&["no significant difference between A and B"]);
}

#[test]
fn a_pipe_is_no_result_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    for words in ["compare pipe pipe", "measure pipe -- true", "measure /dev/zero -- true"] {
        Ran::of(lab_with(words).current_dir(folder.path())).expect_refused(&["not a regular file"]);
    }
}
