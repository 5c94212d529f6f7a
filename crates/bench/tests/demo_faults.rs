// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each fault delays the terminal as it should, and leaves nothing behind. Needs root for the disk.
//!
//! Calm keys and keys under the fault are typed in turns, and held against each other: whatever else the machine does
//! meanwhile delays both. How slow calm keys may be follows from how late a process of the test's own answered.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tipme_bench::PrivateSession;
use tipme_bench::alone::MachineLock;
use tipme_bench::demo_faults::{DemoFault, InjectedJob};
use tipme_bench::interrupt::InterruptFlag;
use tipme_bench::seen::{DrawingWatch, latencies};
use tipme_bench::until;
use tipme_bench::worker::WorkerLauncher;
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::Nanos;

/// Turns of calm keys and keys under the fault.
const TURNS: usize = 5;
/// Keys of a turn: at a human pace they take about as long as the shortest fault.
const KEYS: usize = 8;
/// A fault makes keys slower by this factor at least, no fault by less and what the machine itself does.
const SLOWER: f64 = 3.0;
/// So many processes of a storm at least are at work before the first key is typed.
const STORM: usize = 100;
/// A terminal that has drawn nothing for so long has worked everything off.
const QUIET: Duration = Duration::from_millis(500);
/// How often the probe asks.
const PROBE_EVERY: Duration = Duration::from_millis(20);

fn launcher() -> WorkerLauncher {
    WorkerLauncher(vec![env!("CARGO_BIN_EXE_tipme-worker").into()])
}

/// How late a process answers that has nothing to do with the terminal, over and over in the same time: after a wait a
/// byte goes to it and comes back, which takes three wake-ups.
struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<f64>>,
}

impl Probe {
    fn start() -> Probe {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
        let (mut there, mut back) = (cat.stdin.take().expect("a pipe"), cat.stdout.take().expect("a pipe"));
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut late_ms = Vec::new();
            while !told.load(Ordering::Relaxed) {
                let due = Instant::now() + PROBE_EVERY;
                std::thread::sleep(PROBE_EVERY);
                there.write_all(&[0]).and_then(|()| back.read_exact(&mut [0])).expect("cat answers");
                late_ms.push(due.elapsed().as_secs_f64() * 1e3);
            }
            drop(there);
            cat.wait().expect("cat ends with its input");
            late_ms
        });
        Probe { stop, thread }
    }

    /// What each answer took, in milliseconds.
    fn finish(self) -> Vec<f64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the probe works")
    }
}

/// What was measured: of each turn all keys, since the terminal has answered them.
#[derive(Default)]
struct Measured {
    calm_ms: Vec<f64>,
    fault_ms: Vec<f64>,
    /// How late the probe's process answered while calm keys were typed.
    probe_ms: Vec<f64>,
    jobs: Vec<u32>,
}

impl Measured {
    /// By how much a key under the fault takes longer than a fault begins at: of each turn, held against the calm keys
    /// just before it, the median.
    fn excess_ms(&self) -> f64 {
        let turns = turns(&self.calm_ms).into_iter().zip(turns(&self.fault_ms));
        let excess_ms = median(turns.map(|(calm_ms, fault_ms)| fault_ms - SLOWER * calm_ms).collect());
        println!("a key takes {excess_ms:.1} ms more than {SLOWER} calm ones; late: {:.1} ms", self.late_ms());
        excess_ms
    }

    /// Whether a calm key takes no longer than its work and the machine's own lateness.
    fn calm_is_quick(&self, work_ms: f64) -> bool {
        let (taken_ms, limit_ms) = (median(turns(&self.calm_ms)), work_ms + self.late_ms());
        println!("a calm key takes {taken_ms:.1} ms, and may take {limit_ms:.1} ms");
        taken_ms < limit_ms
    }

    /// What the machine's lateness adds to a key: there are some eight wake-ups on the way to its echo. Twice that,
    /// since where wake-ups are late the work is slow.
    fn late_ms(&self) -> f64 {
        2.0 * 8.0 * mean(&self.probe_ms)
    }
}

