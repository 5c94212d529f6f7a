// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known culprit: a thread that takes a CPU by its priority, at regular times.

use super::policy::SchedPolicy;
use super::sleeper::sleep_until;
use crate::cpu_work::spin_for;
use crate::worker::{number, say_ready};
use anyhow::{Context, Result};
use std::time::Duration;
use tipme_desktop::clock;

/// Name of the thread, which appears in every record of it.
const NAME: &std::ffi::CStr = c"timer-culprit";
/// Maximum length of a burn: below the kernel's limit for real-time threads per second.
const BURN_MAX: Duration = Duration::from_millis(500);
/// Maximum lifetime.
const LIFE_MAX: Duration = Duration::from_secs(300);

/// `timer-culprit PERIOD_MS BURN_MS COUNT PRIORITY`: computes for BURN_MS, COUNT times, once a
/// period. Reports `ready` before the first period.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (period_ms, count): (u64, u32) = (number(words, 0)?, number(words, 2)?);
    let period = Duration::from_millis(period_ms.clamp(1, LIFE_MAX.as_millis() as u64));
    let burn = Duration::from_millis(number(words, 1)?).min(BURN_MAX).min(period);
    let life = (period * count.saturating_add(1)).min(LIFE_MAX);
    // SAFETY: the call sets a timer of this process and touches no memory.
    unsafe { libc::alarm(life.as_secs() as u32 + 2) };
    rustix::thread::set_name(NAME).context("cannot name the thread")?;
    SchedPolicy::Fifo(number::<u8>(words, 3)?.clamp(1, 99)).apply()?;
    say_ready("")?;
    let begin = clock::now().0;
    for turn in 1..=count.into() {
        sleep_until(begin + turn * period.as_nanos() as u64);
        spin_for(burn);
    }
    Ok(())
}
