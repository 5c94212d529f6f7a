// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each wait delays the application on a terminal as it should, names who did it, and leaves nothing behind.
//!
//! Without a display: the terminal's other end is held here. Needs root for the name spaces.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_bench::alone::MachineLock;
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::process::ProcessGroup;
use tipme_bench::selftest::{App, DisplayServer, Fault, InjectedCause, InjectedCauses, Site, faults};
use tipme_bench::worker::WorkerLauncher;

/// How long a program may take to be there.
const TIMEOUT: Duration = Duration::from_secs(10);

fn launcher() -> WorkerLauncher {
    WorkerLauncher(vec![env!("CARGO_BIN_EXE_tipme-worker").into()])
}

/// Both ends of a new terminal.
fn terminal() -> (File, OwnedFd) {
    let (mut outer, mut inner) = (-1, -1);
    let nothing = std::ptr::null_mut();
    // SAFETY: the call writes two numbers, and the other arguments ask for nothing.
    let made = unsafe { libc::openpty(&mut outer, &mut inner, nothing, std::ptr::null(), std::ptr::null()) };
    assert_eq!(made, 0, "no terminal can be made");
    // SAFETY: both were opened just now and belong to nobody else.
    unsafe { (File::from_raw_fd(outer), OwnedFd::from_raw_fd(inner)) }
}

/// The application, with a folder and the terminal's other end.
struct Patient {
    process: ProcessGroup,
    keyboard: File,
    folder: TempDir,
}

impl Patient {
    fn start() -> Patient {
        let folder = tempfile::tempdir().expect("a folder");
        let (keyboard, inner) = terminal();
        let words = ["tty-patient".into(), folder.path().into()];
        let mut command: Command = launcher().command(None, &words).expect("a command");
        command.stdin(inner.try_clone().expect("a second one")).stdout(inner);
        let process = ProcessGroup::start("tty-patient", command, None).expect("it starts");
        let deadline = Instant::now() + TIMEOUT;
        while !folder.path().join("ready").exists() {
            assert!(Instant::now() < deadline, "it is not ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        Patient { process, keyboard, folder }
    }

    /// How long a key takes to be echoed.
    fn key(&mut self) -> Duration {
        let begun = Instant::now();
        self.keyboard.write_all(b"x").expect("a key");
        self.keyboard.read_exact(&mut [0]).expect("an echo");
        begun.elapsed()
    }
}

/// What a fault is said to have done, and how long the key took.
fn suffer(fault: &Fault) -> (InjectedCauses, f64) {
    let mut patient = Patient::start();
    let folder = patient.folder.path().to_path_buf();
    let display = DisplayServer::X11 { number: 0, authority: PathBuf::new() };
    let site = Site { folder: folder.clone(), display, cpu: last_cpu(), launcher: launcher() };
    let mut injection = (fault.prepare)(&site).expect("it is prepared");
    let calm = (0..5).map(|_| patient.key()).min();
    assert!(calm < Some(Duration::from_millis(250)), "{}: each key is slow before anything was done", fault.name);
    injection.begin(patient.process.pid()).expect("it begins");
    let took = patient.key().as_secs_f64() * 1e3;
    let failure = std::fs::read_to_string(folder.join("failure")).unwrap_or_default();
    assert_eq!(failure, "", "{}", fault.name);
    (injection.end().expect("it ends"), took)
}

fn last_cpu() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).expect("a set of CPUs");
    (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu)).expect("one of them")
}

/// Neither gone nor only not yet waited for by whoever inherited it.
fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// True when all have ended within a second: what dies with another one does so just after it.
fn gone(pids: &[u32]) -> bool {
    let deadline = Instant::now() + Duration::from_secs(1);
    while pids.iter().any(|pid| alive(*pid)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    !pids.iter().any(|pid| alive(*pid))
}

fn check(names: &[&str]) {
    let _alone = MachineLock::wait(&InterruptFlag::default(), || ()).expect("nobody else disturbs the machine");
    for name in names {
        let fault = faults::all().find(|fault| fault.name == *name).expect("a fault of this name");
        assert!(fault.apps.contains(&App::Xterm), "{name} is for applications that take orders");
        let (injected, took) = suffer(fault);
        println!("{}: the key took {took:.0} ms; {injected:?}", fault.name);
        assert_eq!(injected.causes.len(), fault.kinds.len(), "{}", fault.name);
        let told: f64 = injected.causes.iter().filter_map(|cause| cause.ms).sum();
        assert!(told >= 300.0, "{}: {told} ms", fault.name);
        assert!(told <= took && took * 0.7 < told, "{}: {told} of {took} ms", fault.name);
        for InjectedCause { pids, .. } in &injected.causes {
            assert!(!pids.is_empty(), "{}", fault.name);
            assert!(gone(pids), "{} left something behind: {pids:?}", fault.name);
        }
    }
}

#[test]
fn waits_for_locks_are_as_told() {
    check(&[
        "mutex-asleep",
        "rwlock-writer-waits",
        "condition-late",
        "semaphore-process",
        "file-lock",
        "record-lock",
        "pool-busy",
    ]);
}

#[test]
fn waits_for_others_are_as_told() {
    check(&[
        "slow-helper",
        "sleeping-helper",
        "helper-chain",
        "contained-helper",
        "full-pipe",
        "empty-pipe",
        "event-counter",
        "message-bus",
        "loopback-service",
        "child-wait",
        "child-computes",
    ]);
}

#[test]
fn waits_for_a_processor_are_as_told() {
    check(&["mutex-starved", "helper-starved"]);
}

#[test]
fn waits_of_its_own_are_as_told() {
    check(&["own-sleep", "own-computation", "poll-timeout"]);
}

#[test]
fn pairs_are_as_told() {
    check(&[
        "pair-computation-child",
        "pair-lock-helper",
        "pair-sleep-computation",
        "pair-mutex-helper",
        "pair-lock-child",
        "pair-service-computation",
        "pair-pipe-sleep",
    ]);
}

/// The job stops the process that takes the keys, whoever it was told of.
#[test]
fn a_stopped_application_goes_on() {
    let _alone = MachineLock::wait(&InterruptFlag::default(), || ()).expect("nobody else disturbs the machine");
    let fault = faults::all().find(|fault| fault.name == "stopped").expect("it is known");
    let (injected, took) = suffer(fault);
    assert!((300.0..3000.0).contains(&took), "{took} ms");
    let [InjectedCause { pids, ms: None, .. }] = &injected.causes[..] else { panic!("{injected:?}") };
    assert!(pids.len() == 1 && gone(pids), "{pids:?}");
}
