// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that sleep in the middle of their work, and dequeue inputs meanwhile without acting on
//! them: `(sleep-for 2)` in Emacs.
//!
//! Such a thread waits for events at a place in its program that inputs do not usually end, returns
//! to it after it dequeued one, leaves it by a timeout, and goes to its event wait. A prompt is
//! such a place too, but ends with the input that it asks for.

use crate::timeline::event_waits::found_in;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::selects;
use tipme_record::{Nanos, Tid};

/// Maximum number of segments of one sleep.
const SEGMENTS_MAX: usize = 65_536;

/// Returns the return to its event wait of a thread that dequeued an input, was blocked from
/// `paused` on, and slept around both.
pub(super) fn until(
    recording: &Recording,
    tid: Tid,
    dequeued: Nanos,
    paused: Nanos,
) -> Option<Nanos> {
    let place = found_in(recording, tid, dequeued).filter(|place| place.0.is_some_and(selects))?;
    if recording.is_usual_event_wait(tid, place) == Some(true) {
        return None;
    }
    let first = recording.timeline.at(tid, paused)?.index;
    let spans = recording.timeline.spans_from(tid, first).take(SEGMENTS_MAX);
    let blocked = spans.filter(|span| span.is_blocked() && span.end < recording.mark);
    let mut last: Option<Span> = None;
    for span in blocked {
        match recording.waits_in(&span) {
            Some(signature) if signature == place => last = Some(span),
            Some(other) if recording.is_usual_event_wait(tid, other) == Some(true) => {
                return last.filter(|last| last.task_waker().is_none()).map(|_| span.start);
            }
            Some(_) if last.is_none() => return None,
            _ => {}
        }
    }
    None
}
