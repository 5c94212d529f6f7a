// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demonstration, as a user runs it. Needs root.

use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use support::compositor::Compositor;
use support::family::Program;
use support::{Ran, lab_with, run, schema};
use tempfile::TempDir;
use tipme_bench::ProgressListener;
use tipme_bench::demo::{self, DemoOptions};
use tipme_bench::faults::Fault;
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::screen::Place;
use tipme_bench::until;
use tipme_bench::worker::WorkerLauncher;

fn assert_named(fault: &str, display: &str) {
    let folder = TempDir::new().unwrap();
    let mut command = lab_with(&format!("demo --fault {fault} --display {display} --json"));
    let ran = Ran::of(command.arg("--state-dir").arg(folder.path()));
    let outcome: Value =
        serde_json::from_str(&ran.text).unwrap_or_else(|error| panic!("{error}: {}", ran.said));
    assert_eq!(ran.code, Some(0), "{}\n{}", outcome["why"], outcome["verdict"]);
    schema::assert_fits("demo", &outcome);
    let known = (&outcome["schema"], &outcome["fault"], &outcome["ok"]);
    assert_eq!(known, (&1.into(), &fault.into(), &true.into()));
    let injected = &outcome["injected"];
    let culprit = &outcome["verdict"]["findings"][0]["culprit"];
    assert!(injected["pids"].as_array().unwrap().contains(&culprit["pid"]), "{culprit}");
    assert!(injected["fault_ms_max"].as_f64() > injected["calm_ms_max"].as_f64(), "{injected}");
    assert!(Path::new(outcome["incident"].as_str().unwrap()).starts_with(folder.path()));
    assert!(ran.said.contains("demo: calm typing 1/8 s\n"), "{}", ran.said);
}

#[test]
fn a_storm_of_processes_is_named() {
    assert_named("cpu", "x11");
}

#[test]
fn a_full_disk_queue_is_named() {
    assert_named("io", "x11");
}

#[test]
fn a_held_lock_is_named() {
    assert_named("lock", "x11");
}

#[test]
fn a_storm_of_processes_is_named_under_wayland() {
    assert_named("cpu", "wayland");
}

#[test]
fn a_full_disk_queue_is_named_under_wayland() {
    assert_named("io", "wayland");
}

#[test]
fn a_held_lock_is_named_under_wayland() {
    assert_named("lock", "wayland");
}

/// A running compositor of another user; the terminal on it is that user's, too.
#[test]
fn a_held_lock_is_named_on_a_compositor_of_somebody() {
    let compositor = Compositor::start();
    assert_named("lock", compositor.socket().to_str().unwrap());
}

#[test]
fn a_compositor_that_does_not_run_is_an_error() {
    let ran = run("demo --display wayland-4711");
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let error = "tipme: wayland-4711: no compositor with this name is running; \
                 tipme status lists those that are\n";
    assert!(ran.said.ends_with(error), "{ran:#?}");
}

struct Quiet;

impl ProgressListener for Quiet {
    fn line(&mut self, _: &str) {}
}

#[test]
fn calm_typing_gives_no_finding() {
    assert_calm(Place::X11);
}

#[test]
fn calm_typing_gives_no_finding_under_wayland() {
    assert_calm(Place::Wayland);
}

fn assert_calm(place: Place) {
    let folder = TempDir::new().unwrap();
    let options = DemoOptions {
        fault: Fault::named("calm").unwrap(),
        place,
        tipme: support::built("tipme"),
        launcher: WorkerLauncher(vec![env!("CARGO_BIN_EXE_tipme-lab").into(), "worker".into()]),
        state_dir: Some(folder.path().to_path_buf()),
    };
    let outcome = demo::run(&options, &InterruptFlag::default(), &mut Quiet).unwrap();
    assert!(outcome.ok, "{}\n{}", outcome.why, outcome.text);
    assert_eq!(outcome.injected.job, None);
}

/// Starts a demonstration with temporary files in `folder`, and waits until the fault begins.
fn start_io_demo(folder: &Path, display: &str) -> Program {
    let mut command = lab_with(&format!("demo --fault io --display {display} --state-dir"));
    command.arg(folder.join("state")).env("TMPDIR", folder);
    let mut program = Program::start(command);
    program.wait_for("demo: the fault begins");
    program
}

/// Returns the processes of a demonstration with this folder.
fn processes(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let own = format!("/proc/{}", std::process::id());
    let users = all.filter(|path| {
        let texts = ["cmdline", "environ"].map(|file| std::fs::read(path.join(file)));
        path != Path::new(&own)
            && texts.iter().flatten().any(|text| String::from_utf8_lossy(text).contains(name))
    });
    users.map(|path| path.display().to_string()).collect()
}

/// Returns loop devices with a backing file in this folder.
fn loop_devices(folder: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices
        .filter_map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| file.contains(folder.to_str().unwrap())).collect()
}

fn expect_nothing_of(folder: &Path) {
    until("the end of all processes", || processes(folder).is_empty());
    until("the end of all loop devices", || loop_devices(folder).is_empty());
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    assert_interrupted("x11");
}

#[test]
fn an_interrupt_leaves_nothing_behind_under_wayland() {
    assert_interrupted("wayland");
}

fn assert_interrupted(display: &str) {
    let folder = TempDir::new().unwrap();
    let mut program = start_io_demo(folder.path(), display);
    assert!(processes(folder.path()).len() >= 8, "{:?}", processes(folder.path()));
    program.signal(Signal::INT);
    assert_eq!(program.wait().code(), Some(2));
    expect_nothing_of(folder.path());
    let left = std::fs::read_dir(folder.path()).unwrap().flatten();
    assert_eq!(left.map(|entry| entry.file_name()).collect::<Vec<_>>(), ["state"]);
}

#[test]
fn even_a_killed_demonstration_leaves_no_process() {
    assert_killed("x11");
}

#[test]
fn even_a_killed_demonstration_leaves_no_process_under_wayland() {
    assert_killed("wayland");
}

fn assert_killed(display: &str) {
    let folder = TempDir::new().unwrap();
    let mut program = start_io_demo(folder.path(), display);
    program.signal(Signal::KILL);
    program.wait();
    expect_nothing_of(folder.path());
}