/// The mean key of each turn: a fault may delay some keys only.
fn turns(times: &[f64]) -> Vec<f64> {
    times.chunks(KEYS).map(mean).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn shot(session: &PrivateSession, name: &str) {
    let Some(folder) = std::env::var_os("TIPME_SHOTS") else { return };
    let path = std::path::Path::new(&folder).join(format!("{name}.xwd"));
    let mut command = std::process::Command::new("xwd");
    command.args(["-root", "-silent", "-out"]).arg(path);
    session.prepare(&mut command);
    let status = command.status().expect("xwd runs");
    assert!(status.success());
}

/// Types calm keys and keys under the fault in turns.
fn measure(fault: DemoFault) -> Measured {
    let _alone = MachineLock::wait(&InterruptFlag::default(), || ()).expect("nobody else disturbs the machine");
    let mut session = PrivateSession::start(fault.options()).expect("a session");
    let mut scenario = fault.prepare(session.folder(), &launcher()).expect("a prepared fault");
    session.open_terminal(&scenario.prefix(), &scenario.program()).expect("a terminal");
    let mut typist = Typist::open(&session.target(), Pace::default()).expect("a typist");
    let seen = DrawingWatch::start(&session, QUIET).expect("the terminal can be watched");
    let mut keys = scenario.keys().chars().cycle();
    let (mut calm, mut slow, mut measured) = (Vec::new(), Vec::new(), Measured::default());
    for _ in 0..TURNS {
        let probe = Probe::start();
        calm.extend(type_some(&mut typist, &mut keys, &seen));
        measured.probe_ms.extend(probe.finish());
        shot(&session, &format!("{}-calm", fault.name()));
        let mut job = scenario.inject().expect("the fault begins");
        if fault == DemoFault::Cpu {
            until("the storm has begun", || job.as_mut().is_some_and(|job| seen_of(job) >= STORM));
        }
        slow.extend(type_some(&mut typist, &mut keys, &seen));
        shot(&session, &format!("{}-fault", fault.name()));
        measured.jobs.extend(job.as_ref().map(InjectedJob::root));
    }
    let drawn = seen.finish().expect("drawings");
    let millis = |presses: &[Nanos]| latencies(presses, &drawn).into_iter().flatten().map(Nanos::millis).collect();
    (measured.calm_ms, measured.fault_ms) = (millis(&calm), millis(&slow));
    println!("{}: calm {:.1?} fault {:.1?}", fault.name(), measured.calm_ms, measured.fault_ms);
    measured
}

/// Types the keys of a turn, and waits until the terminal has answered them all.
fn type_some(typist: &mut Typist, keys: &mut impl Iterator<Item = char>, seen: &DrawingWatch) -> Vec<Nanos> {
    let presses: Vec<Nanos> = keys.take(KEYS).map(|key| typist.key(key).expect("a key")).collect();
    until("the terminal has answered", || {
        presses.last().is_some_and(|last| seen.answered(*last)) && seen.quiet_for() >= QUIET
    });
    presses
}

/// Processes of a job that were seen so far.
fn seen_of(job: &mut InjectedJob) -> usize {
    job.observe();
    job.pids().len()
}

fn gone(jobs: &[u32]) -> bool {
    jobs.iter().all(|group| tipme_bench::process::group_members(*group).is_empty())
}

#[test]
fn a_storm_of_processes_delays_the_echo() {
    let measured = measure(DemoFault::Cpu);
    assert!(measured.calm_is_quick(20.0));
    assert!(measured.excess_ms() > 0.0);
    assert!(gone(&measured.jobs));
}

#[test]
fn a_full_queue_delays_the_reading() {
    let measured = measure(DemoFault::Io);
    assert!(measured.calm_is_quick(40.0));
    assert!(measured.excess_ms() > 0.0);
    assert!(gone(&measured.jobs));
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    assert!(!mounts.contains("tipme-session"), "{mounts}");
}

#[test]
fn a_held_lock_delays_the_echo() {
    let measured = measure(DemoFault::Lock);
    assert!(measured.calm_is_quick(30.0));
    assert!(measured.excess_ms() > 0.0);
    assert!(gone(&measured.jobs));
}

#[test]
fn without_a_fault_nothing_is_slow() {
    let measured = measure(DemoFault::Calm);
    assert!(measured.calm_is_quick(20.0));
    assert!(measured.excess_ms() < measured.late_ms());
    assert!(measured.jobs.is_empty());
}
