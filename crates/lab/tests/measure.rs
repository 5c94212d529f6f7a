// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plays scripts on real applications. Needs root.

use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use support::family::Program;
use support::{Ran, lab_with, number, run};
use tempfile::TempDir;
use tipme_bench::until;

/// Five letters, two keys without an answer from a terminal, and a line end.
const TINY: &str = "about = \"a test\"\nwords_per_minute = 200\n[[step]]\ntype = \"hello\"\n\
    [[step]]\nkey = \"Pause\"\ntimes = 2\nlabel = \"nothing\"\n[[step]]\nkey = \"Return\"\nlabel = \"line\"\n";
const TINY_INPUTS: u64 = 8;

const TERMINAL: [&str; 8] =
    ["--", "xterm", "-geometry", "60x20+20+20", "-xrm", "XTerm*cursorBlink: false", "-e", "cat"];

/// Creates a folder with a script; the program's temporary files are put beside it.
fn folder(script: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("task.toml");
    std::fs::write(&path, script).unwrap();
    (folder, path)
}

fn measure(script: &str, arguments: &[&str]) -> (TempDir, Ran) {
    let (folder, path) = folder(script);
    let mut command = lab_with("measure");
    command.arg(path).args(arguments).env("TMPDIR", folder.path()).current_dir(folder.path());
    let ran = Ran::of(&mut command);
    (folder, ran)
}

/// Reads the document of a measurement.
fn result(folder: &TempDir) -> Value {
    let text = std::fs::read(folder.path().join("result.json")).unwrap();
    let result = serde_json::from_slice(&text).unwrap();
    support::schema::assert_fits("measure", &result);
    result
}

/// Returns the processes with this folder as their temporary folder.
fn processes(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let users = all.filter(|path| {
        std::fs::read(path.join("environ"))
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(name))
    });
    users.map(|path| path.display().to_string()).collect()
}

/// Asserts that only files of the test remain.
fn assert_clean(folder: &Path, kept: &[&str]) {
    until("the end of all processes", || processes(folder).is_empty());
    let names = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| !kept.contains(&name.as_str())).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The same terminal on Wayland.
const FOOT: [&str; 5] = ["--", "foot", "-c", "/dev/null", "cat"];

/// Runs the tiny script in a terminal, and checks that each input is accounted for.
fn assert_accounted(terminal: &[&str], arguments: &[&str], repeats: u64) -> Value {
    let words = [&["--json", "result.json", "--svg", "plots"], arguments, terminal].concat();
    let (folder, ran) = measure(TINY, &words);
    ran.expect(&[0, 1]).expect_text(&["cumulative latency by repeat"]);
    let result = result(&folder);
    let outcomes = ["answered", "open", "silent", "lost"];
    let counts = outcomes.map(|outcome| number(&result, outcome));
    assert_eq!(number(&result, "scripted"), (repeats * (TINY_INPUTS + 1)) as f64);
    assert_eq!(counts.iter().sum::<f64>(), number(&result, "scripted"));
    let events = result["events"].as_array().unwrap();
    assert_eq!(events.len() as f64, number(&result, "scripted"));
    let listed = outcomes
        .map(|outcome| events.iter().filter(|event| event["outcome"] == outcome).count() as f64);
    assert_eq!(listed, counts);
    let columns = result["runs"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|run| run["classes"].as_array().unwrap());
    let latencies: usize =
        columns.map(|class| class["latencies_ns"].as_array().unwrap().len()).sum();
    assert_eq!(latencies as f64, counts[0] + counts[1]);
    assert_eq!(std::fs::read_dir(folder.path().join("plots")).unwrap().count(), 6);
    assert_clean(folder.path(), &["task.toml", "result.json", "plots"]);
    result
}

#[test]
fn the_display_tap_accounts_for_every_input() {
    assert_tapped(&assert_accounted(&TERMINAL, &["--repeat", "2"], 2));
}

/// A program with a known resource use per key: a thousand page faults, two hundred waits, or 50 ms
/// of CPU time.
const TASKS: &str = r#"
import mmap, os, time, tty
tty.setraw(0)
while True:
    key = os.read(0, 1)
    if key == b"p":
        pages = mmap.mmap(-1, 1000 * 4096)
        pages.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(1000):
            pages[page * 4096] = 1
        pages.close()
    elif key == b"w":
        for _ in range(200):
            time.sleep(0.0001)
    elif key == b"c":
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
    os.write(1, key)
