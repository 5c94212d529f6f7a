// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common parts of typing loops: keys, timeout of an answer, and matching of drawings.

use crate::driver::{BenchStage, User};
use crate::screen::Place;
use crate::seen::latencies;
use anyhow::Result;
use std::time::Duration;
use tipme_measure::{ClassLimits, Events};
use tipme_record::Nanos;

/// "For even a fast typist on the order of 1 char every 100 milliseconds."
pub(crate) const WORDS_PER_MINUTE: f64 = 120.0;
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// Time after which a key counts as unanswered.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between checks of the screen.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const LETTERS: &str = "the quick brown fox jumps over the lazy dog";
/// A program that echoes every key itself, like editors and shells.
const ECHO: [&str; 3] = ["sh", "-c", "stty raw -echo; exec cat"];
/// Programs required for that in a terminal.
pub(crate) const ECHO_PROGRAMS: [&str; 6] = ["Xvfb", "openbox", "xterm", "sh", "stty", "cat"];

/// Returns the programs required on a display; a compositor checks for its own.
pub(crate) fn echo_programs(place: &Place) -> &'static [&'static str] {
    if *place == Place::X11 { &ECHO_PROGRAMS } else { &ECHO[..1] }
}

/// Opens a terminal that echoes keys.
pub(crate) fn open_echo(stage: &mut dyn BenchStage) -> Result<()> {
    stage.open_terminal(&ECHO.map(Into::into))
}

/// Returns visible letters only: each causes a drawing.
pub(crate) fn letters() -> impl Iterator<Item = char> {
    LETTERS.chars().filter(|letter| *letter != ' ').cycle()
}

/// Presses a key and waits for a drawing after it, like a user watching the screen. Returns the
/// time of the press, and `true` if the answer was in time.
pub(crate) fn type_and_look(user: &mut dyn User, letter: char) -> Result<(Nanos, bool)> {
    let (at, timeout) = (user.key(letter)?, nanos(ANSWER_TIMEOUT));
    while user.last_drawing() <= at {
        if user.now().since(at) >= timeout {
            return Ok((at, false));
        }
        user.sleep(POLL_INTERVAL)?;
    }
    Ok((at, true))
}

pub(crate) fn nanos(time: Duration) -> Nanos {
    Nanos(time.as_nanos() as u64)
}

/// Returns the time from each key to the next drawing, at most the timeout, and the number of keys
/// that were not answered in time.
pub(crate) fn answers(pressed: &[Nanos], drawn: &[Nanos]) -> (Vec<Nanos>, usize) {
    let timeout = nanos(ANSWER_TIMEOUT);
    let (mut times, mut missing) = (Vec::new(), 0);
    for answer in latencies(pressed, drawn) {
        let in_time = answer.filter(|time| *time < timeout);
        missing += usize::from(in_time.is_none());
        times.push(in_time.unwrap_or(timeout));
    }
    (times, missing)
}

/// Returns the same as events of a class.
pub(crate) fn events(
    class: &str,
    limits: Option<ClassLimits>,
    pressed: &[Nanos],
    drawn: &[Nanos],
) -> Events {
    let (times, missing) = answers(pressed, drawn);
    Events {
        starts_ns: pressed.iter().map(|at| at.0).collect(),
        latencies_ns: times.iter().map(|time| time.0).collect(),
        censored: missing as u64,
        ..Events::of(class, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_in_time_counts_as_the_timeout() {
        let at =
            |times: &[u64]| times.iter().map(|time| Nanos::from_secs(*time)).collect::<Vec<_>>();
        assert_eq!(answers(&at(&[10, 20, 50]), &at(&[11, 45])), (at(&[1, 20, 20]), 2));
        let events = events("key", None, &at(&[10, 20]), &at(&[11, 45]));
        assert_eq!(
            (events.latencies_ns, events.censored),
            (vec![1_000_000_000, 20_000_000_000], 1)
        );
    }

    #[test]
    fn every_letter_is_visible() {
        assert!(letters().take(100).all(|letter| letter.is_ascii_lowercase()));
    }
}
