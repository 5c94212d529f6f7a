// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench timer` as a user runs it. Needs root to explain late wakeups.

use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use support::family::{Program, expect_gone};
use support::{Ran, Running, as_nobody, lab_with, measured, number, numbers, run, schema};
use tempfile::TempDir;
use tipme_bench::until;

fn timer(words: &str, codes: &[i32]) -> (Ran, Value) {
    measured("timer", &mut lab_with(&format!("bench timer {words}")), codes)
}

/// Returns deadlines and lateness of one mechanism's runs.
fn runs(document: &Value, mechanism: &str) -> Vec<(Vec<u64>, Vec<u64>)> {
    let runs = document["runs"].as_array().unwrap().iter();
    let own =
        runs.filter(|run| run["name"].as_str().unwrap().starts_with(&format!("{mechanism}/")));
    own.map(|run| &run["classes"][0])
        .map(|events| (numbers(&events["starts_ns"]), numbers(&events["latencies_ns"])))
        .collect()
}

#[test]
fn every_deadline_is_accounted_for_by_every_mechanism() {
    let (ran, document) = timer("--mechanism all -d 300ms --no-trace", &[0]);
    let cpus = document["machine"]["cpus"].as_u64().unwrap();
    let mechanisms = document["mechanisms"].as_array().unwrap();
    assert_eq!(mechanisms.len(), 6);
    for one in mechanisms {
        let [expected, lost, overruns] =
            ["expected", "lost", "overruns"].map(|key| one[key].as_u64().unwrap());
        let wakes = one["lateness_us"]["n"].as_u64().unwrap();
        assert_eq!((expected, lost), (300 * cpus, 0), "{one:#}");
        assert_eq!(wakes + overruns, expected, "{one:#}");
        let name = one["mechanism"].as_str().unwrap();
        let own = runs(&document, name);
        assert_eq!(own.iter().map(|(_, late)| late.len() as u64).sum::<u64>(), wakes, "{name}");
        for (deadlines, _) in own {
            let grid = deadlines
                .windows(2)
                .all(|pair| pair[1] > pair[0] && (pair[1] - pair[0]).is_multiple_of(1_000_000));
            assert!(grid, "{name}: {deadlines:?}");
        }
    }
    ran.expect_text(&["absolute", "nanosleep", "relative", "timerfd", "itimer", "poll"]);
}

#[test]
fn the_document_has_the_keys_that_were_promised() {
    let plots = TempDir::new().unwrap();
    let words = format!("-d 200ms --cpus 0 --no-trace --svg {}", plots.path().display());
    let (_, document) = timer(&words, &[0]);
    for key in ["schema", "overruns", "lost"] {
        assert!(document[key].is_u64(), "{key}");
    }
    for spread in ["interval_us", "lateness_us"] {
        for key in ["min", "max", "mean", "sd", "p50"] {
            number(&document[spread], key);
        }
        assert!(document[spread].get("p99").is_some() && document["outliers"].is_array());
    }
    let bins = document["histogram_100us"].as_array().unwrap();
    let counted: u64 = bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(document["interval_us"]["n"].as_u64(), Some(counted));
    assert_eq!((&document["kind"], &document["policy"]), (&"timer".into(), &"other".into()));
    assert_eq!(document["threads"][0]["slack_ns"], document["clocks"]["slack_ns"]);
    assert!(document["clocks"]["hz"].as_u64().is_some_and(|hz| hz >= 24), "{}", document["clocks"]);
    for name in ["timer-intervals.svg", "timer-lateness.svg"] {
        let plot = std::fs::read_to_string(plots.path().join(name)).unwrap();
        assert!(plot.contains("</svg>"), "{name}");
    }
}

#[test]
fn naive_sleeping_falls_behind_and_stays_there() {
    let (ran, document) = timer("--mechanism relative,absolute -d 400ms --no-trace", &[0]);
    for (_, late) in runs(&document, "relative") {
        assert!(late.windows(2).all(|pair| pair[0] <= pair[1]), "{late:?}");
        assert!(late.last() > Some(&0) && late.len() > 1);
    }
    ran.expect_text(&["Before: sleeping for 1 ms", "After:  sleeping until"]);
}

