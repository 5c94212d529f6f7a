// SPDX-License-Identifier: MIT OR Apache-2.0
//! The demonstration, as a user runs it. Needs root.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::compositor::Compositor;
use support::{lab, schema};
use tempfile::TempDir;
use tipme_bench::ProgressListener;
use tipme_bench::demo::{self, DemoOptions};
use tipme_bench::faults::Fault;
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::screen::Place;
use tipme_bench::worker::WorkerLauncher;

fn assert_named(fault: &str, display: &str) {
    let folder = TempDir::new().unwrap();
    let mut command = lab();
    command
        .args(["demo", "--fault", fault, "--display", display, "--json", "--state-dir"])
        .arg(folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let outcome: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(output.status.success(), "{}\n{}", outcome["why"], outcome["verdict"]);
    schema::assert_fits("demo", &outcome);
    assert_eq!(
        (&outcome["schema"], &outcome["fault"], &outcome["ok"]),
        (&1.into(), &fault.into(), &true.into())
    );
    let injected = &outcome["injected"];
    assert!(
        injected["pids"]
            .as_array()
            .unwrap()
            .contains(&outcome["verdict"]["findings"][0]["culprit"]["pid"])
    );
    assert!(injected["fault_ms_max"].as_f64() > injected["calm_ms_max"].as_f64(), "{injected}");
    assert!(Path::new(outcome["incident"].as_str().unwrap()).starts_with(folder.path()));
    assert!(said.contains("demo: calm typing 1/8 s\n"), "{said}");
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
    let output = lab().args(["demo", "--display", "wayland-4711"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let error = "tipme: wayland-4711: no compositor with this name is running; \
                 tipme status lists those that are\n";
    assert!(said.ends_with(error), "{said}");
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
///
/// The error output must stay open for as long as the child runs.
fn start_io_demo(folder: &Path, display: &str) -> (Child, impl Iterator<Item = String>) {
    let mut command = lab();
    command
        .args(["demo", "--fault", "io", "--display", display, "--state-dir"])
        .arg(folder.join("state"));
    command.env("TMPDIR", folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let begun = lines.any(|line| line.starts_with("demo: the fault begins"));
    assert!(begun, "the demonstration ended early");
    (child, lines)
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
    users
        .map(|path| {
            format!(
                "{} {}",
                path.display(),
                std::fs::read_to_string(path.join("comm")).unwrap_or_default()
            )
        })
        .collect()
}

/// Returns loop devices with a backing file in this folder.
fn loop_devices(folder: &Path) -> Vec<String> {
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let files = devices
        .filter_map(|device| std::fs::read_to_string(device.path().join("loop/backing_file")).ok());
    files.filter(|file| file.contains(folder.to_str().unwrap())).collect()
}

fn assert_gone(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let left = [processes(folder), loop_devices(folder)].concat();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
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
    let (mut child, _lines) = start_io_demo(folder.path(), display);
    assert!(processes(folder.path()).len() >= 8, "{:?}", processes(folder.path()));
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_gone(folder.path());
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["state"]);
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
    let (mut child, _lines) = start_io_demo(folder.path(), display);
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    assert_gone(folder.path());
}
