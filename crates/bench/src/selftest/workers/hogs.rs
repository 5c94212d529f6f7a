// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that do nothing but compute.

use super::work::{compute, compute_until, limit_life, millis, number};
use crate::worker::say_ready;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal};
use std::io::Error;
use std::time::{Duration, Instant};

/// Processes at a time, at most.
const COUNT_MAX: u64 = 64;
/// From the start of the processes until each has had its turns.
const SETTLING: Duration = Duration::from_millis(100);
/// Their priority: each is worth six of the usual processes, all eight about fifty.
const NICE: i32 = -8;
/// The priority of their session where the kernel shares out CPU time by session: worth about as much.
const SESSION_NICE: &str = "-17";

/// `hogs COUNT MS`: processes that compute for a time; tells their ids.
///
/// They have a session of their own, which one of them leads: a priority by session is theirs alone.
pub(super) fn hogs(words: &[&str]) -> Result<()> {
    limit_life();
    let (count, end) = (number(words, 0)?.min(COUNT_MAX), Instant::now() + millis(words, 1)?);
    let leader = fork(|| lead(count, end))?;
    rustix::process::waitpid(Some(leader), WaitOptions::empty()).context("cannot wait for the processes")?;
    Ok(())
}

/// `neighbour MS`: a process of ordinary priority that computes for a time, in a session of its own: where
/// the kernel shares out CPU time by session, it has as much of a CPU as all of another session together.
pub(super) fn neighbour(words: &[&str]) -> Result<()> {
    limit_life();
    let end = Instant::now() + millis(words, 0)?;
    let child = fork(|| {
        rustix::process::setsid().context("cannot make a session")?;
        compute(SETTLING);
        say_ready("")?;
        compute_until(end);
        Ok(())
    })?;
    rustix::process::waitpid(Some(child), WaitOptions::empty()).context("cannot wait for the process")?;
    Ok(())
}

/// The life of the first.
fn lead(count: u64, end: Instant) -> Result<()> {
    rustix::process::setsid().context("cannot make a session")?;
    rustix::process::setpriority_process(None, NICE).context("cannot raise the priority")?;
    // Where the kernel does not share out by session there is no such file, and none is needed.
    let _ = std::fs::write("/proc/self/autogroup", SESSION_NICE);
    let mut pids = vec![std::process::id().to_string()];
    for _ in 1..count {
        let hog = fork(|| {
            compute_until(end);
            Ok(())
        })?;
        pids.push(hog.as_raw_nonzero().to_string());
    }
    compute(SETTLING);
    say_ready(&pids.join(" "))?;
    compute_until(end);
    Ok(())
}

/// Starts a process that goes on with `life`, ends when that or its parent does, and lives no longer than others.
fn fork(life: impl FnOnce() -> Result<()>) -> Result<Pid> {
    // SAFETY: this process has one thread, so the child may go on as its parent would.
    let child = unsafe { libc::fork() };
    if child != 0 {
        return Pid::from_raw(child.max(0)).with_context(|| format!("cannot fork: {}", Error::last_os_error()));
    }
    limit_life();
    let lived = set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into).and_then(|()| life());
    if let Err(error) = &lived {
        eprintln!("{error:#}");
    }
    std::process::exit(i32::from(lived.is_err()))
}

/// `compute MS`: a program that computes, and ends.
pub(super) fn compute_once(words: &[&str]) -> Result<()> {
    limit_life();
    compute(millis(words, 0)?);
    Ok(())
}