"#;

/// Each key four times at fixed intervals, including one with no known use.
fn tasks() -> String {
    let steps = [("x", "nothing"), ("p", "pages"), ("w", "waits"), ("c", "computes")];
    let steps = steps.map(|(key, label)| {
        format!(
            "[[step]]\nkey = \"{key}\"\ntimes = 4\nevery_ms = 300\nlabel = \"{label}\"\n\
             [[step]]\npause_ms = 300\n"
        )
    });
    // The program has started by then.
    format!("about = \"a test\"\n[[step]]\npause_ms = 4000\n{}", steps.concat())
}

/// Returns the counter of an operation for each key, minus its value for a key without an effect.
/// This excludes the cost of the terminal and of the key itself.
fn more(rows: &[Value], label: &str, counter: &str) -> f64 {
    each(rows, label, counter) - each(rows, "nothing", counter)
}

fn each(rows: &[Value], label: &str, counter: &str) -> f64 {
    let row = rows.iter().find(|row| row["label"] == label);
    let row = row.unwrap_or_else(|| panic!("{label}: {rows:?}"));
    number(row, counter) / number(row, "n")
}

#[test]
fn what_each_operation_uses_is_counted_as_it_is() {
    let words =
        ["--repeat", "1", "--json", "result.json", "--", "xterm", "-e", "python3", "-c", TASKS];
    let (folder, ran) = measure(&tasks(), &words);
    ran.expect(&[0, 1]);
    let result = result(&folder);
    let rows = result["counters"].as_array().unwrap();
    let costs = [("pages", "page_faults"), ("waits", "context_switches"), ("computes", "cpu_ms")]
        .map(|(label, counter)| more(rows, label, counter));
    println!("page faults, context switches and ms, more than for a key alone: {costs:?}");
    assert!((980.0..1_050.0).contains(&costs[0]), "{costs:?}");
    assert!((190.0..260.0).contains(&costs[1]), "{costs:?}");
    // The key's work is included; the cost of a key alone varies on a busy machine.
    assert!(each(rows, "computes", "cpu_ms") >= 50.0 && costs[2] < 60.0, "{costs:?} {rows:?}");
    assert!(more(rows, "waits", "page_faults").abs() < 50.0, "{rows:?}");
    assert!(more(rows, "pages", "context_switches").abs() < 30.0, "{rows:?}");
}

#[test]
fn the_display_tap_accounts_for_every_input_under_wayland() {
    let result = assert_accounted(&FOOT, &["--repeat", "2", "--display", "wayland"], 2);
    assert_tapped(&result);
    let (wait, think) = (number(&result, "wait_ms"), number(&result, "think_ms"));
    assert!(wait > 0.0 && think > wait, "{result:#}");
}

#[test]
fn a_compositor_that_runs_is_measured_too() {
    let compositor =
        tipme_bench::compositor::Compositor::start(tipme_bench::SessionOptions::default()).unwrap();
    let socket = tipme_bench::screen::TerminalScreen::folder(&compositor).join("home");
    let socket =
        socket.join(tipme_bench::screen::TerminalScreen::name(&compositor)).display().to_string();
    assert_tapped(&assert_accounted(&FOOT, &["--repeat", "2", "--display", &socket], 2));
    let (_folder, ran) =
        measure(TINY, &[&["--no-trace", "--display", &socket], &FOOT[..]].concat());
    ran.expect_refused(&["only a recorder knows the keyboard focus"]);
}

