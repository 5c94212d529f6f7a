// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each fault delays the terminal as it should, and leaves nothing behind. Needs root for the disk.

use std::time::Duration;
use tipme_bench::Session;
use tipme_bench::alone::Alone;
use tipme_bench::faults::{Fault, Job};
use tipme_bench::interrupt::Interrupt;
use tipme_bench::job::Helper;
use tipme_bench::seen::{Seen, latencies};
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::Nanos;

fn helper() -> Helper {
    Helper(vec![env!("CARGO_BIN_EXE_tipme-job").into()])
}

struct Measured {
    calm_ms: Vec<f64>,
    fault_ms: Vec<f64>,
    job: Option<u32>,
    pids: usize,
}

fn millis(presses: &[Nanos], drawn: &[Nanos]) -> Vec<f64> {
    let mut times: Vec<f64> = latencies(presses, drawn).into_iter().flatten().map(Nanos::millis).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn shot(session: &Session, name: &str) {
    let Some(folder) = std::env::var_os("TIPME_SHOTS") else { return };
    let path = std::path::Path::new(&folder).join(format!("{name}.xwd"));
    let mut command = std::process::Command::new("xwd");
    command.args(["-root", "-silent", "-out"]).arg(path);
    session.prepare(&mut command);
    let status = command.status().expect("xwd runs");
    assert!(status.success());
}

/// Types 20 calm keys, then 20 under the fault.
fn measure(fault: Fault) -> Measured {
    let _alone = Alone::wait(&Interrupt::default(), || ()).expect("nobody else disturbs the machine");
    let mut session = Session::start(fault.options()).expect("a session");
    let mut scenario = fault.prepare(&session, &helper()).expect("a prepared fault");
    session.open_terminal(&scenario.prefix(), &scenario.program()).expect("a terminal");
    let mut typist = Typist::open(&session.target(), Pace::default()).expect("a typist");
    let seen = Seen::start(&session, Duration::from_millis(500)).expect("the terminal can be watched");
    let calm = type_some(&mut typist, scenario.keys(), &mut None);
    shot(&session, &format!("{}-calm", fault.name()));
    let mut job = scenario.inject().expect("the fault begins");
    let slow = type_some(&mut typist, scenario.keys(), &mut job);
    std::thread::sleep(Duration::from_secs(3));
    let drawn = seen.finish().expect("drawings");
    shot(&session, &format!("{}-fault", fault.name()));
    let measured = Measured {
        calm_ms: millis(&calm, &drawn),
        fault_ms: millis(&slow, &drawn),
        job: job.as_ref().map(Job::root),
        pids: job.as_ref().map_or(0, |job| job.pids().len()),
    };
    println!("{}: calm {:.1?} fault {:.1?} pids {}", fault.name(), measured.calm_ms, measured.fault_ms, measured.pids);
    measured
}

fn type_some(typist: &mut Typist, keys: &str, job: &mut Option<Job>) -> Vec<Nanos> {
    let mut presses = Vec::new();
    for key in keys.chars().cycle().take(20) {
        presses.push(typist.key(key).expect("a key"));
        if let Some(job) = job {
            job.observe();
        }
    }
    presses
}

fn median(times: &[f64]) -> f64 {
    times[times.len() / 2]
}

fn max(times: &[f64]) -> f64 {
    times.last().copied().unwrap_or_default()
}

fn gone(group: Option<u32>) -> bool {
    group.is_none_or(|group| tipme_bench::process::group_members(group).is_empty())
}

#[test]
fn a_storm_of_processes_delays_the_echo() {
    let measured = measure(Fault::Cpu);
    assert!(median(&measured.calm_ms) < 20.0);
    assert!(max(&measured.fault_ms) > 100.0);
    assert!(measured.pids > 20);
    assert!(gone(measured.job));
}

#[test]
fn a_full_queue_delays_the_reading() {
    let measured = measure(Fault::Io);
    assert!(median(&measured.calm_ms) < 40.0);
    assert!(max(&measured.fault_ms) > 500.0);
    assert!(gone(measured.job));
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    assert!(!mounts.contains("tipme-session"), "{mounts}");
}

#[test]
fn a_held_lock_delays_the_echo() {
    let measured = measure(Fault::Lock);
    assert!(median(&measured.calm_ms) < 30.0);
    assert!((1000.0..2000.0).contains(&max(&measured.fault_ms)));
    assert!(gone(measured.job));
}

#[test]
fn without_a_fault_nothing_is_slow() {
    let measured = measure(Fault::Calm);
    assert!(median(&measured.calm_ms) < 20.0);
    assert_eq!(measured.job, None);
}
