// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known culprit: a thread that takes a CPU by its priority, at regular times.

use super::policy::SchedPolicy;
use super::sleeper::sleep_until;
use anyhow::{Context, Result};
use std::io::Write;
use std::time::{Duration, Instant};
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
    let number = |at: usize| {
        let text = words.get(at).with_context(|| format!("word {} is missing", at + 1))?;
        text.parse::<u64>().with_context(|| format!("invalid number \"{text}\""))
    };
    let period = Duration::from_millis(number(0)?.clamp(1, LIFE_MAX.as_millis() as u64));
    let burn = Duration::from_millis(number(1)?).min(BURN_MAX).min(period);
    let life = (period * u32::try_from(number(2)?)?.saturating_add(1)).min(LIFE_MAX);
    // SAFETY: the call sets a timer of this process and touches no memory.
    unsafe { libc::alarm(life.as_secs() as u32 + 2) };
    rustix::thread::set_name(NAME).context("cannot name the thread")?;
    SchedPolicy::Fifo(u8::try_from(number(3)?.clamp(1, 99))?).apply()?;
    println!("ready");
    std::io::stdout().flush().context("cannot say that the culprit is in place")?;
    let begin = clock::now().0;
    for turn in 1..=number(2)? {
        sleep_until(begin + turn * period.as_nanos() as u64);
        compute(burn);
    }
    Ok(())
}

fn compute(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}
