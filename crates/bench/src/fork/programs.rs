// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes of the fork benchmark: one that works a little now and then, and the loads beside it.

use super::options::ForkLoad;
use crate::cpu_work::{cpu_time, spin};
use crate::intervals::ProcessStamps;
use crate::memory::fork;
use crate::priority::set_policy;
use crate::worker::{number, say_ready, word};
use anyhow::{Context, Error, Result, bail};
use clap::ValueEnum;
use fastrand::Rng;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait, waitpid};
use std::time::{Duration, Instant};

/// CPU time of the measuring process in each interval.
pub(super) const WORK: Duration = Duration::from_millis(10);
pub(super) const SLEEP: Duration = Duration::from_millis(50);
/// Rounds of arithmetic that measure the speed of the CPU.
const TRIED_ROUNDS: u64 = 200_000;
const TRIES: usize = 10;
/// Parts of the work, with a check of the CPU clock after each.
const PARTS: u32 = 100;
/// Number of concurrent children of a storm, as with `make -j4`, and of a wide one.
const STORM_WIDTH: usize = 4;
const WIDE: usize = 16;
/// Nice value of the favoured load.
const FAVOURED: i32 = -10;
/// Lowest real-time priority, which is above all other policies.
const REALTIME_PRIORITY: i32 = 1;
/// CPU time of a child of a storm, in milliseconds: the minimum, and the range of the random part.
const STORM_LEAST_MS: u64 = 5;
const STORM_MORE_MS: u64 = 60;

/// `fork-timer STAMPS COUNT MS`: sleeps for 50 ms, computes for 10 ms of CPU time, and records a
/// time stamp.
pub(crate) fn timer(words: &[&str]) -> Result<()> {
    let rounds = calibrated(WORK / PARTS);
    let stamps = ProcessStamps::begin(words, 0)?;
    stamps.repeat(|_| {
        std::thread::sleep(SLEEP);
        compute_for(WORK, rounds);
    });
    Ok(())
}

/// `fork-load LOAD MS SECONDS`: a load that forks a child every MS milliseconds, if it has
/// children. Each process ends after SECONDS of CPU time at the latest.
pub(crate) fn load(words: &[&str]) -> Result<()> {
    let (every, life) = (Duration::from_millis(number(words, 1)?), number(words, 2)?);
    match ForkLoad::from_str(word(words, 0)?, false).map_err(Error::msg)? {
        ForkLoad::None => bail!("the load \"none\" has no processes"),
        ForkLoad::Hog => hogs(1, life),
        ForkLoad::Fork => one_after_the_other(every, life),
        ForkLoad::Storm => storm(STORM_WIDTH, life, as_it_is),
        ForkLoad::Crowd => hogs(WIDE, life),
        ForkLoad::Wide | ForkLoad::Container => storm(WIDE, life, as_it_is),
        ForkLoad::Sessions => storm(WIDE, life, in_own_session),
        ForkLoad::Nice => storm(WIDE, life, favoured),
        ForkLoad::Realtime => storm(STORM_WIDTH, life, realtime),
    }
}

fn as_it_is() -> Result<()> {
    Ok(())
}

fn in_own_session() -> Result<()> {
    rustix::process::setsid().context("cannot begin a session")?;
    Ok(())
}

fn favoured() -> Result<()> {
    rustix::process::setpriority_process(None, FAVOURED).context("cannot lower the nice value")
}

fn realtime() -> Result<()> {
    set_policy(libc::SCHED_RR, REALTIME_PRIORITY).context("cannot use a real-time policy")
}

/// Forks processes that compute for ever.
fn hogs(count: usize, life: u64) -> Result<()> {
    for _ in 0..count {
        fork(life, "hog", compute_for_ever)?;
    }
    say_ready("")?;
    wait(WaitOptions::empty()).context("cannot wait for the hogs")?;
    Ok(())
}

/// Forks a child that computes for ever; after each interval kills it and forks the next one.
fn one_after_the_other(every: Duration, life: u64) -> Result<()> {
    let mut child = fork(life, "newborn", compute_for_ever)?;
    say_ready("")?;
    loop {
        std::thread::sleep(every);
        kill(child);
        child = fork(life, "newborn", compute_for_ever)?;
    }
}

fn kill(child: Pid) {
    let _ = kill_process(child, Signal::KILL);
    let _ = waitpid(Some(child), WaitOptions::empty());
}

/// Keeps some children at a time, as in a build. Each calls `first`, then computes for a short
/// time.
fn storm(width: usize, life: u64, first: fn() -> Result<()>) -> Result<()> {
    let (mut random, mut started) = (Rng::with_seed(1), 0);
    loop {
        let time = Duration::from_millis(STORM_LEAST_MS + random.u64(..STORM_MORE_MS));
        fork(life, "compiler", || {
            first()?;
            compute_for(time, TRIED_ROUNDS);
            Ok(())
        })?;
        started += 1;
        if started == width {
            say_ready("")?;
        }
        if started >= width {
            wait(WaitOptions::empty()).context("no child to wait for")?;
        }
    }
}

/// Computes until this thread has used `time` of CPU time, with a check after some rounds.
fn compute_for(time: Duration, rounds: u64) {
    let end = cpu_time() + time;
    while cpu_time() < end {
        spin(rounds);
    }
}

fn compute_for_ever() -> Result<()> {
    loop {
        spin(TRIED_ROUNDS);
    }
}

/// Returns the number of rounds that take `time` on this CPU; at least one.
fn calibrated(time: Duration) -> u64 {
    let tries = (0..TRIES).map(|_| {
        let begun = Instant::now();
        spin(TRIED_ROUNDS);
        begun.elapsed()
    });
    let least = tries.min().unwrap_or_default().as_nanos().max(1);
    (u128::from(TRIED_ROUNDS) * time.as_nanos() / least).clamp(1, u128::from(u32::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_time_is_twice_the_rounds() {
        assert!(calibrated(Duration::from_millis(1)) > 1);
        assert_eq!(calibrated(Duration::ZERO), 1);
    }

    #[test]
    fn an_unknown_load_is_refused() {
        assert!(load(&["gremlins", "1", "1"]).is_err() && load(&["none", "1", "1"]).is_err());
        assert!(load(&["hog"]).is_err() && timer(&[]).is_err());
    }
}
