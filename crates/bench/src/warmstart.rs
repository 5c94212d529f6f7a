// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the first key takes after a pause, beside a load.
//!
//! The warm start of Evans et al. (1993, section 5.2): somebody types, stops for 30 seconds, and types again. Where
//! memory is short, the pages of the terminal have gone meanwhile, and the first key brings them back.

use crate::arms::{Cell, Comparison, all_turns, family};
use crate::interrupt::Interrupt;
use crate::intervals::Watch;
use crate::seen::{Seen, latencies};
use crate::session::Session;
use crate::steady::Steady;
use crate::typing::{ANSWER_PATIENCE, INTERVAL, await_answer, letters, nanos, terminal};
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::server::describe;
use tipme_record::Nanos;

/// Of the paper.
pub const PAUSE: Duration = Duration::from_secs(30);
/// The longest pause that can be chosen.
pub const PAUSE_MAX: Duration = Duration::from_secs(3_600);
/// Keys before the pause, and behind the first one after it.
const KEYS_BEFORE: usize = 20;
const KEYS_AFTER: usize = 10;
const QUIET: Duration = Duration::from_millis(200);
const WORDS_PER_MINUTE: f64 = 120.0;
/// What the load is given for the keys of a turn beyond their own pace; it runs a minute longer if nobody ends it.
const KEYS_SPARE: Duration = Duration::from_secs(640);

/// What is measured.
#[derive(Clone, Debug)]
pub struct Options {
    pub comparison: Comparison,
    pub pause: Duration,
}

/// One pause.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Warm {
    /// When the first key after it was pressed, and how long it took; at least so long where it was not answered.
    pub pressed: Nanos,
    pub first: Nanos,
    pub unanswered: bool,
    /// The keys behind it.
    pub after: Vec<Nanos>,
    /// Page faults that waited for a disk, of display server, terminal and its program, from the first key on.
    pub page_ins: u64,
}

impl Options {
    /// About how long measuring takes, and the longest that it may take.
    pub fn time(&self) -> (Duration, Duration) {
        let turns = (self.comparison.turns(0).len() * self.comparison.blocks) as u32;
        let keys = (KEYS_BEFORE + 1 + KEYS_AFTER) as u32;
        let around = self.pause + Duration::from_secs(3);
        ((around + INTERVAL * keys) * turns, (around + (INTERVAL + ANSWER_PATIENCE) * keys) * turns)
    }
}

/// One pause in every turn. Everything that was started has ended when it returns.
pub fn run(options: &Options, interrupt: &Interrupt, watch: &mut dyn Watch) -> Result<Vec<Cell<Warm>>> {
    ensure!(options.pause <= PAUSE_MAX, "choose a pause of an hour at most");
    options.comparison.check()?;
    let session = terminal()?;
    let pids = watched(&session)?;
    let time = options.pause + KEYS_SPARE;
    all_turns(&options.comparison, &session, time, interrupt, watch, &mut |_, watch| {
        once(&session, &pids, options.pause, interrupt, watch)
    })
}

/// Display server, terminal and its program.
fn watched(session: &Session) -> Result<Vec<u32>> {
    let server = describe(&session.target())?.server_pid;
    let terminal = session.terminal_pid().context("no terminal is open")?;
    Ok(family(terminal).into_iter().chain([server]).collect())
}

fn once(
    session: &Session,
    pids: &[u32],
    pause: Duration,
    interrupt: &Interrupt,
    watch: &mut dyn Watch,
) -> Result<Warm> {
    let pace = Pace { words_per_minute: WORDS_PER_MINUTE, ..Pace::default() };
    let mut typist = Typist::open(&session.target(), pace)?;
    let _steady = Steady::new();
    let seen = Seen::start(session, QUIET)?;
    let mut letters = letters();
    let mut type_keys = |count: usize| -> Result<Vec<Nanos>> {
        letters.by_ref().take(count).map(|letter| key(&mut typist, &seen, letter, interrupt)).collect()
    };
    type_keys(KEYS_BEFORE)?;
    watch.line(&format!("a pause of {} s", pause.as_secs()));
    interrupt.sleep(pause)?;
    let before = page_ins(pids);
    let pressed = type_keys(1 + KEYS_AFTER)?;
    let page_ins = page_ins(pids).saturating_sub(before);
    let times = latencies(&pressed, &seen.finish()?);
    let patience = nanos(ANSWER_PATIENCE);
    let mut answered = times.iter().map(|time| time.unwrap_or(patience));
    Ok(Warm {
        pressed: pressed.first().copied().unwrap_or_default(),
        first: answered.next().unwrap_or(patience),
        unanswered: times.first().is_none_or(Option::is_none),
        after: answered.collect(),
        page_ins,
    })
}

fn key(typist: &mut Typist, seen: &Seen, letter: char, interrupt: &Interrupt) -> Result<Nanos> {
    let at = typist.key(letter)?;
    await_answer(seen, at, interrupt)?;
    Ok(at)
}

/// Major page faults of some processes so far; who has ended has none.
fn page_ins(pids: &[u32]) -> u64 {
    pids.iter().filter_map(|pid| page_ins_of(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).sum()
}

fn page_ins_of(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_faults_are_the_twelfth_field() {
        assert_eq!(page_ins_of("7 (a (b) c) S 1 7 7 0 -1 4194560 100 200 31 4 5 6 7 8"), Some(31));
        assert_eq!(page_ins_of("nonsense"), None);
        assert_eq!(page_ins(&[0]), 0);
    }
}
