// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switching a running recorder to more detail or to a pause: permissions, duration, and the effect
//! on incidents. Needs root.

use serde_json::Value;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::{
    Recording, is_own_thread, mark_time, meta, open_folder, records, records_of, schema, tipme_as,
};
use tipme_record::incident::{Incident, Section};
use tipme_record::records::{Irq, Tally};
use tipme_record::{Nanos, RecordKind};

/// Users without an account: two that may mark, and one that may not.
const ANN: u32 = 4242;
const BOB: u32 = 4343;
const EVE: u32 = 4444;

/// Shorter interrupts are recorded on demand only.
const SHORT: Nanos = Nanos(50_000);

/// Timeout that only a failing test reaches.
const LONG: Duration = Duration::from_secs(120);

fn record(arguments: &[&str]) -> Recording {
    let users = ["--display", "none", "--allow-user", "4242", "--allow-user", "4343"];
    Recording::start_in(open_folder(), &[&users[..], arguments].concat())
}

fn run(uid: u32, recording: &Recording, words: &[&str]) -> Output {
    tipme_as(uid, recording.dir.path(), words).output().unwrap()
}

fn succeeds(uid: u32, recording: &Recording, words: &[&str]) {
    let output = run(uid, recording, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the reason for a refusal.
fn refused(uid: u32, recording: &Recording, words: &[&str]) -> String {
    let output = run(uid, recording, words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the recorder's status.
fn status(recording: &Recording) -> Value {
    let output = run(ANN, recording, &["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    schema::assert_fits("status", &status);
    status["recorder"].clone()
}

fn write_files(recording: &Recording) {
    for file in 0..200 {
        std::fs::write(recording.dir.path().join(format!("file{file}")), [1; 100]).unwrap();
    }
}

/// Returns the times at which this process was recorded as writing.
fn tallies(incident: &Incident) -> Vec<Nanos> {
    let tallies = records_of(incident, Section::Rare, RecordKind::Tally, Tally::read);
    tallies.filter(|tally| is_own_thread(tally.head.tid.0)).map(|tally| tally.head.ts).collect()
}

fn short_interrupts(incident: &Incident) -> Vec<Nanos> {
    let interrupts = records_of(incident, Section::Rare, RecordKind::Irq, Irq::read);
    interrupts.filter(|irq| irq.nanos < SHORT).map(|irq| irq.head.ts).collect()
}

fn monotonic() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[test]
fn users_that_may_mark_have_more_recorded_for_a_time() {
    let recording = record(&[]);
    assert!(status(&recording)["details"].is_null());
    succeeds(ANN, &recording, &["record", "--detail", "interrupts,writers", "--for=600"]);
    let on = status(&recording)["details"].clone();
    let details: Vec<(&str, u64)> = on
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["by_uid"].as_u64().unwrap()))
        .collect();
    assert_eq!(details, [("interrupts", ANN.into()), ("writers", ANN.into())]);
    assert!(
        on[0]["until_ns"].as_u64().unwrap() - on[0]["since_ns"].as_u64().unwrap()
            >= 600_000_000_000
    );
    // Another process attaches programs asynchronously.
    let deadline = Instant::now() + LONG;
    let incident = loop {
        write_files(&recording);
        let (_, incident) = recording.mark();
        if !tallies(&incident).is_empty() || Instant::now() > deadline {
            break incident;
        }
    };
    assert!(!tallies(&incident).is_empty() && short_interrupts(&incident).len() > 10);
    assert_eq!(meta(&incident).details, ["interrupts", "writers"]);
    let spans = meta(&incident).detail_spans;
    assert!(
        spans.len() == 2 && spans.iter().all(|span| span.until_ns == meta(&incident).mark_ns),
        "{spans:?}"
    );

    succeeds(BOB, &recording, &["record", "--detail", "writers", "--for=0"]);
    assert_eq!(
        status(&recording)["details"].as_array().unwrap().len(),
        2,
        "only the requesting user ends it"
    );
    succeeds(ANN, &recording, &["record", "--detail", "interrupts,writers", "--for=0"]);
    assert!(status(&recording)["details"].is_null());
    // Programs are detached asynchronously, and an interrupt may have started before.
    std::thread::sleep(Duration::from_secs(2));
    let ended = monotonic();
    write_files(&recording);
    std::thread::sleep(Duration::from_secs(1));
    let (_, incident) = recording.mark();
    let times = [tallies(&incident), short_interrupts(&incident)].concat();
    assert!(times.iter().all(|at| *at <= ended), "{times:?} after {ended:?}");
}

#[test]
fn more_detail_ends_by_itself_after_its_user_is_gone() {
    let recording = record(&[]);
    succeeds(ANN, &recording, &["record", "--detail", "locks", "--for=2"]);
    assert_eq!(status(&recording)["details"][0]["name"], "locks");
    let deadline = Instant::now() + LONG;
    while !status(&recording)["details"].is_null() {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::sleep(Duration::from_millis(200));
    }
    let (_, incident) = recording.mark();
    let spans = meta(&incident).detail_spans;
    let lasted = spans[0].until_ns - spans[0].from_ns;
    assert!(spans.len() == 1 && lasted >= 2_000_000_000, "{spans:?}");
}

#[test]
fn a_user_that_may_not_mark_changes_nothing() {
    let recording = record(&["--without", "locks"]);
    for words in [
        &["record", "--detail", "waits", "--for=60"][..],
        &["pause"],
        &["pause", "--input"],
        &["resume"],
    ] {
        let why = refused(EVE, &recording, words);
        assert!(why.contains("4444 may not use this recorder"), "{words:?}: {why}");
    }
    let why = refused(ANN, &recording, &["record", "--detail", "locks", "--for=60"]);
    assert!(
        why.contains("locks cannot be recorded more closely: switched off with --without"),
        "{why}"
    );
    let status = status(&recording);
    assert!(
        status["details"].is_null()
            && status["paused_since_ns"].is_null()
            && status["keys"] == true
    );
}

/// Arguments for temporary detail of the running recorder.
const CLOSELY: &[&str] = &["record", "--detail", "locks", "--for=30"];

#[test]
fn nothing_is_recorded_while_it_is_paused() {
    let recording = record(&[]);
    succeeds(ANN, &recording, &["pause"]);
    let paused = monotonic();
    assert_eq!(status(&recording)["paused_by_uid"], ANN);
    let child = Command::new("sleep").arg("0.5").spawn().unwrap();
    let pid = child.id();
    assert!(child.wait_with_output().unwrap().status.success());
    for (uid, arguments) in
        [ANN, BOB, 0].map(|uid| (uid, &["mark"][..])).into_iter().chain([(ANN, CLOSELY)])
    {
        let why = refused(uid, &recording, arguments);
        assert!(why.contains("s ago by user 4242, who can start it again: tipme resume"), "{why}");
    }
    assert!(refused(BOB, &recording, &["resume"]).contains("by user 4242"));
    assert!(refused(BOB, &recording, &["pause"]).contains("paused already, by user 4242"));
    let resumed = monotonic();
    succeeds(ANN, &recording, &["resume"]);
    let (_, incident) = recording.mark();
    assert!(meta(&incident).held_from_ns >= resumed.0 && mark_time(&incident) > resumed);
    let sections = [Section::Sched, Section::Rare, Section::Exits];
    let times = sections
        .map(|section| records(&incident, section).map(|entry| entry.head.ts).collect::<Vec<_>>());
    let meanwhile = times.iter().flatten().filter(|at| **at > paused && **at < resumed).count();
    assert_eq!(meanwhile, 0, "records were written");
    assert!(times[0].iter().any(|at| *at > resumed), "it does not go on");
    let known = sections
        .iter()
        .flat_map(|section| records(&incident, *section))
        .any(|entry| entry.head.tid.0 == pid);
    assert!(!known, "a process of that time is known");
    succeeds(BOB, &recording, &["pause"]);
    succeeds(0, &recording, &["resume"]);
    assert!(status(&recording)["paused_since_ns"].is_null(), "root overrules everybody");
}

#[test]
fn markers_alone_see_the_user_that_stopped_input() {
    let recording = record(&[]);
    assert!(status(&recording)["input_stopped_by_uid"].is_null());
    succeeds(BOB, &recording, &["pause", "--input"]);
    let stopped = status(&recording);
    assert_eq!((&stopped["input_stopped_by_uid"], &stopped["keys"]), (&BOB.into(), &false.into()));
    let of_eve = String::from_utf8(run(EVE, &recording, &["status", "--json"]).stdout).unwrap();
    assert!(!of_eve.contains("input_stopped_by_uid"), "{of_eve}");
    succeeds(BOB, &recording, &["resume"]);
    assert!(status(&recording)["input_stopped_by_uid"].is_null());
}

#[test]
fn the_bound_on_ended_processes_is_reported() {
    let recording = record(&["--memory", "16M"]);
    assert_eq!(status(&recording)["ended_bound"], "start");
    let script = "for (1 .. 12000) { my $pid = fork; exit 0 unless $pid; waitpid $pid, 0 }";
    assert!(Command::new("perl").args(["-e", script]).status().unwrap().success());
    assert_eq!(status(&recording)["ended_bound"], "memory");
    let (_, incident) = recording.mark();
    let exits = meta(&incident).classes.into_iter().find(|class| class.name == "exits").unwrap();
    let oldest = records(&incident, Section::Exits).map(|entry| entry.head.ts.0).min().unwrap();
    assert!(exits.bound == "memory" && exits.held_from_ns > meta(&incident).armed_ns, "{exits:?}");
    assert!(oldest >= exits.held_from_ns, "what is older is not in the file");
}
