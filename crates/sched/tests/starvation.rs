// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing starves: beside busy focused processes, one of the rest keeps its CPU share.
//!
//! All processes of a test share one CPU, and the tests use different ones. The window is ten
//! seconds of their total CPU time instead of wall time, so other load on the machine only prolongs
//! the test.

mod support;

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use support::{Fixture, Started, assign, own_session, quiet};
use tipme_policy::{Backend, Role, Strength};

/// CPU time of a window, in clock ticks of 10 ms.
const WINDOW_TICKS: u64 = 1_000;
/// Minimum share of one CPU for the rest.
const SHARE_MIN: f64 = 0.01;

/// Returns the first and the last CPU that this process may use.
fn cpus() -> [usize; 2] {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let first = cpus.next().unwrap();
    [first, cpus.next_back().unwrap_or(first)]
}

/// Starts a busy loop on this CPU, in a session of its own or in that of the test.
fn spinner(alone: bool, cpu: usize) -> Started {
    let mut command = Command::new("sh");
    quiet(command.args(["-c", "while :; do :; done"]));
    // SAFETY: the call is safe between fork and exec; the set is a plain value.
    unsafe {
        command.pre_exec(move || {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
            Ok(())
        });
    }
    Started::new(if alone { own_session(&mut command) } else { &mut command })
}

/// Returns the last process's share of the CPU time of all processes in one window.
fn share(processes: &[Started]) -> f64 {
    let before: Vec<u64> = processes.iter().map(|process| process.stat().ticks).collect();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = processes.iter().map(|process| process.stat().ticks);
        let had: Vec<u64> = now.zip(&before).map(|(now, before)| now - before).collect();
        let all: u64 = had.iter().sum();
        if all >= WINDOW_TICKS {
            return had[had.len() - 1] as f64 / all as f64;
        }
    }
}

fn check(backend: Backend, alone: bool, cpu: usize) {
    let processes: Vec<Started> = (0..3).map(|_| spinner(alone, cpu)).collect();
    let mut fixture = Fixture::new(backend);
    fixture.config.strength = Strength::Strong;
    let (mut mechanism, _) = fixture.open();
    let roles = [Role::Focused, Role::Focused, Role::Rest];
    let actions: Vec<_> =
        roles.iter().zip(&processes).map(|(role, process)| assign(*role, &[process.who])).collect();
    let applied = mechanism.apply(&actions);
    assert!(applied.changed >= 2, "{applied:?}");
    let share = share(&processes);
    assert!((SHARE_MIN..0.25).contains(&share), "{backend:?}: the rest had {:.2}%", share * 100.0);
}

#[test]
fn the_rest_keeps_its_share_under_nice() {
    // One session, since with autogroup nice values count within a session only.
    check(Backend::Nice, false, cpus()[0]);
}

#[test]
fn the_rest_keeps_its_share_under_autogroup() {
    check(Backend::Autogroup, true, cpus()[1]);
}