#[test]
fn repeats_are_one_result_for_compare() {
    let folder = TempDir::new().unwrap();
    let there = |words: &str| Ran::of(lab_with(words).current_dir(folder.path()));
    for name in ["before", "after"] {
        let words = format!("bench timer -d 20ms --cpus 0 --no-trace --repeat 5 --json {name}");
        there(&words).expect(&[0]).expect_text(&["Repeat 5 of 5"]);
        let files = std::fs::read_dir(folder.path().join(name)).unwrap();
        let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 5, "{files:?}");
        for file in files {
            let document = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            schema::assert_fits("timer", &document);
        }
    }
    there("compare before after --json difference.json").expect(&[0, 1]);
    let text = std::fs::read(folder.path().join("difference.json")).unwrap();
    let difference: Value = serde_json::from_slice(&text).unwrap();
    let sides = difference["groups"][0]["classes"][0]["sides"].as_array().unwrap();
    let repeats: Vec<&Value> = sides.iter().map(|side| &side["repeats"]).collect();
    assert_eq!(repeats, [5, 5], "{difference:#}");
    there("bench timer -d 20ms --repeat 2 --json before")
        .expect_refused(&["would count as a repeat"]);
}

#[test]
fn the_latest_are_explained_and_their_budgets_sum_up() {
    let (ran, document) = timer("-d 300ms --threshold 1ns", &[1]);
    let outliers = document["outliers"].as_array().unwrap();
    assert_eq!(document["mechanisms"][0]["outliers_over"], document["lateness_us"]["n"]);
    assert!((1..=100).contains(&outliers.len()), "{}", outliers.len());
    let explained: Vec<&Vec<Value>> =
        outliers.iter().filter_map(|outlier| outlier["budget"].as_array()).collect();
    assert!(!explained.is_empty(), "{ran:#?}");
    for budget in explained {
        let percent: f64 = budget.iter().map(|portion| number(portion, "percent")).sum();
        assert!((percent - 100.0).abs() < 0.01, "{budget:#?}");
    }
    assert!(!document["culprits"].as_array().unwrap().is_empty());
}

#[test]
fn a_planted_culprit_is_named_with_its_period() {
    // It computes for 40 ms, twice a second.
    let mut culprit = lab_with("worker timer-culprit 500 40 40 50");
    let mut culprit = Running::start(culprit.stdout(Stdio::piped()));
    let mut line = [0; 6];
    std::io::Read::read_exact(culprit.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"ready\n");
    let (ran, document) = timer("-d 5s", &[0]);
    let mut culprits = document["culprits"].as_array().unwrap().iter();
    let found = culprits.find(|culprit| culprit["name"] == "timer-culprit");
    let found = found.unwrap_or_else(|| panic!("{ran:#?}"));
    assert_eq!(found["cause"], "thread");
    assert!(found["outliers"].as_u64().unwrap() >= 5, "{found:#}");
    assert!((number(found, "period_s") - 0.5).abs() < 0.01, "{found:#}");
    ran.expect_text(&["thread timer-culprit"]);
}

#[test]
fn a_refused_policy_names_the_remedy() {
    let (_folder, mut command) = as_nobody("bench timer -d 100ms");
    Ran::of(&mut command).expect(&[0]).expect_text(&["visible to root only"]);
    Ran::of(command.args(["--policy", "fifo:80"])).expect_refused(&[
        "cannot use policy fifo:80",
        "RLIMIT_RTPRIO is 0",
        "use sudo",
    ]);
}

#[test]
fn nonsense_is_refused() {
    for (words, why) in [
        ("--period 1us", "choose a period"),
        ("--cpus 8191", "may not use CPU 8191"),
        ("--policy fifo", "needs a priority"),
        ("-d 1h --period 10us", "too many"),
        ("-d 1us", "is shorter than a period"),
    ] {
        run(&format!("bench timer {words}")).expect_refused(&[why]);
    }
}

/// Returns the names of a process's threads.
fn thread_names(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect()
}

#[test]
fn an_interrupt_ends_everything() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("result.json");
    let mut command = lab_with("bench timer -d 1h --period 100ms --json");
    command.arg(&path);
    let mut program = Program::start(command);
    let pid = program.child.id();
    until("its threads", || thread_names(pid).iter().any(|name| name.starts_with("tipme-timer/")));
    let members = program.descendants();
    assert!(!members.is_empty(), "the recorder");
    program.signal(Signal::INT);
    assert_eq!(program.wait().code(), Some(2));
    assert!(program.said().join("\n").contains("interrupted"), "{:?}", program.said());
    expect_gone(&members);
    assert!(!path.exists());
}
