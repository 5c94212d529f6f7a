// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keystroke-to-echo latency in a terminal beside a load.
//!
//! The steady typing of Evans et al. (1993, section 5.2): keys at a person's pace go into a terminal, whose program
//! answers each with its letter. Display server, terminal and program are started like any others, and favoured only by
//! what the arm does; who presses the keys and watches the screen has real-time priority where that is allowed. The next
//! key is pressed once the one before is on the screen, as somebody does who looks there: so a long stall counts once,
//! and a drawing is taken for the answer to another key only behind a key that was given up.

use crate::arms::{Cell, Comparison, all_turns};
use crate::estimate::Estimate;
use crate::interrupt::Interrupt;
use crate::priority::Priority;
use crate::progress::Progress;
use crate::seen::{Seen, latencies};
use crate::session::{self, Session};
use anyhow::{Result, ensure};
use std::time::Duration;
use tipme_desktop::clock;
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::Nanos;

/// "For even a fast typist on the order of 1 char every 100 milliseconds."
const WORDS_PER_MINUTE: f64 = 120.0;
pub const INTERVAL: Duration = Duration::from_millis(100);
/// Keys of an arm, at most.
pub const KEYS_MAX: usize = 10_000;
/// Keys at the begin of a block that do not count: they wake up what has slept.
const FIRST_KEYS: usize = 3;
/// How long a key may take before it counts as not answered.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The most that a block takes beyond the time that its keys need; what is left of it is not typed.
const BLOCK_SPARE: Duration = Duration::from_secs(60);
/// The terminal has drawn nothing for so long before typing begins.
const QUIET: Duration = Duration::from_millis(200);
/// Between two looks at the screen.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const LETTERS: &str = "the quick brown fox jumps over the lazy dog";
/// A program that answers every key by itself, as editors and shells do.
const ECHO: [&str; 3] = ["sh", "-c", "stty raw -echo; exec cat"];

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    pub comparison: Comparison,
    /// Keys of each arm, over all blocks.
    pub keys: usize,
}

/// The keys of one turn.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// When each was pressed.
    pub pressed: Vec<Nanos>,
    /// How long each took; at least so long where it was not answered.
    pub latencies: Vec<Nanos>,
    /// Keys that were not answered in time.
    pub unanswered: usize,
    /// Keys that were not typed for want of time.
    pub untyped: usize,
}

impl Options {
    /// Keys of one block.
    pub fn keys_per_block(&self) -> usize {
        self.keys.div_ceil(self.comparison.blocks.max(1))
    }

    fn time_per_block(&self) -> Duration {
        INTERVAL * (self.keys_per_block() + FIRST_KEYS) as u32
    }

    /// How long all of it takes.
    pub fn estimate(&self) -> Estimate {
        let typing = self.time_per_block();
        self.comparison.estimate(Estimate::new(QUIET + typing, QUIET + typing + BLOCK_SPARE))
    }

    fn check(&self) -> Result<()> {
        ensure!((1..=KEYS_MAX).contains(&self.keys), "choose 1 to {KEYS_MAX} keys");
        self.comparison.check()
    }
}

/// Measures every turn. Everything that was started has ended when it returns.
pub fn run(options: &Options, interrupt: &Interrupt, progress: &mut dyn Progress) -> Result<Vec<Cell<Block>>> {
    options.check()?;
    let session = terminal()?;
    let mut seed = 0;
    let time = options.time_per_block() + BLOCK_SPARE;
    all_turns(&options.comparison, &session, time, interrupt, progress, &mut |_, _| {
        seed += 1;
        type_keys(&session, options.keys_per_block(), seed, time, interrupt)
    })
}

/// A display with a terminal that answers keys.
pub(crate) fn terminal() -> Result<Session> {
    session::require(&["Xvfb", "openbox", "xterm", "sh", "stty", "cat"])?;
    let mut session = Session::start(session::Options::default())?;
    session.open_terminal(&[], &ECHO.map(Into::into))?;
    Ok(session)
}

fn type_keys(session: &Session, keys: usize, seed: u64, time: Duration, interrupt: &Interrupt) -> Result<Block> {
    let pace = Pace { words_per_minute: WORDS_PER_MINUTE, seed, ..Pace::default() };
    let mut typist = Typist::open(&session.target(), pace)?;
    let _priority = Priority::realtime();
    let seen = Seen::start(session, QUIET)?;
    let end = clock::now().after(nanos(time.saturating_sub(ANSWER_TIMEOUT)));
    let mut pressed = Vec::new();
    for letter in letters().take(keys + FIRST_KEYS) {
        interrupt.check()?;
        if clock::now() >= end {
            break;
        }
        let at = typist.key(letter)?;
        await_answer(&seen, at, interrupt)?;
        pressed.push(at);
    }
    let drawn = seen.finish()?;
    Ok(block(pressed.get(FIRST_KEYS..).unwrap_or_default(), &drawn, keys))
}

/// Visible ones only: each draws something.
pub(crate) fn letters() -> impl Iterator<Item = char> {
    LETTERS.chars().filter(|letter| *letter != ' ').cycle()
}

/// Waits until something was drawn after a key; false where nothing was in time.
pub(crate) fn await_answer(seen: &Seen, at: Nanos, interrupt: &Interrupt) -> Result<bool> {
    let timeout = nanos(ANSWER_TIMEOUT);
    while !seen.answered(at) {
        if clock::now().since(at) >= timeout {
            return Ok(false);
        }
        interrupt.sleep(POLL_INTERVAL)?;
    }
    Ok(true)
}

pub(crate) fn nanos(time: Duration) -> Nanos {
    Nanos(time.as_nanos() as u64)
}

fn block(pressed: &[Nanos], drawn: &[Nanos], keys: usize) -> Block {
    let timeout = nanos(ANSWER_TIMEOUT);
    let found = latencies(pressed, drawn);
    let answers: Vec<Option<Nanos>> = found.into_iter().map(|one| one.filter(|one| *one < timeout)).collect();
    Block {
        pressed: pressed.to_vec(),
        unanswered: answers.iter().filter(|answer| answer.is_none()).count(),
        latencies: answers.into_iter().map(|answer| answer.unwrap_or(timeout)).collect(),
        untyped: keys.saturating_sub(pressed.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_counts_as_the_timeout() {
        let at = |times: &[u64]| times.iter().map(|time| Nanos::from_secs(*time)).collect::<Vec<_>>();
        let block = block(&at(&[10, 20, 50]), &at(&[11, 45]), 5);
        assert_eq!(block.latencies, at(&[1, 20, 20]));
        assert_eq!((block.unanswered, block.untyped), (2, 2));
    }

    #[test]
    fn every_letter_is_visible() {
        assert!(letters().take(100).all(|letter| letter.is_ascii_lowercase()));
    }
}
