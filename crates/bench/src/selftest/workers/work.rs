// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs of the self-test have in common: their words, their time limit, and ways to be busy.

use crate::cpu_work::{cpu_time, spin};
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

/// The longest that one process waits for another's bytes.
pub(in crate::selftest) const TIMEOUT: Duration = Duration::from_secs(8);

/// Seconds after which the kernel ends a program, whatever it waits for.
const LIFE_S: u32 = 15;
/// The longest time that may be asked for, in milliseconds: shorter than a program's life.
const MILLIS_MAX: u64 = 10_000;
/// Rounds of arithmetic between two looks at the clock: some tenths of a millisecond.
const ROUNDS: u64 = 100_000;
/// How long CPU time is waited for that a starved thread does not get.
const STARVED_MAX: Duration = Duration::from_secs(4);

/// Makes sure that this process ends by itself.
pub(super) fn limit_life() {
    // SAFETY: the call sets a timer of this process and touches no memory.
    unsafe { libc::alarm(LIFE_S) };
}

/// The word at a place.
pub(in crate::selftest) fn word<'a>(words: &[&'a str], at: usize) -> Result<&'a str> {
    words.get(at).copied().with_context(|| format!("word {} is missing", at + 1))
}

/// The number at a place.
pub(in crate::selftest) fn number(words: &[&str], at: usize) -> Result<u64> {
    let text = word(words, at)?;
    text.parse().with_context(|| format!("invalid number \"{text}\""))
}

/// The milliseconds at a place, at most ten seconds.
pub(in crate::selftest) fn millis(words: &[&str], at: usize) -> Result<Duration> {
    number(words, at).map(|number| Duration::from_millis(number.min(MILLIS_MAX)))
}

/// Keeps a CPU busy until a time; part of its caller, so that samples name that.
#[inline(always)]
pub(in crate::selftest) fn compute_until(end: Instant) {
    while Instant::now() < end {
        spin(ROUNDS);
    }
}

/// Keeps a CPU busy for a time.
pub(in crate::selftest) fn compute(time: Duration) {
    compute_until(Instant::now() + time);
}

/// Computes until this thread has had as much CPU time, or has waited four seconds for it.
pub(in crate::selftest) fn use_cpu_time(time: Duration) {
    let (end, begun) = (cpu_time() + time, Instant::now());
    while cpu_time() < end && begun.elapsed() < STARVED_MAX {
        spin(ROUNDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_with_their_limits() {
        assert_eq!(millis(&["a", "700"], 1).expect("a number"), Duration::from_millis(700));
        assert_eq!(millis(&["999999999"], 0).expect("a number"), Duration::from_secs(10));
        assert_eq!(number(&["a"], 0).expect_err("no number").to_string(), "invalid number \"a\"");
        assert_eq!(word(&["a"], 1).expect_err("one word").to_string(), "word 2 is missing");
    }

    #[test]
    fn cpu_time_is_what_was_computed() {
        let (begun, before) = (Instant::now(), cpu_time());
        use_cpu_time(Duration::from_millis(20));
        assert!(cpu_time() - before >= Duration::from_millis(20) || begun.elapsed() >= STARVED_MAX);
    }
}
