// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that take a CPU by their priority.

use super::work::{compute, limit_life, millis, number, word};
use crate::worker::say_ready;
use anyhow::{Context, Result, bail};
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use std::fs::File;
use std::io::Read;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_record::Nanos;

/// In the middle of the real-time priorities.
const PRIORITY: i32 = 50;
/// The longest turn: less than what the kernel gives to real-time processes of each second.
const TURN_MAX: Duration = Duration::from_millis(900);
/// Turns at most.
const TURNS_MAX: u64 = 20;

/// Asks for a real-time priority.
fn hurry() -> Result<()> {
    let priority = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the call reads one structure that lives until it returns.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) } != 0 {
        bail!("no real-time priority: {}; this needs root", std::io::Error::last_os_error());
    }
    Ok(())
}

/// `realtime-hog PIPE MS`: computes for a time, once, as soon as a byte comes through the pipe.
pub(super) fn once(words: &[&str]) -> Result<()> {
    limit_life();
    let (path, time) = (word(words, 0)?, millis(words, 1)?.min(TURN_MAX));
    // Open for both directions it is open at once, and no end of it is the last one.
    let pipe = File::options().read(true).write(true).open(path);
    let mut pipe = pipe.with_context(|| format!("cannot open {path}"))?;
    hurry()?;
    say_ready("")?;
    pipe.read_exact(&mut [0])?;
    compute(time);
    Ok(())
}

/// `realtime-turns FIRST_NS PERIOD_MS MS COUNT`: computes for a time again and again, first at a given time.
pub(super) fn turns(words: &[&str]) -> Result<()> {
    limit_life();
    let (first, period, time) = (Nanos(number(words, 0)?), millis(words, 1)?, millis(words, 2)?.min(TURN_MAX));
    let count = number(words, 3)?.min(TURNS_MAX);
    hurry()?;
    say_ready("")?;
    for turn in 0..count {
        sleep_until(Nanos(first.0 + turn * period.as_nanos() as u64));
        compute(time);
    }
    Ok(())
}

/// Sleeps until a time on the product's clock.
pub(in crate::selftest) fn sleep_until(at: Nanos) {
    let time = Timespec { tv_sec: (at.0 / 1_000_000_000) as i64, tv_nsec: (at.0 % 1_000_000_000) as i64 };
    while clock::now() < at {
        // A signal cuts the sleep short.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
    }
}
