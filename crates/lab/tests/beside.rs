// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench typing`, `scroll`, `system` and `warmstart` as a user runs them, with a stand-in
//! for the manager.

use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::family::Program;
use support::{Ran, expect_ended, kill_one, lab_with, measured, names, number, run};
use tempfile::TempDir;

/// Imitates `systemd-run --scope` without a unit, and logs its arguments.
const UNITS_STAND_IN: &str = r#"#!/bin/sh
echo "$@" >> "$(dirname "$0")/units"
until [ "$1" = -- ]; do shift; done
shift
exec "$@"
"#;

/// Imitates the manager, and logs its start and end.
const STAND_IN: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$@" >> "$here/started"
trap 'echo "$PPID" >> "$here/ended"; exit 0' TERM
echo "managing nothing"
while :; do sleep 0.05; done
"#;

fn program(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// Puts a program with this name first in `PATH`.
fn in_front(folder: &TempDir, name: &str, text: &str) -> String {
    program(folder, name, text);
    format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap())
}

fn lines(folder: &TempDir, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Runs a benchmark with a manager that is a stand-in, checks its text and returns the document.
#[track_caller]
fn managed(folder: &TempDir, kind: &str, words: &str, said: &[&str]) -> Value {
    managed_by(folder, kind, lab_with(&format!("bench {kind} {words}")), said)
}

#[track_caller]
fn managed_by(folder: &TempDir, kind: &str, mut command: Command, said: &[&str]) -> Value {
    command.args(["--managed", "--manager"]).arg(program(folder, "manager", STAND_IN));
    let (ran, document) = measured(kind, &mut command, &[0]);
    ran.expect_text(said);
    document
}

/// Asserts that the stand-in was started for this process and a display with this prefix, and ended
/// by it, each time.
#[track_caller]
fn expect_managed(folder: &TempDir, display: &str, times: usize) {
    let (started, ended) = (lines(folder, "started"), lines(folder, "ended"));
    assert_eq!((started.len(), ended.len()), (times, times), "{started:?}");
    for (started, parent) in started.iter().zip(ended) {
        assert!(started.starts_with(&format!("manage --display {display}")), "{started}");
        assert!(started.contains(&format!(" --under {parent} ")), "{started}: started by {parent}");
        assert!(started.contains(" --state-dir "), "{started}");
    }
}

/// Asserts that all of this many keys were answered with and without load and manager.
#[track_caller]
fn expect_answered(document: &Value, keys: u64) {
    for arm in ["unloaded", "unmanaged", "managed"] {
        let figures = &document[arm];
        let known = (&figures["n"], &figures["unanswered"]);
        assert_eq!(known, (&keys.into(), &0.into()), "{arm}: {figures:#}");
    }
}

#[track_caller]
fn lacks(document: &Value, arm: &str) -> bool {
    names(&document["not_available"], "arm").contains(&arm)
}

#[test]
fn typing_is_measured_under_wayland() {
    let folder = TempDir::new().unwrap();
    let words = "--display wayland --load 3 --keys 8 --blocks 2 --against nice19,weight";
    let said = ["load 3, managed", "on a private compositor of Wayland"];
    expect_answered(&managed(&folder, "typing", words, &said), 8);
    expect_managed(&folder, "/", 2);
    let started = lines(&folder, "started");
    assert!(
        started.iter().all(|line| line.contains("/wayland-") && line.contains(" --recorder /"))
    );
}

#[test]
fn the_manager_itself_runs_under_wayland() {
    run("bench typing --display wayland --load 1 --keys 3 --blocks 1 --managed")
        .expect(&[0])
        .expect_text(&["load 1, managed"]);
}

#[test]
fn typing_is_measured_as_the_contract_says() {
    let folder = TempDir::new().unwrap();
    let plots = folder.path().join("plots");
    let words =
        format!("--load 0,3 --keys 8 --blocks 2 --against nice19,weight --svg {}", plots.display());
    let turns = ["unloaded", "load 3, unmanaged", "load 3, managed", "load 3, nice19"];
    let said = [&turns[..], &["Evans et al. (1993), figure 2"]].concat();
    let document = managed(&folder, "typing", &words, &said);
    assert_eq!((&document["schema"], &document["load"]), (&1.into(), &3.into()));
    expect_answered(&document, 8);
    for arm in ["unloaded", "unmanaged", "managed"] {
        let figures = &document[arm];
        let [p50, max] = ["p50_ms", "max_ms"].map(|key| number(figures, key));
        assert!(p50 > 0.0 && p50 <= max, "{arm}: {figures:#}");
        let few = figures["p95_ms"].is_null() && figures["p99_ms"].is_null();
        assert!(few, "eight keys have none: {figures:#}");
    }
    assert_eq!(document["against"]["nice19"]["n"], 8);
    assert_eq!(document["against"]["weight"].is_null(), lacks(&document, "weight"));
    let runs = names(&document["runs"], "name");
    for turn in turns.iter().chain(&["unloaded, managed"]) {
        assert_eq!(runs.iter().filter(|name| *name == turn).count(), 2, "{turn}: {runs:?}");
    }
    let rows = document["arms"].as_array().unwrap();
    for row in rows.iter().filter(|row| row["level"] == 3) {
        assert!(number(row, "rounds_per_s") > 0.0, "{row:#}");
        if row["arm"] != "unmanaged" {
            let kept: f64 = ["cpu_time_percent", "slower_percent"]
                .map(|part| 1.0 - number(&row["lost_parts"], part) / 100.0)
                .iter()
                .product();
            let lost = number(row, "throughput_lost_percent");
            assert!((100.0 * (1.0 - kept) - lost).abs() < 0.1, "the parts are the whole: {row:#}");
        }
    }
    expect_managed(&folder, ":", 4);
    assert!(std::fs::read_to_string(plots.join("typing.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn with_units_each_program_and_load_session_has_a_unit() {
    let folder = TempDir::new().unwrap();
    let path = in_front(&folder, "systemd-run", UNITS_STAND_IN);
    let words = "bench typing --units --load 3 --sessions 2 --keys 2 --blocks 1";
    let (_, document) = measured("typing", lab_with(words).env("PATH", path), &[0]);
    let place = document["conditions"]["place"].as_str().unwrap();
    let placed = ["spread over 2 sessions", "in units of systemd"];
    assert!(placed.iter().all(|words| place.contains(words)), "{place}");
    assert!(document["arms"][1]["rounds_per_s"].as_f64() > Some(0.0), "{:#}", document["arms"]);
    let units = lines(&folder, "units");
    let programs: Vec<&str> = units.iter().map(|line| line.split_once(" -- ").unwrap().1).collect();
    assert!(units.iter().all(|line| line.starts_with("--scope ")), "{units:#?}");
    for (program, wanted) in programs.iter().zip(["true", "Xvfb ", "openbox ", "xterm "]) {
        assert!(program.starts_with(wanted), "{programs:#?}");
    }
    let loads: Vec<&str> =
        programs[4..].iter().map(|line| line.split_once(" load ").unwrap().1).collect();
    let [one, other] = loads[..] else { panic!("{programs:#?}") };
    assert!(one.contains("\"accounts\":[0,2]") && other.contains("\"accounts\":[1]"), "{loads:#?}");
}

#[test]
fn where_no_unit_can_be_begun_nothing_is_started() {
    let folder = TempDir::new().unwrap();
    let path = in_front(&folder, "systemd-run", "#!/bin/sh\necho no bus >&2\nexit 1\n");
    let ran = Ran::of(lab_with("bench typing --units").env("PATH", path));
    ran.expect_refused(&["a systemd unit: no bus;", "leave out --units"]);
    assert!(!ran.said.contains("block 1"), "{}", ran.said);
}

#[test]
fn scrolling_takes_its_time() {
    let folder = TempDir::new().unwrap();
    let said = ["scrolling", "load 2, managed", "64 KiB by dd"];
    let document = managed(&folder, "scroll", "--load 2 --bytes 64K --blocks 1", &said);
    assert!(number(&document["managed"], "p50_ms") > 0.0, "{document:#}");
    assert_eq!((&document["kind"], &document["bytes"]), (&"scroll".into(), &65_536.into()));
    expect_managed(&folder, ":", 1);
}

#[test]
fn the_first_key_after_a_pause_is_measured() {
    let folder = TempDir::new().unwrap();
    let said = ["first key", "a pause of 0.7 s", "load 2, managed"];
    let words = "--load 2 --memory 32M --pause 700ms --blocks 1";
    let document = managed(&folder, "warmstart", words, &said);
    let known = (&document["kind"], &document["conditions"]["type"]);
    assert_eq!(known, (&"warmstart".into(), &"big".into()));
    assert_eq!(document["managed"]["n"], 1);
    assert_eq!(document["pauses"][0]["after_ns"].as_array().unwrap().len(), 10);
    expect_managed(&folder, ":", 1);
}

#[test]
fn a_script_goes_round_the_applications() {
    let folder = TempDir::new().unwrap();
    let said = ["paper (1993), managed", "vi, less, shell", "beside nothing"];
    let words = "--beside nothing,build --rounds 1 --blocks 1";
    let document = managed(&folder, "system", words, &said);
    assert!(document["synthetic"].is_null() && document["build"].is_string(), "{document:#}");
    let rows = &document["rows"];
    assert_eq!(names(rows, "beside"), ["nothing", "build", "nothing", "build"]);
    assert_eq!(names(rows, "arm"), ["unmanaged", "unmanaged", "managed", "managed"]);
    assert!(rows.as_array().unwrap().iter().all(|row| number(row, "median_s") > 0.5), "{rows:#}");
    expect_managed(&folder, ":", 2);
}

#[test]
fn a_script_needs_no_build_tool_where_nothing_is_built() {
    let programs = TempDir::new().unwrap();
    let path = std::env::var("PATH").unwrap();
    for name in ["Xvfb", "openbox", "xterm", "vi", "less", "sh"] {
        let mut places = path.split(':').map(|place| Path::new(place).join(name));
        let place = places.find(|path| path.is_file()).unwrap();
        std::os::unix::fs::symlink(place, programs.path().join(name)).unwrap();
    }
    let mut command = lab_with("bench system --beside nothing --rounds 1 --blocks 1");
    let (ran, document) = measured("system", command.env("PATH", programs.path()), &[0]);
    let absent = ["build", "synthetic", "the load's processes"];
    assert!(absent.iter().all(|words| !ran.text.contains(words)), "{}", ran.text);
    assert!(document["build"].is_null() && document["synthetic"].is_null(), "{document:#}");
}

#[test]
fn waits_for_pages_are_measured() {
    let folder = TempDir::new().unwrap();
    let words = "bench pagein --without-shortage --hog 16M --working-set 4M --keys-per-lap 4 --keys 6 \
         --every 20ms --blocks 2 --backend nice --against idle-io,limit --cgroup";
    let said = [
        "page-in wait",
        "load 1, managed",
        "load 1, idle-io",
        "page faults waited for a disk",
        "nothing is compared",
    ];
    let mut command = lab_with(words);
    command.arg("/a b");
    let document = managed_by(&folder, "pagein", command, &said);
    expect_answered(&document, 6);
    assert_eq!(document["untyped"], 0);
    let against = &document["against"];
    assert_eq!(against["idle_io"]["n"], 6);
    assert_eq!(against["limit"].is_null(), lacks(&document, "limit"), "{against:#}");
    for turn in document["turns"].as_array().unwrap() {
        for figures in [&turn["walk"], &turn["key_to_drawing"]] {
            assert!(figures["n"] == 6 && number(figures, "p50_ms") > 0.0, "{turn:#}");
        }
    }
    expect_managed(&folder, ":", 2);
    let started = lines(&folder, "started");
    assert!(
        started.iter().all(|line| line.ends_with("--backend nice --cgroup /a b")),
        "{started:?}"
    );
}

#[test]
fn where_memory_cannot_run_out_safely_nothing_is_filled() {
    let ran = run("bench pagein --hog 1M --working-set 1M");
    ran.expect_refused(&[]);
    let reasons = ["without-shortage", "mkswap", "choose another --hog"];
    assert!(reasons.iter().any(|reason| ran.said.contains(reason)), "{}", ran.said);
    assert!(!ran.said.contains("block 1"), "{}", ran.said);
}

#[test]
fn a_figure_beside_a_load_that_lost_a_process_does_not_count() {
    let mut program = Program::start(lab_with("bench typing --load 3 --keys 30 --blocks 1"));
    program.wait_for("load 3, unmanaged");
    kill_one(&program, "load-cpu", 3);
    assert_eq!(program.wait().code(), Some(2), "{:?}", program.said());
    let said = program.said().join("\n");
    let words = ["the measurement is invalid", "1 processes of the load ended"];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
}

#[test]
fn nothing_is_left_after_ctrl_c_and_after_a_kill() {
    for end in [(Signal::INT, Some(2)), (Signal::KILL, None)] {
        let words = "bench typing --load 4 --keys 60 --blocks 1";
        expect_ended(words, "load 4, unmanaged", 10, end);
    }
}

#[test]
fn the_error_reports_a_manager_that_fails() {
    let folder = TempDir::new().unwrap();
    let fails = "#!/bin/sh\ntrap 'exit 3' TERM\necho managing\\ it\nwhile :; do sleep 0.05; done\n";
    for (text, message) in
        [("#!/bin/sh\nexit 2\n", "tipme manage ended early"), (fails, "tipme manage failed: ")]
    {
        let mut command = lab_with("bench typing --load 0 --keys 1 --blocks 1 --managed --manager");
        Ran::of(command.arg(program(&folder, "manager", text))).expect_refused(&[message]);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    for (words, reason) in [
        ("typing --against autogroup", "--sessions 0"),
        ("typing --against nice19 --load 0", "there is none"),
        ("typing --managed --strength off", "does nothing"),
        ("typing --demand 4096", "choose less with --demand"),
        ("typing --load 65", "--load"),
        ("typing --keys 0", "--keys"),
        ("typing --strength normal", "--managed"),
        ("typing --cgroup /sys/fs/cgroup/tipme", "--managed"),
        ("pagein --keys-per-lap 0", "--keys-per-lap"),
        ("pagein --type cpu", "--type"),
        ("scroll --bytes 1", "choose a file of 1 KiB"),
        ("warmstart --pause 10", "--pause"),
        ("system --beside cake", "--beside"),
    ] {
        run(&format!("bench {words}")).expect_refused(&[reason]);
    }
}