fn assert_tapped(result: &Value) {
    assert_eq!(
        (&result["kind"], &result["instrument"]),
        (&"measure".into(), &"display tap".into())
    );
    let events = result["events"].as_array().unwrap();
    let exact = events.iter().filter(|event| event["join"] == "exact").count();
    assert!(exact >= 6, "{exact} exact joins of 12 letters and lines");
    for event in events.iter().filter(|event| event["queue_ms"].is_f64()) {
        let parts = number(event, "queue_ms") + number(event, "processing_ms");
        assert!((parts - number(event, "latency_ms")).abs() < 1e-5, "{event}");
    }
    let key =
        result["classes"].as_array().unwrap().iter().find(|class| class["class"] == "key").unwrap();
    for milestone in ["handled", "completed"] {
        let key = format!("{milestone}_ms");
        let known =
            events.iter().filter(|event| event[&key].is_f64() && event["class"] == "key").count()
                as u64;
        assert!(known >= 6, "{known} of 12 letters and lines {milestone}");
    }
    let (handled, completed) = (number(&key["handled"], "n"), number(&key["completed"], "n"));
    assert!(handled >= completed && handled <= number(key, "n") + 4.0, "{key}");
    let labels: Vec<&Value> = events.iter().map(|event| &event["label"]).collect();
    assert_eq!((labels[0], labels[9]), (&"start (first)".into(), &"start".into()));
}

#[test]
fn without_tracing_every_join_is_a_guess() {
    for (terminal, display, instrument) in
        [(&TERMINAL[..], "x11", "damage"), (&FOOT[..], "wayland", "screencopy")]
    {
        let result =
            assert_accounted(terminal, &["--repeat", "1", "--no-trace", "--display", display], 1);
        assert_eq!(result["instrument"], instrument);
        assert!(result["events"].as_array().unwrap().iter().all(|event| event["join"] != "exact"));
        assert_eq!(result["background_ms"], Value::Null);
    }
}

#[test]
fn scripts_that_come_along_are_listed() {
    let ran = run("measure --list").expect(&[0]);
    assert!(ran.text.starts_with("editor "), "{ran:#?}");
    ran.expect_text(&["\nterminal ", "\nwriter ", "\nbrowser "]);
}

#[test]
fn a_wrong_script_is_refused_before_anything_is_started() {
    let key = "[[step]]\nkey = \"a\"\n";
    let wrong = "script task, line 2: \"nokey\" is not a key; write it like";
    for (script, application, why) in [
        ("[[step]]\nkey = \"nokey\"\n", &["--", "xterm"][..], wrong),
        (key, &[], "names no application; put one behind --"),
        (key, &["--", "no-such-program"], "not installed: no-such-program"),
    ] {
        measure(script, application).1.expect_refused(&[why]);
    }
}

/// Asserts that an application without tracing is given up, and that nothing is left of it.
#[track_caller]
fn assert_given_up(script: &str, application: &[&str], why: &[&str]) {
    let (folder, ran) =
        measure(script, &[&["--no-trace", "--repeat", "1", "--"], application].concat());
    ran.expect_refused(why);
    assert_clean(folder.path(), &["task.toml"]);
}

#[test]
fn an_application_without_a_window_is_given_up() {
    let script = format!("start_within_s = 2\n{TINY}");
    let why = "showed no window with the keyboard focus within 2 s";
    assert_given_up(&script, &["sleep", "600"], &[why]);
}

#[test]
fn an_application_that_cannot_start_is_quoted() {
    let why = ["ended before it had a window", "exit status: 3; it said: no such thing"];
    assert_given_up(TINY, &["sh", "-c", "echo no such thing >&2; exit 3"], &why);
}

#[test]
fn an_application_that_dies_is_reported_with_the_input() {
    let script = "[[step]]\ntype = \"exit\\n\"\n[[step]]\nkey = \"a\"\ntimes = 400\n";
    let why = ["the application ended after ", " of 405 inputs"];
    assert_given_up(script, &["xterm", "-e", "sh"], &why);
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let (folder, path) = folder("[[step]]\nkey = \"a\"\ntimes = 4000\n");
    let mut command = lab_with("measure");
    command.arg(path).args(TERMINAL).env("TMPDIR", folder.path());
    let mut program = Program::start(command);
    program.wait_for("measure: repeat 1 of 5");
    // The program, its recorder, the display, the window manager, the terminal and its program.
    until("all processes", || processes(folder.path()).len() >= 6);
    // As `timeout`, which sends SIGTERM twice, and as a double Ctrl-C.
    for signal in [Signal::TERM, Signal::TERM, Signal::INT, Signal::INT] {
        program.signal(signal);
    }
    assert_eq!(program.wait().code(), Some(2));
    assert_clean(folder.path(), &["task.toml"]);
}
