// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the first key takes after a pause, beside a load.
//!
//! The warm start of Evans et al. (1993, section 5.2): somebody types, stops for 30 seconds, and types again. Where
//! memory is short, the pages of the terminal have gone meanwhile, and the first key brings them back.

use crate::arms::{Cell, Comparison, all_turns};
use crate::estimate::Estimate;
use crate::interrupt::Interrupt;
use crate::priority::Priority;
use crate::process::{family, major_faults};
use crate::progress::Progress;
use crate::seen::{Seen, latencies};
use crate::session::Session;
use crate::typing::{ANSWER_TIMEOUT, INTERVAL, await_answer, letters, nanos, terminal};
use anyhow::{Context, Result, ensure};
use std::time::Duration;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::server::describe;
use tipme_record::Nanos;

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
    /// How long all of it takes.
    pub fn estimate(&self) -> Estimate {
        let keys = (KEYS_BEFORE + 1 + KEYS_AFTER) as u32;
        let still = QUIET + self.pause;
        let most = still + (INTERVAL + ANSWER_TIMEOUT) * keys;
        self.comparison.estimate(Estimate::new(still + INTERVAL * keys, most))
    }
}

/// One pause in every turn. Everything that was started has ended when it returns.
pub fn run(options: &Options, interrupt: &Interrupt, progress: &mut dyn Progress) -> Result<Vec<Cell<Warm>>> {
    ensure!(options.pause <= PAUSE_MAX, "choose a pause of an hour at most");
    options.comparison.check()?;
    let session = terminal()?;
    let pids = watched(&session)?;
    let time = options.pause + KEYS_SPARE;
    all_turns(&options.comparison, &session, time, interrupt, progress, &mut |_, progress| {
        once(&session, &pids, options.pause, interrupt, progress)
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
    progress: &mut dyn Progress,
) -> Result<Warm> {
    let pace = Pace { words_per_minute: WORDS_PER_MINUTE, ..Pace::default() };
    let mut typist = Typist::open(&session.target(), pace)?;
    let _priority = Priority::realtime();
    let seen = Seen::start(session, QUIET)?;
    let mut letters = letters();
    let mut type_keys = |count: usize| -> Result<Vec<Nanos>> {
        letters.by_ref().take(count).map(|letter| key(&mut typist, &seen, letter, interrupt)).collect()
    };
    type_keys(KEYS_BEFORE)?;
    progress.line(&format!("a pause of {} s", pause.as_secs()));
    interrupt.sleep(pause)?;
    let before = major_faults(pids);
    let pressed = type_keys(1 + KEYS_AFTER)?;
    let page_ins = major_faults(pids).saturating_sub(before);
    let times = latencies(&pressed, &seen.finish()?);
    let timeout = nanos(ANSWER_TIMEOUT);
    let mut answered = times.iter().map(|time| time.unwrap_or(timeout));
    Ok(Warm {
        pressed: pressed.first().copied().unwrap_or_default(),
        first: answered.next().unwrap_or(timeout),
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
