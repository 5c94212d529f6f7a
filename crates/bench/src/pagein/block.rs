// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of one turn, and what the program said of them.

use super::options::{LATE_MAX, Options};
use super::program::{Walk, walks};
use crate::interrupt::Interrupt;
use crate::intervals::StampBuffer;
use crate::priority::Priority;
use crate::seen::{Seen, latencies};
use crate::session::Session;
use crate::typing::{ANSWER_TIMEOUT, await_answer, letters, nanos};
use anyhow::Result;
use std::time::Duration;
use tipme_desktop::clock;
use tipme_desktop::inject::{Pace, Typist};
use tipme_record::Nanos;

/// The program has drawn nothing for so long before the first key.
const QUIET: Duration = Duration::from_millis(200);
/// Between two looks at the records.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The keys of one turn that count, those of the first lap left out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// When each was pressed.
    pub pressed: Vec<Nanos>,
    /// How long the program waited for its pages; at least so long where it did not say.
    pub waits: Vec<Nanos>,
    /// How long it took to go through them.
    pub walks: Vec<Nanos>,
    /// Page faults that waited for a disk.
    pub page_ins: u64,
    /// From each key to its drawing; at least so long where none was seen in time.
    pub latencies: Vec<Nanos>,
    /// Keys of which the program did not tell in time.
    pub unanswered: usize,
    /// Keys that were not typed for want of time.
    pub untyped: usize,
}

/// Types a lap that does not count, and the keys of a block. Of all keys of the benchmark so many were typed before.
pub(super) fn type_keys(
    options: &Options,
    session: &Session,
    stamp_buffer: &StampBuffer,
    typed: usize,
    interrupt: &Interrupt,
) -> Result<Block> {
    let mut typist = Typist::open(&session.target(), Pace::default())?;
    let _priority = Priority::realtime();
    let seen = Seen::start(session, QUIET)?;
    let end = clock::now().after(nanos(options.time_per_block()));
    let mut pressed = Vec::new();
    for letter in letters().take(options.presses()) {
        interrupt.check()?;
        // The lap is typed in any case: what comes after it is counted from there.
        if clock::now() >= end && pressed.len() >= options.keys_per_lap {
            break;
        }
        let at = typist.key(letter)?;
        await_answer(&seen, at, interrupt)?;
        pressed.push(at);
        interrupt.sleep(options.every)?;
    }
    await_records(stamp_buffer, typed + pressed.len(), interrupt)?;
    let drawn = seen.finish()?;
    let counted = pressed.get(options.keys_per_lap..).unwrap_or_default();
    let told = walks(stamp_buffer);
    let told = told.get(typed + options.keys_per_lap..).unwrap_or_default();
    Ok(block(counted, told, &drawn, options.keys_per_block()))
}

fn await_records(stamp_buffer: &StampBuffer, count: usize, interrupt: &Interrupt) -> Result<()> {
    let begun = clock::now();
    while walks(stamp_buffer).len() < count && clock::now().since(begun) < nanos(LATE_MAX) {
        interrupt.sleep(POLL_INTERVAL)?;
    }
    Ok(())
}

fn block(pressed: &[Nanos], told: &[Walk], drawn: &[Nanos], keys: usize) -> Block {
    let told = &told[..told.len().min(pressed.len())];
    let timeout = nanos(ANSWER_TIMEOUT);
    let missing = pressed.len() - told.len();
    let waits = told.iter().map(|walk| walk.waited).chain(std::iter::repeat_n(timeout, missing));
    let seen = latencies(pressed, drawn).into_iter().map(|one| one.unwrap_or(timeout).min(timeout));
    Block {
        pressed: pressed.to_vec(),
        waits: waits.collect(),
        walks: told.iter().map(|walk| walk.time).collect(),
        page_ins: told.iter().map(|walk| walk.faults).sum(),
        latencies: seen.collect(),
        unanswered: missing,
        untyped: keys.saturating_sub(pressed.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_did_not_tell_counts_as_the_timeout() {
        let at = |times: &[u64]| times.iter().map(|time| Nanos::from_secs(*time)).collect::<Vec<_>>();
        let walk = |s| Walk { waited: Nanos::from_secs(s), time: Nanos::from_secs(s + 1), faults: s };
        let block = block(&at(&[10, 50, 90]), &[walk(3), walk(4)], &at(&[14, 95]), 5);
        assert_eq!((block.waits, block.walks), (at(&[3, 4, 20]), at(&[4, 5])));
        assert_eq!(block.latencies, at(&[4, 20, 5]));
        assert_eq!((block.page_ins, block.unanswered, block.untyped), (7, 1, 2));
    }

    #[test]
    fn more_records_than_keys_are_those_of_others() {
        let more = block(&[Nanos(1)], &[Walk::default(), Walk::default()], &[Nanos(2)], 1);
        assert_eq!((more.waits.len(), more.unanswered), (1, 0));
    }
}
