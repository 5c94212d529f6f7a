// SPDX-License-Identifier: MIT OR Apache-2.0
//! The idle loop as a user runs it, as root and as another user. Needs root.

use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::family::{Program, expect_gone};
use support::{Ran, as_nobody, lab_with, measured, run};
use tempfile::TempDir;
use tipme_bench::until;
use tipme_measure::Document;
use tipme_measure::idle::{HolderKind, IdleDetails};

/// Measures, and reads the written document.
fn idle(words: &str, codes: &[i32]) -> (Ran, Document<IdleDetails>) {
    let (ran, document) = measured("idle", &mut lab_with(&format!("idle {words}")), codes);
    (ran, read(document))
}

fn read(document: Value) -> Document<IdleDetails> {
    let document: Document<IdleDetails> = serde_json::from_value(document).unwrap();
    assert_eq!((document.schema, document.kind.as_str()), (1, "idle"));
    document
}

/// Asserts that all wall time is either a gap or the loop's own, to the nanosecond.
fn sums_are_exact(document: &Document<IdleDetails>) {
    assert_eq!(document.runs.len(), document.details.cpus.len());
    for (run, cpu) in document.runs.iter().zip(&document.details.cpus) {
        let gaps = &run.classes[0];
        let stolen: u64 = gaps.latencies_ns.iter().sum();
        assert_eq!(
            (run.lost, run.name.clone(), gaps.class.as_str()),
            (0, format!("cpu {}", cpu.cpu), "gap")
        );
        assert!((cpu.stolen_share - stolen as f64 / run.duration_ns as f64).abs() < 1e-12);
        let ends =
            gaps.starts_ns.iter().zip(&gaps.latencies_ns).map(|(start, length)| start + length);
        assert!(ends.zip(&gaps.starts_ns[1..]).all(|(end, next)| end <= *next), "gaps overlap");
        let own_ms = (run.duration_ns - stolen) / 1_000_000;
        assert!(cpu.records.abs_diff(own_ms) <= 1, "{} records in {own_ms} ms", cpu.records);
    }
}

#[test]
fn with_root_all_time_has_a_holder() {
    let plots = TempDir::new().unwrap();
    let words = format!("-d 1500ms --svg {}", plots.path().display());
    let (ran, document) = idle(&words, &[0, 1]);
    ran.expect_text(&["of the stolen time has a name", "deep idle states"]);
    sums_are_exact(&document);
    let details = &document.details;
    let named = details.named.unwrap();
    assert!(
        (named.recorded + named.beside + named.tick + named.outside - named.named).abs() < 1e-9,
        "{named:?}"
    );
    assert!(named.recorded > 0.0, "{named:?}");
    let held: f64 = details.residents.iter().map(|one| one.total_ms).sum();
    let stolen: u64 = document.runs.iter().flat_map(|run| &run.classes[0].latencies_ns).sum();
    assert!((held - stolen as f64 / 1e6).abs() < 0.001, "{held} ms of {stolen} ns");
    assert!(details.residents.iter().any(|one| one.kind == HolderKind::Recorder), "{ran:#?}");
    let threads = [HolderKind::Thread, HolderKind::Recorder, HolderKind::Unexplained];
    let others: f64 = details
        .residents
        .iter()
        .filter(|one| !threads.contains(&one.kind))
        .map(|one| one.total_ms)
        .sum();
    let charged = details.cpus.iter().zip(&document.runs);
    let charged: f64 = charged
        .map(|(cpu, run)| cpu.charged_points.unwrap() / 100.0 * run.duration_ns as f64 / 1e6)
        .sum();
    assert!((charged - others).abs() < 0.001, "{charged} of {others} ms");
    let drawn = std::fs::read_dir(plots.path()).unwrap().count();
    assert_eq!(drawn, 2 * details.cpus.len() + 1);
}

#[test]
fn an_ordinary_user_can_measure() {
    let results = support::open_folder();
    std::fs::set_permissions(results.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let json = results.path().join("idle.json");
    let (_folder, mut command) = as_nobody("idle -d 500ms --json");
    let ran = Ran::of(command.arg(&json).current_dir(&results)).expect(&[0, 1]);
    ran.expect_text(&["only root may record"]);
    let document = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    support::schema::assert_fits("idle", &document);
    let document = read(document);
    sums_are_exact(&document);
    assert_eq!((document.details.named, document.details.method.as_str()), (None, "gaps"));
}

#[test]
fn the_classic_loop_reports_its_drift() {
    let (ran, document) = idle("--classic -d 500ms --cpus 0", &[0]);
    ran.expect_text(&["at the end: drift "]);
    let details = document.details;
    let known = (details.method.as_str(), details.cpus.len(), details.gap_min_ns);
    assert_eq!(known, ("classic", 1, None));
    assert!(details.cpus[0].classic.unwrap().iterations > 0);
}

#[test]
fn known_work_is_watched() {
    let (ran, document) = idle("--validate --no-trace", &[0, 1, 2]);
    let validation = document.details.validation.unwrap();
    let trials: Vec<(&str, usize)> =
        validation.trials.iter().map(|one| (one.method.as_str(), one.errors.n)).collect();
    assert_eq!(trials, [("gaps", 240), ("classic", 240)]);
    for one in &validation.trials {
        assert!(one.injected_ms_min >= 0.05 && one.injected_ms_max > 5.0, "{one:?}");
        assert!(one.taken.is_some(), "{one:?}");
    }
    for one in &validation.echoes {
        assert!(one.n == 100 && one.conventional_ms >= 5.0, "{one:?}");
    }
    assert!(validation.echoes[0].missed_us > 0.0, "{:?}", validation.echoes);
    let loaded =
        validation.checks.iter().find(|one| one.method == "gaps" && one.load == "loaded").unwrap();
    assert!(loaded.stolen_share > 0.9, "{loaded:?}");
    // Beside other work the verb gives no verdict, and reports that.
    let code = if validation.is_disturbed() { 2 } else { i32::from(!validation.is_good()) };
    let word = ran.text.contains("Not judged: others had");
    assert_eq!((ran.code, word), (Some(code), code == 2), "{:?}", validation.trials);
}

/// Returns the processes with a command line that names the folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap();
    let lines = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(name)).collect()
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let folder = TempDir::new().unwrap();
    let mut command = lab_with("idle -d 1h");
    command.env("TMPDIR", folder.path());
    let mut program = Program::start(command);
    // The recorder's command line names its output folder.
    until("the recorder", || !processes_of(folder.path()).is_empty());
    assert_eq!(processes_of(folder.path()).len(), 1);
    let members = program.descendants();
    program.signal(Signal::INT);
    assert_eq!(program.wait().code(), Some(2));
    assert!(program.said()[0].contains("interrupted"), "{:?}", program.said());
    expect_gone(&members);
    assert_eq!(processes_of(folder.path()), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_impossible_measurement_is_refused() {
    for (words, expected) in [
        ("--cpus 8191", "this process may not use CPU 8191; it may use 0"),
        ("--cpus zero", "\"zero\" is not a CPU"),
        ("-d 1ms --resolution 2ms", "the resolution must be above"),
        ("-d 100ms --no-trace --json /nonexistent/i.json", "cannot write /nonexistent/i.json"),
        ("--validate --classic", "cannot be used with"),
    ] {
        run(&format!("idle {words}")).expect_refused(&[expected]);
    }
}
