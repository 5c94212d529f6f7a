// SPDX-License-Identifier: MIT OR Apache-2.0
//! The idle loop as a user runs it, as root and as another user. Needs root.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::family::for_everybody;
use support::lab;
use tempfile::TempDir;
use tipme_measure::Document;
use tipme_measure::idle::{HolderKind, IdleDetails};

/// The user without privileges.
const NOBODY: u32 = 65_534;

fn run(arguments: &[&str]) -> Output {
    lab().arg("idle").args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(path: &Path) -> Document<IdleDetails> {
    let text = std::fs::read(path).unwrap();
    support::schema::assert_fits("idle", &serde_json::from_slice(&text).unwrap());
    let document: Document<IdleDetails> = serde_json::from_slice(&text).unwrap();
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
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("idle.json");
    let plots = folder.path().join("plots");
    let arguments =
        ["-d", "1500ms", "--json", json.to_str().unwrap(), "--svg", plots.to_str().unwrap()];
    let output = run(&arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    assert!(
        text.contains("of the stolen time has a name") && text.contains("deep idle states"),
        "{text}"
    );
    let document = document(&json);
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
    assert!(details.residents.iter().any(|one| one.kind == HolderKind::Recorder), "{text}");
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
    let drawn = std::fs::read_dir(&plots).unwrap().count();
    assert_eq!(drawn, 2 * details.cpus.len() + 1);
}

#[test]
fn an_ordinary_user_can_measure() {
    let (folder, program) = for_everybody(&["tipme-lab", "tipme"]);
    let results = folder.path().join("results");
    std::fs::create_dir(&results).unwrap();
    std::fs::set_permissions(&results, std::fs::Permissions::from_mode(0o777)).unwrap();
    let json = results.join("idle.json");
    let mut command = Command::new(program);
    command
        .args(["idle", "-d", "500ms", "--json"])
        .arg(&json)
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir(&results);
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("only root may record"));
    let document = document(&json);
    sums_are_exact(&document);
    assert_eq!((document.details.named, document.details.method.as_str()), (None, "gaps"));
}

#[test]
fn the_classic_loop_reports_its_drift() {
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("idle.json");
    let output =
        run(&["--classic", "-d", "500ms", "--cpus", "0", "--json", json.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("at the end: drift "));
    let details = document(&json).details;
    assert_eq!(
        (details.method.as_str(), details.cpus.len(), details.gap_min_ns),
        ("classic", 1, None)
    );
    assert!(details.cpus[0].clock.classic.unwrap().iterations > 0);
}

#[test]
fn known_work_is_watched() {
    let folder = TempDir::new().unwrap();
    let json = folder.path().join("idle.json");
    let output = run(&["--validate", "--no-trace", "--json", json.to_str().unwrap()]);
    assert!(matches!(output.status.code(), Some(0..=2)), "{}", said(&output));
    let document = document(&json);
    let validation = document.details.validation.unwrap();
    let trials: Vec<(&str, usize)> =
        validation.trials.iter().map(|one| (one.method.as_str(), one.errors.n)).collect();
    assert_eq!(trials, [("gaps", 240), ("classic", 240)]);
    assert!(
        validation
            .trials
            .iter()
            .all(|one| one.injected_ms_min >= 0.05 && one.injected_ms_max > 5.0)
    );
    assert!(
        validation.echoes.iter().all(|one| one.n == 100 && one.conventional_ms >= 5.0),
        "{:?}",
        validation.echoes
    );
    assert!(validation.echoes[0].missed_us > 0.0, "{:?}", validation.echoes);
    let loaded =
        validation.checks.iter().find(|one| one.method == "gaps" && one.load == "loaded").unwrap();
    assert!(loaded.stolen_share > 0.9, "{loaded:?}");
    assert!(validation.trials.iter().all(|one| one.taken.is_some()), "{:?}", validation.trials);
    // Beside other work the verb gives no verdict, and reports that.
    let code = if validation.is_disturbed() { 2 } else { i32::from(!validation.is_good()) };
    let word = String::from_utf8_lossy(&output.stdout).contains("Not judged: others had");
    assert_eq!((output.status.code(), word), (Some(code), code == 2), "{:?}", validation.trials);
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
    let mut command = lab();
    command
        .args(["idle", "-d", "1h"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Its command line names its output folder.
    let waits = (0..3_000).take_while(|_| processes_of(folder.path()).is_empty());
    waits.for_each(|_| std::thread::sleep(Duration::from_millis(10)));
    assert_eq!(processes_of(folder.path()).len(), 1, "the recorder was started");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(line.contains("interrupted"), "{line}");
    assert_eq!(processes_of(folder.path()), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_impossible_measurement_is_refused() {
    for (arguments, expected) in [
        (&["--cpus", "8191"][..], "this process may not use CPU 8191; it may use 0"),
        (&["--cpus", "zero"], "\"zero\" is not a CPU"),
        (&["-d", "1ms", "--resolution", "2ms"], "the resolution must be above"),
        (
            &["-d", "100ms", "--no-trace", "--json", "/nonexistent/idle.json"],
            "cannot write /nonexistent/idle.json",
        ),
        (&["--validate", "--classic"], "cannot be used with"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains(expected), "{arguments:?}: {}", said(&output));
    }
}
