// SPDX-License-Identifier: MIT OR Apache-2.0
//! Held keys. A Wayland compositor sends a client one event for the press and one for the release;
//! in between, the client repeats the key from a timer of its own.
//!
//! While a key is held, a timer wakeup of the thread that received the key, or of the client's
//! first thread, therefore counts as an input received at once, if a drawing follows from it: other
//! timers draw as well, but rarely while the user types. After regular repeats, the next one is due
//! one period later; if the thread was not idle then, it owes that repeat.

use crate::decode::messages::{Side, Stream};
use crate::decode::objects::Act;
use crate::join::inputs::Delivery;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use std::collections::BTreeMap;
use tipme_measure::InputClass;
use tipme_record::{Nanos, Tid};

/// Minimum delay before the first repeat on any desktop.
const DELAY_MIN: Nanos = Nanos::from_millis(150);

/// Maximum period of repeats on any desktop.
const PERIOD_MAX: Nanos = Nanos::from_millis(200);

/// Maximum number of repeats of one key.
const REPEATS_MAX: usize = 4_096;

/// Number of repeats from which their period follows.
const PERIODS: usize = 3;

/// A held key: the input that began it, and its end.
struct HeldKey<'a> {
    press: &'a Delivery,
    taken: (Nanos, Tid),
    until: Nanos,
}

/// Returns the repeats of all held keys, as inputs that their clients received from a timer.
pub(crate) fn repeats(recording: &Recording, deliveries: &[Delivery]) -> Vec<Delivery> {
    let mut presses: BTreeMap<usize, Vec<&Delivery>> = BTreeMap::new();
    for press in deliveries.iter().filter(|one| one.class == InputClass::Key) {
        presses.entry(press.stream).or_default().push(press);
    }
    let holds = presses.iter().filter_map(|(stream, presses)| {
        Some(holds(recording, recording.messages.streams().get(*stream)?, presses))
    });
    holds.flatten().flat_map(|hold| hold_repeats(recording, &hold)).collect()
}

/// Returns the keys of a connection that were held for long; `presses` are those that its client
/// received.
fn holds<'a>(recording: &Recording, stream: &Stream, presses: &[&'a Delivery]) -> Vec<HeldKey<'a>> {
    let keys = keys(recording, stream);
    let holds = keys.iter().enumerate().filter_map(|(index, (at, act))| {
        let press = presses.partition_point(|press| press.sent <= *at).checked_sub(1)?;
        let press = *presses.get(press).filter(|_| *act == Act::KeyPress)?;
        let until = keys.get(index + 1).map_or(recording.mark, |(next, _)| *next);
        let taken = press.dequeued.filter(|(taken, _)| until.since(*taken) > DELAY_MIN)?;
        Some(HeldKey { press, taken, until })
    });
    holds.collect()
}

/// Returns the keyboard events of a client: presses, releases and leave events.
fn keys(recording: &Recording, stream: &Stream) -> Vec<(Nanos, Act)> {
    let words = recording.messages.timed_words(stream, Side::EventSent);
    let acts = words.filter_map(|(at, word)| Some((at, word.act()?)));
    acts.filter(|(_, act)| matches!(act, Act::KeyPress | Act::KeyRelease | Act::Leave)).collect()
}

fn hold_repeats(recording: &Recording, hold: &HeldKey<'_>) -> Vec<Delivery> {
    let (taken, reader) = hold.taken;
    let first = Tid(hold.press.client.0);
    let threads = [reader].into_iter().chain((first != reader).then_some(first));
    let repeats = threads.flat_map(|tid| {
        let mut at = recording.timer_wakes(tid, taken.after(DELAY_MIN), hold.until);
        at.truncate(REPEATS_MAX);
        let owed = owed(recording, tid, &at, hold.until);
        at.into_iter().chain(owed).map(move |at| Delivery {
            input: at,
            sent: at,
            dequeued: Some((at, tid)),
            released: None,
            repeated: true,
            ..*hold.press
        })
    });
    repeats.collect()
}

/// Returns the times at which repeats were due while their thread was not idle, so that they came
/// late or not at all.
fn owed(recording: &Recording, tid: Tid, repeats: &[Nanos], until: Nanos) -> Vec<Nanos> {
    let next = repeats.iter().skip(PERIODS).copied().chain([until]);
    let late = repeats.windows(PERIODS).zip(next).filter_map(|(window, next)| {
        let (first, second) = (window[1].since(window[0]), window[2].since(window[1]));
        let regular = first.max(second) <= PERIOD_MAX
            && first.0.abs_diff(second.0) <= first.min(second).0 / 2;
        let due = window[2].after(second);
        (regular && next > due.after(second)).then_some(due)
    });
    late.filter(|due| !recording.is_paused_at(tid, due.after(Nanos(1)), Pause::Idle)).collect()
}
