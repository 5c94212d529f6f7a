// SPDX-License-Identifier: MIT OR Apache-2.0
//! A known culprit: a thread that takes a CPU by its priority, at regular times.

use super::policy::SchedPolicy;
use super::sleeper::sleep_until;
use anyhow::{Context, Result};
use std::io::Write;
use std::time::{Duration, Instant};
use tipme_desktop::clock;

/// The name of the thread, which every record of it carries.
const NAME: &std::ffi::CStr = c"timer-culprit";
/// The longest turn: less than what the kernel gives to real-time threads of each second.
const BURN_MAX: Duration = Duration::from_millis(500);
/// The longest life, whatever is asked for.
const LIFE_MAX: Duration = Duration::from_secs(300);

/// `timer-culprit PERIOD_MS BURN_MS COUNT PRIORITY`: computes for a time, as often as it is told, each time a
/// period after the last. Says `ready` before the first period.
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
