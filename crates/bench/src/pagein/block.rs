// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of one turn, and the program's report on them.

use super::options::{LATE_MAX, Pagein};
use super::program::{Walk, walks};
use crate::arms::Block;
use crate::driver::{BenchStage, Habits, User};
use crate::intervals::StampBuffer;
use crate::typist::{ANSWER_TIMEOUT, answers, letters, nanos, type_and_look};
use anyhow::Result;
use std::time::Duration;
use tipme_desktop::inject::Pace;
use tipme_measure::Events;
use tipme_record::Nanos;

/// Class of the events: wait for pages after each key, at least the timeout if the program did not
/// report it.
pub(super) const CLASS: &str = "page-in";
/// Interval between checks of the records.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Results for the keys of one turn, without those of the first lap.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct TurnMeasurements {
    /// Durations of the program's walks through its pages.
    pub walks: Vec<Nanos>,
    /// Major page faults.
    pub page_ins: u64,
    /// Time from each key to its drawing; at least the timeout if none was seen.
    pub latencies: Vec<Nanos>,
    /// Keys that were not typed for lack of time.
    pub untyped: usize,
}

/// Types an uncounted lap, and the keys of a block. `before` counts the keys typed earlier in the
/// benchmark.
pub(super) fn type_keys(
    options: &Pagein,
    stage: &mut dyn BenchStage,
    stamp_buffer: &StampBuffer,
    typed: usize,
) -> Result<Block<TurnMeasurements>> {
    let mut user = stage.user(Habits::at_terminal(Pace::default()))?;
    let lap = usize::from(options.keys_per_lap);
    let end = user.now().after(nanos(options.time_per_block()));
    let mut pressed = Vec::new();
    for letter in letters().take(options.presses()) {
        // Types the lap in any case: later keys are counted from its end.
        if user.now() >= end && pressed.len() >= lap {
            break;
        }
        pressed.push(type_and_look(&mut *user, letter)?.0);
        user.sleep(options.every)?;
    }
    await_records(&mut *user, stamp_buffer, typed + pressed.len())?;
    let drawn = user.drawings()?;
    let walks = walks(stamp_buffer);
    let walks = walks.get(typed + lap..).unwrap_or_default();
    Ok(block(pressed.get(lap..).unwrap_or_default(), walks, &drawn, options.keys_per_block()))
}

fn await_records(user: &mut dyn User, stamp_buffer: &StampBuffer, count: usize) -> Result<()> {
    let begun = user.now();
    while walks(stamp_buffer).len() < count && user.now().since(begun) < nanos(LATE_MAX) {
        user.sleep(POLL_INTERVAL)?;
    }
    Ok(())
}

fn block(
    pressed: &[Nanos],
    walks: &[Walk],
    drawn: &[Nanos],
    keys: usize,
) -> Block<TurnMeasurements> {
    let walks = &walks[..walks.len().min(pressed.len())];
    let missing = pressed.len() - walks.len();
    let waits = walks
        .iter()
        .map(|walk| walk.waited)
        .chain(std::iter::repeat_n(nanos(ANSWER_TIMEOUT), missing));
    Block {
        events: Events {
            starts_ns: pressed.iter().map(|at| at.0).collect(),
            latencies_ns: waits.map(|wait| wait.0).collect(),
            censored: missing as u64,
            ..Events::of(CLASS, None)
        },
        waited: None,
        more: TurnMeasurements {
            walks: walks.iter().map(|walk| walk.time).collect(),
            page_ins: walks.iter().map(|walk| walk.faults).sum(),
            latencies: answers(pressed, drawn).0,
            untyped: keys.saturating_sub(pressed.len()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_did_not_report_counts_as_the_timeout() {
        let walks = [3, 4].map(|s| Walk {
            waited: Nanos::from_secs(s),
            time: Nanos::from_secs(s + 1),
            faults: s,
        });
        let (pressed, drawn) = ([10, 50, 90].map(Nanos::from_secs), [14, 95].map(Nanos::from_secs));
        let Block { events, more, .. } = block(&pressed, &walks, &drawn, 5);
        assert_eq!(events.latencies_ns, [3_000_000_000, 4_000_000_000, 20_000_000_000]);
        assert_eq!((events.censored, more.page_ins, more.untyped), (1, 7, 2));
        assert_eq!(more.walks, [4, 5].map(Nanos::from_secs));
        assert_eq!(more.latencies, [4, 20, 5].map(Nanos::from_secs));
    }

    #[test]
    fn more_records_than_keys_are_those_of_others() {
        let more = block(&[Nanos(1)], &[Walk::default(), Walk::default()], &[Nanos(2)], 1);
        assert_eq!((more.events.latencies_ns.len(), more.events.censored), (1, 0));
    }
}
