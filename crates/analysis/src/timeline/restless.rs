// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restless threads: they compute all the time, as the loop of a game does, or one whose idle handler always has work.
//!
//! That such a thread does not wait for the next event says nothing about an input, nor does it that it was busy until
//! some drawing: so it was before. Two sorts are told apart: who draws frame after frame owes one to an input as well,
//! and who draws only now and then may have taken an input that needs no answer.

use crate::timeline::bursts::FRAME;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::spent_times::{SpentTimes, SpentWith};
use crate::timeline::threads::{Span, ThreadState};
use std::rc::Rc;
use tipme_record::{Nanos, Tid};

/// What a thread did this long before a time is its habit; less than the other tells nothing.
const HABIT: Nanos = Nanos::from_secs(5);
const KNOWN_MIN: Nanos = Nanos::from_secs(2);

/// Who pauses in so many percent of that, or is on the move in fewer than these, is not restless.
const PAUSES_PERCENT: u64 = 10;
const MOVES_PERCENT: u64 = 50;

/// Between two threads that pass work on nobody may be busy for this long: such a pause is no rest.
pub(crate) const GAP: Nanos = Nanos::from_millis(5);

/// Who draws frames is hardly ever longer than this without one: for so many percent of the time. Who types draws less often.
const FRAMES_APART: Nanos = Nanos::from_millis(50);
const HITCHES_PERCENT: u64 = 10;

/// What a restless thread draws within this time answers the input that it took: nobody notices less.
pub(crate) const PROMPT: Nanos = Nanos::from_millis(50);

/// Whether a thread ran, or waited for less than a frame, as for an answer of its display server.
fn is_moving(span: &Span) -> bool {
    span.segment.state == ThreadState::Running || span.end.since(span.start) < FRAME
}

impl Recording {
    /// How much of `lo..hi` a thread spent with something.
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
        let is = |span: &Span| match with {
            SpentWith::Pausing(Pause::Rest) if span.end.since(span.start) <= GAP => false,
            SpentWith::Pausing(pause) => self.is_pause(span, pause),
            SpentWith::Moving => is_moving(span),
            SpentWith::NotDrawing => false,
        };
        if with == SpentWith::NotDrawing {
            return SpentTimes::new(self.drawings().apart(tid, self.mark, FRAMES_APART));
        }
        SpentTimes::new(self.timeline.spans(tid).filter(is).map(|span| (span.start, span.end)))
    }

    /// Whether a thread hardly ever paused in the time before another, and was on the move for most of it. Where too little is
    /// known of that time, the one after it tells, if the thread drew in each second of it: so it did not hang then.
    pub(crate) fn is_restless(&self, tid: Tid, pause: Pause, at: Nanos) -> bool {
        let first = self.timeline.span(tid, 0).map_or(at, |span| span.start);
        let lo = at.before(HABIT).max(self.complete_from()).max(first);
        if at.since(lo) >= KNOWN_MIN {
            return self.is_habit(tid, pause, (lo, at));
        }
        let draws = |second: u64| {
            let from = at.after(Nanos::from_secs(second));
            !self.drawings().within(tid, from, from.after(Nanos::from_secs(1))).is_empty()
        };
        let hi = at.after(HABIT);
        hi < self.mark && self.is_habit(tid, pause, (at, hi)) && (0..HABIT.0 / Nanos::from_secs(1).0).all(draws)
    }

    fn is_habit(&self, tid: Tid, pause: Pause, (lo, hi): (Nanos, Nanos)) -> bool {
        let percent = |with| self.spent(tid, with, lo, hi) * 100 / hi.since(lo).0.max(1);
        percent(SpentWith::Pausing(pause)) < PAUSES_PERCENT && percent(SpentWith::Moving) >= MOVES_PERCENT
    }

    /// Whether a thread drew frame after frame before a time.
    pub(crate) fn draws_frames(&self, tid: Tid, at: Nanos) -> bool {
        let hitches = self.spent(tid, SpentWith::NotDrawing, at.before(KNOWN_MIN), at);
        hitches * 100 < KNOWN_MIN.0 * HITCHES_PERCENT
    }

    /// Whether it tells nothing of an input that a thread took at a time that the thread was busy from `lo` to `hi`: it
    /// computed, as it always does, and owed no frame.
    pub(crate) fn is_busy_anyway(&self, tid: Tid, taken: Nanos, (lo, hi): (Nanos, Nanos)) -> bool {
        self.is_restless(tid, Pause::EventWait, taken)
            && !self.draws_frames(tid, taken)
            && 2 * self.spent(tid, SpentWith::Moving, lo, hi) >= hi.since(lo).0
    }

    /// The same where it is told of a drawing at a time, some time after the input was taken.
    pub(crate) fn may_answer_nobody(&self, tid: Tid, taken: Nanos, drawn: Nanos) -> bool {
        drawn.since(taken) > PROMPT && self.is_busy_anyway(tid, taken, (taken, drawn))
    }

    /// When a thread stopped in `lo..hi`; where it computed all the time before, what it did first was no stop yet.
    pub(crate) fn stops_from(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Nanos {
        let first = self.timeline.at(tid, lo).filter(|_| self.is_restless(tid, Pause::EventWait, lo));
        let spans =
            first.into_iter().flat_map(|span| (span.index..).map_while(move |index| self.timeline.span(tid, index)));
        let mut within = spans.take_while(|span| span.start < hi);
        within.find(|span| !is_moving(span)).map_or(lo, |span| span.start.max(lo))
    }
}
