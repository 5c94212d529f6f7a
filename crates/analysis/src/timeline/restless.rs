// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restless threads: they compute all the time, like a game loop, or an event loop with an idle
//! handler that always has work.
//!
//! If such a thread does not wait for the next event, or is busy until some drawing, that is no
//! evidence about an input: it was busy before as well. Two kinds are distinguished. A thread that
//! draws frame after frame owes a frame to an input too; one that draws only now and then may have
//! received an input that needs no answer.

use crate::timeline::bursts::FRAME;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::spent_times::{SpentTimes, SpentWith};
use crate::timeline::threads::{Span, ThreadState};
use std::rc::Rc;
use tipme_record::{Nanos, Tid};

/// Time before an instant that shows a thread's habit, and the minimum part of it that must be
/// recorded.
const HABIT: Nanos = Nanos::from_secs(5);
const KNOWN_MIN: Nanos = Nanos::from_secs(2);

/// Limits for restless threads, in percent of that time: pauses stay below `PAUSES_PERCENT`, and
/// moving takes at least `MOVES_PERCENT`.
const PAUSES_PERCENT: u64 = 10;
const MOVES_PERCENT: u64 = 50;

/// Maximum gap between two threads that pass work on: such a pause is no rest.
pub(crate) const GAP: Nanos = Nanos::from_millis(5);

/// Maximum distance between frames, and the percentage of time in longer gaps below which a thread
/// counts as drawing frames. Typing draws less often.
const FRAMES_APART: Nanos = Nanos::from_millis(50);
const HITCHES_PERCENT: u64 = 10;

/// Time within which a drawing of a restless thread answers the input that it received: shorter
/// delays go unnoticed.
pub(crate) const PROMPT: Nanos = Nanos::from_millis(50);

/// Returns `true` if a thread ran, or waited for less than a frame, as for a reply of its display
/// server.
fn is_moving(span: &Span) -> bool {
    span.segment.state == ThreadState::Running || span.length() < FRAME
}

impl Recording {
    /// Returns the time in `lo..hi` that a thread spent in a state.
    fn spent(&self, tid: Tid, with: SpentWith, lo: Nanos, hi: Nanos) -> u64 {
        let known = self.spent_times.borrow().get(&(tid, with)).cloned();
        let times = known.unwrap_or_else(|| {
            let times = Rc::new(self.spent_times_of(tid, with));
            self.spent_times.borrow_mut().insert((tid, with), times.clone());
            times
        });
        times.within(lo, hi)
    }

    fn spent_times_of(&self, tid: Tid, with: SpentWith) -> SpentTimes {
        if with == SpentWith::NotDrawing {
            return SpentTimes::new(self.drawings().apart(tid, self.mark, FRAMES_APART));
        }
        let spans = self.timeline.spans(tid).filter(|span| match with {
            SpentWith::Pausing(Pause::Rest) if span.length() <= GAP => false,
            SpentWith::Pausing(pause) => self.is_pause(span, pause),
            SpentWith::Moving => is_moving(span),
            SpentWith::NotDrawing => false,
        });
        SpentTimes::new(spans.map(|span| (span.start, span.end)))
    }

    /// Returns `true` if a thread hardly paused in the time before `at`, and was moving for most of
    /// it. If too little of that time is recorded, the time after `at` decides, provided that the
    /// thread drew in each second of it and so did not hang.
    pub(crate) fn is_restless(&self, tid: Tid, pause: Pause, at: Nanos) -> bool {
        let first = self.timeline.span(tid, 0).map_or(at, |span| span.start);
        let lo = at.before(HABIT).max(self.complete_from()).max(first);
        if at.since(lo) >= KNOWN_MIN {
            return self.is_habit(tid, pause, (lo, at));
        }
        let hi = at.after(HABIT);
        hi < self.mark
            && self.is_habit(tid, pause, (at, hi))
            && (0..HABIT.0 / Nanos::from_secs(1).0).all(|second| {
                let from = at.after(Nanos::from_secs(second));
                !self.drawings().within(tid, from, from.after(Nanos::from_secs(1))).is_empty()
            })
    }

    fn is_habit(&self, tid: Tid, pause: Pause, (lo, hi): (Nanos, Nanos)) -> bool {
        let all = hi.since(lo).0.max(1);
        self.spent(tid, SpentWith::Pausing(pause), lo, hi) * 100 / all < PAUSES_PERCENT
            && self.spent(tid, SpentWith::Moving, lo, hi) * 100 / all >= MOVES_PERCENT
    }

    /// Returns `true` if a thread drew frame after frame before `at`.
    pub(crate) fn draws_frames(&self, tid: Tid, at: Nanos) -> bool {
        let hitches = self.spent(tid, SpentWith::NotDrawing, at.before(KNOWN_MIN), at);
        hitches * 100 < KNOWN_MIN.0 * HITCHES_PERCENT
    }

    /// Returns `true` if it is no evidence about an input received at `taken` that the thread was
    /// busy in `lo..hi`: it computed, as it always does, and owed no frame.
    pub(crate) fn is_busy_anyway(&self, tid: Tid, taken: Nanos, (lo, hi): (Nanos, Nanos)) -> bool {
        self.is_restless(tid, Pause::EventWait, taken)
            && !self.draws_frames(tid, taken)
            && 2 * self.spent(tid, SpentWith::Moving, lo, hi) >= hi.since(lo).0
    }

    /// Returns `true` if a drawing some time after an input was received is no evidence for an
    /// answer to it.
    pub(crate) fn may_answer_nobody(&self, tid: Tid, taken: Nanos, drawn: Nanos) -> bool {
        drawn.since(taken) > PROMPT && self.is_busy_anyway(tid, taken, (taken, drawn))
    }

    /// Returns the time in `lo..hi` from which a thread no longer moves. A thread that computed all
    /// the time before has not stopped while it keeps moving.
    pub(crate) fn stops_from(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Nanos {
        let first =
            self.timeline.at(tid, lo).filter(|_| self.is_restless(tid, Pause::EventWait, lo));
        let spans = first.into_iter().flat_map(|span| self.timeline.spans_from(tid, span.index));
        let mut within = spans.take_while(|span| span.start < hi);
        within.find(|span| !is_moving(span)).map_or(lo, |span| span.start.max(lo))
    }
}
