// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench typing`, `scroll`, `system` and `warmstart` as a user runs them, with a stand-in
//! for the manager.

use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::family::{Program, expect_gone};
use support::{lab, number};
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

fn program(folder: &TempDir, text: &str) -> PathBuf {
    named_program(folder, "manager", text)
}

fn named_program(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// Puts a program with this name first in `PATH`.
fn in_front(folder: &TempDir, name: &str, text: &str) -> String {
    named_program(folder, name, text);
    format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap())
}

fn bench(arguments: &[&str], manager: &Path) -> Output {
    lab()
        .arg("bench")
        .args(arguments)
        .arg("--managed")
        .arg("--manager")
        .arg(manager)
        .output()
        .unwrap()
}

fn lines(folder: &TempDir, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Runs the benchmark, checks its text and returns the JSON result.
fn result(folder: &TempDir, arguments: &[&str], words: &[&str]) -> Value {
    let json = folder.path().join("result.json");
    let manager = program(folder, STAND_IN);
    let output = bench(&[arguments, &["--json", json.to_str().unwrap()]].concat(), &manager);
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    for word in words {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
    serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap()
}

/// Asserts that the stand-in was started for this process and its display, and ended by it, each
/// time.
fn expect_managed(folder: &TempDir, times: usize) {
    expect_managed_on(folder, ":", times);
}

/// Same for a display with this name prefix.
fn expect_managed_on(folder: &TempDir, display: &str, times: usize) {
    let (started, ended) = (lines(folder, "started"), lines(folder, "ended"));
    assert_eq!((started.len(), ended.len()), (times, times), "{started:?}");
    for (started, parent) in started.iter().zip(ended) {
        assert!(started.starts_with(&format!("manage --display {display}")), "{started}");
        assert!(started.contains(&format!(" --under {parent} ")), "{started}: started by {parent}");
        assert!(started.contains(" --state-dir "), "{started}");
    }
}

#[test]
fn typing_is_measured_under_wayland() {
    let folder = TempDir::new().unwrap();
    let arguments =
        ["typing", "--display", "wayland", "--load", "3", "--keys", "8", "--blocks", "2"];
    let arguments = [&arguments[..], &["--against", "nice19,weight"]].concat();
    let document =
        result(&folder, &arguments, &["load 3, managed", "on a private compositor of Wayland"]);
    support::schema::assert_fits("typing", &document);
    for arm in ["unloaded", "unmanaged", "managed"] {
        let figures = &document[arm];
        assert_eq!(
            (figures["n"].as_u64(), figures["unanswered"].as_u64()),
            (Some(8), Some(0)),
            "{arm}: {figures:#}"
        );
    }
    expect_managed_on(&folder, "/", 2);
    assert!(
        lines(&folder, "started")
            .iter()
            .all(|line| line.contains("/wayland-") && line.contains(" --recorder /"))
    );
}

#[test]
fn the_manager_itself_runs_under_wayland() {
    let arguments =
        ["bench", "typing", "--display", "wayland", "--load", "1", "--keys", "3", "--blocks", "1"];
    let output = lab().args(arguments).arg("--managed").output().unwrap();
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("load 1, managed"), "{text}{said}");
}

#[test]
fn typing_is_measured_as_the_contract_says() {
    let folder = TempDir::new().unwrap();
    let plots = folder.path().join("plots");
    let arguments = [
        "typing",
        "--load",
        "0,3",
        "--keys",
        "8",
        "--blocks",
        "2",
        "--against",
        "nice19,weight",
        "--svg",
    ];
    let arguments = [&arguments[..], &[plots.to_str().unwrap()]].concat();
    let turns = ["unloaded", "load 3, unmanaged", "load 3, managed", "load 3, nice19"];
    let words =
        [&turns[..], &["median of the delay, seconds", "Evans et al. (1993), figure 2"]].concat();
    let document = result(&folder, &arguments, &words);
    support::schema::assert_fits("typing", &document);
    assert_eq!((&document["schema"], &document["load"]), (&1.into(), &3.into()));
    for arm in ["unloaded", "unmanaged", "managed"] {
        let figures = &document[arm];
        let [n, unanswered, p50, max] =
            ["n", "unanswered", "p50_ms", "max_ms"].map(|key| number(figures, key));
        assert_eq!((n, unanswered), (8.0, 0.0), "{arm}: {figures:#}");
        assert!(p50 > 0.0 && p50 <= max, "{arm}: {figures:#}");
        assert!(
            figures["p95_ms"].is_null() && figures["p99_ms"].is_null(),
            "eight keys have none: {figures:#}"
        );
    }
    assert_eq!(document["against"]["nice19"]["n"], 8);
    let weight_lacks =
        document["not_available"].as_array().unwrap().iter().any(|one| one["arm"] == "weight");
    assert_eq!(
        document["against"]["weight"].is_null(),
        weight_lacks,
        "{:#}",
        document["not_available"]
    );
    let names: Vec<&str> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["name"].as_str().unwrap())
        .collect();
    for turn in
        ["unloaded", "unloaded, managed", "load 3, unmanaged", "load 3, managed", "load 3, nice19"]
    {
        assert_eq!(names.iter().filter(|name| **name == turn).count(), 2, "{turn}: {names:?}");
    }
    let rows = document["arms"].as_array().unwrap();
    let loaded = rows.iter().filter(|row| row["level"] == 3);
    assert!(loaded.clone().all(|row| row["rounds_per_s"].as_f64().unwrap() > 0.0), "{rows:#?}");
    for row in loaded.clone().filter(|row| row["arm"] != "unmanaged") {
        let kept: f64 = ["cpu_time_percent", "slower_percent"]
            .iter()
            .map(|part| 1.0 - number(&row["lost_parts"], part) / 100.0)
            .product();
        let lost = number(row, "throughput_lost_percent");
        assert!((100.0 * (1.0 - kept) - lost).abs() < 0.1, "the parts are the whole: {row:#}");
    }
    expect_managed(&folder, 4);
    assert!(std::fs::read_to_string(plots.join("typing.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn with_units_each_program_and_load_session_has_a_unit() {
    let folder = TempDir::new().unwrap();
    let path = in_front(&folder, "systemd-run", UNITS_STAND_IN);
    let json = folder.path().join("result.json");
    let mut command = lab();
    command.args([
        "bench",
        "typing",
        "--units",
        "--load",
        "3",
        "--sessions",
        "2",
        "--keys",
        "2",
        "--blocks",
        "1",
    ]);
    let output = command.arg("--json").arg(&json).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let place = document["conditions"]["place"].as_str().unwrap();
    assert!(
        place.contains("spread over 2 sessions") && place.contains("in units of systemd"),
        "{place}"
    );
    assert!(document["arms"][1]["rounds_per_s"].as_f64() > Some(0.0), "{:#}", document["arms"]);
    let units = lines(&folder, "units");
    let programs: Vec<&str> = units.iter().map(|line| line.split_once(" -- ").unwrap().1).collect();
    assert!(units.iter().all(|line| line.starts_with("--scope ")), "{units:#?}");
    for (program, wanted) in programs.iter().zip(["true", "Xvfb ", "openbox ", "xterm "]) {
        assert!(program.starts_with(wanted), "{programs:#?}");
    }
    let loads: Vec<&str> =
        programs[4..].iter().map(|line| line.split_once(" load ").unwrap().1).collect();
    assert_eq!(loads.len(), 2, "{programs:#?}");
    assert!(
        loads[0].contains("\"accounts\":[0,2]") && loads[1].contains("\"accounts\":[1]"),
        "{loads:#?}"
    );
}

#[test]
fn where_no_unit_can_be_begun_nothing_is_started() {
    let folder = TempDir::new().unwrap();
    let path = in_front(&folder, "systemd-run", "#!/bin/sh\necho no bus >&2\nexit 1\n");
    let output = lab().args(["bench", "typing", "--units"]).env("PATH", path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("a systemd unit: no bus;")
            && said.contains("leave out --units")
            && !said.contains("block 1"),
        "{said}"
    );
}

#[test]
fn scrolling_takes_its_time() {
    let folder = TempDir::new().unwrap();
    let arguments = ["scroll", "--load", "2", "--bytes", "64K", "--blocks", "1"];
    let document = result(&folder, &arguments, &["scrolling", "load 2, managed", "64 KiB by dd"]);
    support::schema::assert_fits("scroll", &document);
    assert!(document["managed"]["p50_ms"].as_f64().unwrap() > 0.0, "{document:#}");
    assert_eq!((&document["kind"], &document["bytes"]), (&"scroll".into(), &65_536.into()));
    expect_managed(&folder, 1);
}

#[test]
fn the_first_key_after_a_pause_is_measured() {
    let folder = TempDir::new().unwrap();
    let arguments =
        ["warmstart", "--load", "2", "--memory", "32M", "--pause", "700ms", "--blocks", "1"];
    let document =
        result(&folder, &arguments, &["first key", "a pause of 0.7 s", "load 2, managed"]);
    support::schema::assert_fits("warmstart", &document);
    assert_eq!(
        (&document["kind"], &document["conditions"]["type"]),
        (&"warmstart".into(), &"big".into())
    );
    assert_eq!(document["managed"]["n"], 1);
    assert_eq!(document["pauses"][0]["after_ns"].as_array().unwrap().len(), 10);
    expect_managed(&folder, 1);
}

#[test]
fn a_script_goes_round_the_applications() {
    let folder = TempDir::new().unwrap();
    let arguments = ["system", "--beside", "nothing,build", "--rounds", "1", "--blocks", "1"];
    let document = result(
        &folder,
        &arguments,
        &["paper (1993), managed", "vi, less, shell", "beside nothing"],
    );
    support::schema::assert_fits("system", &document);
    assert!(document["synthetic"].is_null() && document["build"].is_string(), "{document:#}");
    let rows = document["rows"].as_array().unwrap();
    let names: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["beside"].as_str().unwrap(), row["arm"].as_str().unwrap()))
        .collect();
    let expected = [
        ("nothing", "unmanaged"),
        ("build", "unmanaged"),
        ("nothing", "managed"),
        ("build", "managed"),
    ];
    assert_eq!(names, expected);
    assert!(rows.iter().all(|row| row["median_s"].as_f64().unwrap() > 0.5), "{rows:#?}");
    expect_managed(&folder, 2);
}

#[test]
fn a_script_needs_no_build_tool_where_nothing_is_built() {
    let (folder, programs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for name in ["Xvfb", "openbox", "xterm", "vi", "less", "sh"] {
        let path = std::env::var("PATH").unwrap();
        let place =
            path.split(':').map(|place| Path::new(place).join(name)).find(|path| path.is_file());
        std::os::unix::fs::symlink(place.unwrap(), programs.path().join(name)).unwrap();
    }
    let json = folder.path().join("result.json");
    let mut command = lab();
    command
        .args([
            "bench", "system", "--beside", "nothing", "--rounds", "1", "--blocks", "1", "--json",
        ])
        .arg(&json);
    let output = command.env("PATH", programs.path()).output().unwrap();
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        !text.contains("build")
            && !text.contains("synthetic")
            && !text.contains("the load's processes"),
        "{text}"
    );
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    support::schema::assert_fits("system", &document);
    assert!(document["build"].is_null() && document["synthetic"].is_null(), "{document:#}");
}

#[test]
fn waits_for_pages_are_measured() {
    let folder = TempDir::new().unwrap();
    let arguments = [
        "pagein",
        "--without-shortage",
        "--hog",
        "16M",
        "--working-set",
        "4M",
        "--keys-per-lap",
        "4",
    ];
    let more = [
        "--keys",
        "6",
        "--every",
        "20ms",
        "--blocks",
        "2",
        "--backend",
        "nice",
        "--cgroup",
        "/a b",
    ];
    let more = [&more[..], &["--against", "idle-io,limit"]].concat();
    let words = [
        "page-in wait",
        "load 1, managed",
        "load 1, idle-io",
        "page faults waited for a disk",
        "nothing is compared",
    ];
    let document = result(&folder, &[&arguments[..], &more].concat(), &words);
    support::schema::assert_fits("pagein", &document);
    assert_eq!((&document["managed"]["n"], &document["unloaded"]["n"]), (&6.into(), &6.into()));
    assert_eq!(
        (&document["untyped"], &document["managed"]["unanswered"]),
        (&0.into(), &0.into()),
        "{document:#}"
    );
    let limit_lacks =
        document["not_available"].as_array().unwrap().iter().any(|one| one["arm"] == "limit");
    let against = &document["against"];
    assert_eq!(
        (&against["idle_io"]["n"], against["limit"].is_null()),
        (&6.into(), limit_lacks),
        "{against:#}"
    );
    for turn in document["turns"].as_array().unwrap() {
        let (walk, seen) = (&turn["walk"], &turn["key_to_drawing"]);
        assert!(walk["n"] == 6 && walk["p50_ms"].as_f64().unwrap() > 0.0, "{turn:#}");
        assert!(seen["n"] == 6 && seen["p50_ms"].as_f64().unwrap() > 0.0, "{turn:#}");
    }
    expect_managed(&folder, 2);
    assert!(
        lines(&folder, "started").iter().all(|line| line.ends_with("--backend nice --cgroup /a b"))
    );
}

#[test]
fn where_memory_cannot_run_out_safely_nothing_is_filled() {
    let begun = std::time::Instant::now();
    let output =
        lab().args(["bench", "pagein", "--hog", "1M", "--working-set", "1M"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let reasons = ["without-shortage", "mkswap", "choose another --hog"];
    assert!(
        reasons.iter().any(|reason| said.contains(reason)),
        "{said} after {:?}",
        begun.elapsed()
    );
    assert!(!said.contains("block 1"), "{said}");
}

#[test]
fn a_figure_beside_a_load_that_lost_a_process_does_not_count() {
    let mut command = lab();
    command.args(["bench", "typing", "--load", "3", "--keys", "30", "--blocks", "1"]);
    let mut program = Program::start(command);
    program.wait_for("load 3, unmanaged");
    let victim = support::family::until_named(&program, "load-cpu", 3);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(victim as i32).unwrap(),
        Signal::KILL,
    )
    .unwrap();
    assert_eq!(program.wait().code(), Some(2), "{:?}", program.said());
    let said = program.said().join("\n");
    assert!(
        said.contains("the measurement is invalid")
            && said.contains("1 processes of the load ended"),
        "{said}"
    );
}

#[test]
fn what_compares_nothing_is_refused_with_the_reason() {
    for (arguments, reason) in [
        (&["--against", "autogroup"][..], "--sessions 0"),
        (&["--against", "nice19", "--load", "0"], "there is none"),
        (&["--managed", "--strength", "off"], "does nothing"),
        (&["--demand", "4096"], "choose less with --demand"),
    ] {
        let output = lab().args(["bench", "typing"]).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(reason), "{arguments:?}: {said}");
    }
}

#[test]
fn nothing_is_left_after_ctrl_c_and_after_a_kill() {
    for (signal, code) in [(Signal::INT, Some(2)), (Signal::KILL, None)] {
        let mut command = lab();
        command.args(["bench", "typing", "--load", "4", "--keys", "60", "--blocks", "1"]);
        let mut program = Program::start(command);
        program.wait_for("load 4, unmanaged");
        tipme_bench::until("the load", || program.descendants().len() >= 10);
        let members = program.descendants();
        program.signal(signal);
        assert_eq!(program.wait().code(), code, "{:?}", program.said());
        expect_gone(&members);
    }
}

#[test]
fn the_error_reports_a_manager_that_fails() {
    let folder = TempDir::new().unwrap();
    for (text, message) in [
        ("#!/bin/sh\nexit 2\n", "tipme manage ended early"),
        (
            "#!/bin/sh\ntrap 'exit 3' TERM\necho managing\\ it\nwhile :; do sleep 0.05; done\n",
            "tipme manage failed: ",
        ),
    ] {
        let output = bench(
            &["typing", "--load", "0", "--keys", "1", "--blocks", "1"],
            &program(&folder, text),
        );
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
        ["typing", "--cgroup", "/sys/fs/cgroup/tipme"],
        ["pagein", "--keys-per-lap", "0"],
        ["pagein", "--type", "cpu"],
        ["scroll", "--bytes", "1"],
        ["warmstart", "--pause", "10"],
        ["system", "--beside", "cake"],
    ];
    for arguments in wrong {
        let output = lab().arg("bench").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
