// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bursts: the activity of a thread from the end of one idle wait to the start of the next.

use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{CONTEXT_UNKNOWN, Span, ThreadState};
use crate::timeline::waits::Waited;
use std::rc::Rc;
use tipme_record::{Nanos, Tid};

/// Maximum number of waits in a burst that are searched for wakers, latest first.
const HELPERS_MAX: usize = 16;

/// Maximum number of segments of a burst that are searched, latest first.
pub(super) const SEGMENTS_MAX: usize = 1_024;

/// Maximum wait for the next frame of a thread that draws in frames: 60 per second, somewhat late.
pub(crate) const FRAME: Nanos = Nanos::from_millis(20);

/// Maximum number of events considered during one wait for a frame, latest first.
const INTERRUPTIONS_MAX: usize = 4;

/// Minimum length of a recorded wait; a wait that began before the recording may be shorter.
const DESCRIBED: Nanos = Nanos::from_millis(2);

/// Cause of the begin of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// A task woke or created the thread from its own context.
    Task(Tid),
    /// An interrupt or timer woke the thread.
    Interrupt,
    /// The burst began before the recording, or its wakeup was lost.
    Unknown,
}

/// Burst up to some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    pub start: Nanos,
    pub wake: Wake,
}

impl Recording {
    fn pauses(&self, tid: Tid, pause: Pause) -> Rc<[u32]> {
        let mut known = self.pauses.borrow_mut();
        let pauses = known.entry((tid, pause)).or_insert_with(|| {
            let spans = self.timeline.spans(tid).filter(|span| self.is_pause(span, pause));
            spans.map(|span| span.index as u32).collect()
        });
        pauses.clone()
    }

    pub(crate) fn is_pause(&self, span: &Span, pause: Pause) -> bool {
        match pause {
            Pause::Idle => self.separates(span),
            Pause::Condition => span.is_blocked() && self.waits.is_for_condition(span),
            Pause::Rest => self.separates(span) || self.is_pause(span, Pause::Condition),
            Pause::EventWait => self.is_event_wait(span),
            Pause::HeldUp => self.is_held_up(span),
        }
    }

    /// Returns `true` if a segment separates two bursts.
    fn separates(&self, span: &Span) -> bool {
        match span.segment.state {
            ThreadState::Absent => true,
            ThreadState::Blocked => self.waits.is_idle(span) && !self.is_handover(span),
            ThreadState::Running | ThreadState::Runnable => false,
        }
    }

    /// Returns `true` if a thread could not continue for longer than a frame, although it waited
    /// for no other thread.
    fn is_held_up(&self, span: &Span) -> bool {
        // Length first: a busy thread has many short spans, and the kind of each takes a search.
        span.length() > FRAME
            && match span.segment.state {
                ThreadState::Runnable => true,
                ThreadState::Blocked => self.waits.kind(span) == Waited::Stopped,
                ThreadState::Running | ThreadState::Absent => false,
            }
    }

    /// Returns `true` if another thread of the process ended a wait that is too short to have a
    /// record: threads of one process wait for each other in the middle of their work.
    pub(crate) fn is_handover(&self, span: &Span) -> bool {
        let own = span
            .task_waker()
            .is_some_and(|waker| self.tasks.share_process(waker, span.tid, span.end));
        own && span.length() < DESCRIBED && self.waits.find(span).is_none()
    }

    /// Returns the burst of a thread that contains the instant before `at`.
    pub fn burst(&self, tid: Tid, at: Nanos) -> Burst {
        let Some(last) = self.timeline.before(tid, at) else {
            return Burst { start: at, wake: Wake::Unknown };
        };
        let idle = self.pauses(tid, Pause::Idle);
        let before = idle.partition_point(|index| *index as usize <= last.index).checked_sub(1);
        let before = before.and_then(|index| self.timeline.span(tid, idle[index] as usize));
        match before {
            Some(span) => Burst { start: span.end.min(at), wake: wake(&span) },
            None => Burst {
                start: self.timeline.span(tid, 0).map_or(at, |span| span.start),
                wake: Wake::Unknown,
            },
        }
    }

    /// Returns the part of a burst up to `at` that follows the last wait for a condition.
    pub(crate) fn since_condition(&self, tid: Tid, burst: Burst, at: Nanos) -> Burst {
        let condition =
            self.pause_before(tid, at, Pause::Condition).filter(|span| span.end > burst.start);
        condition.map_or(burst, |span| Burst { start: span.end, wake: wake(&span) })
    }

    /// Returns the last pause of a thread that ended by `at`.
    fn pause_before(&self, tid: Tid, at: Nanos, pause: Pause) -> Option<Span> {
        let last = *self.ended(tid, &self.pauses(tid, pause), at).last()?;
        self.timeline.span(tid, last as usize)
    }

    /// Returns those of a thread's pauses that ended by a time.
    fn ended<'p>(&self, tid: Tid, pauses: &'p [u32], at: Nanos) -> &'p [u32] {
        let after = pauses.partition_point(|index| {
            self.timeline.span(tid, *index as usize).is_some_and(|span| span.end <= at)
        });
        &pauses[..after]
    }

    /// Returns the start of a thread's wait for a frame that a timer or its compositor ended at
    /// `at`.
    pub(crate) fn frame_wait(&self, tid: Tid, at: Nanos) -> Option<Nanos> {
        let span = self.timeline.before(tid, at).filter(|span| span.end == at)?;
        if !span.is_blocked() || span.length() > FRAME {
            return None;
        }
        let by_timer = wake(&span) == Wake::Interrupt && self.waits.may_time_out(&span);
        let is_for_frame = by_timer
            || span.task_waker().is_some_and(|by| {
                self.messages.has_frame_callback(by, self.tasks.pid(tid, at), span.end)
            });
        is_for_frame.then_some(span.start)
    }

    /// Returns the starts of the parts of a wait for a frame that ended at `at`, latest first:
    /// events that the thread handles meanwhile, such as a key release, interrupt it.
    pub(crate) fn frame_waits(&self, tid: Tid, at: Nanos) -> Vec<Nanos> {
        let Some(last) = self.frame_wait(tid, at) else { return Vec::new() };
        let since = at.before(FRAME);
        let parts = self.ended_within(tid, Pause::Idle, since, last, INTERRUPTIONS_MAX);
        let parts = parts.iter().filter(|span| span.is_blocked() && span.start >= since);
        std::iter::once(last).chain(parts.map(|span| span.start)).collect()
    }

    /// Returns the times in `lo..hi` at which a timer ended an idle wait of a thread longer than a
    /// frame wait.
    pub(crate) fn timer_wakes(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Vec<Nanos> {
        let idle = self.pauses(tid, Pause::Idle);
        let spans = idle.iter().filter_map(|index| self.timeline.span(tid, *index as usize));
        let within = spans.skip_while(|span| span.end < lo).take_while(|span| span.end < hi);
        let timed = within.filter(|span| wake(span) == Wake::Interrupt && span.is_blocked());
        timed.map(|span| span.end).filter(|end| self.frame_wait(tid, *end).is_none()).collect()
    }

    /// Returns `true` if a thread waits for a frame, or its last wakeup within a frame's time was
    /// for one.
    pub(crate) fn is_paced(&self, tid: Tid, at: Nanos) -> bool {
        let Some(span) = self.timeline.at(tid, at) else { return false };
        let waits = span.is_blocked();
        let until = if waits { span.start } else { at.after(Nanos(1)) };
        let last = self.since_condition(tid, self.burst(tid, until), until).start;
        let was_woken = at.since(last) <= FRAME && self.frame_wait(tid, last).is_some();
        was_woken || waits && self.frame_wait(tid, span.end).is_some()
    }

    /// Returns the tasks that ended waits of a thread inside a burst, with the time, latest first.
    pub fn helpers(&self, tid: Tid, burst: &Burst, at: Nanos) -> Vec<(Tid, Nanos)> {
        let waits = self.waits_within(tid, burst, at);
        waits.filter_map(|span| Some((span.task_waker()?, span.end))).take(HELPERS_MAX).collect()
    }

    /// Returns the last run-queue delay of a thread inside a burst up to `at` that was longer than
    /// a frame.
    pub(crate) fn last_delay(&self, tid: Tid, burst: &Burst, at: Nanos) -> Option<Span> {
        self.spans_within(tid, burst, at)
            .find(|span| span.segment.state == ThreadState::Runnable && span.length() > FRAME)
    }

    /// Returns the waits of a thread inside a burst up to a time, latest first.
    fn waits_within<'a>(
        &'a self,
        tid: Tid,
        burst: &Burst,
        at: Nanos,
    ) -> impl Iterator<Item = Span> + use<'a> {
        self.spans_within(tid, burst, at).filter(|span| span.is_blocked())
    }

    /// Returns the spans of a thread inside a burst that ended by a time, latest first.
    fn spans_within<'a>(
        &'a self,
        tid: Tid,
        burst: &Burst,
        at: Nanos,
    ) -> impl Iterator<Item = Span> + use<'a> {
        let start = burst.start;
        let after = self.timeline.before(tid, at).map_or(0, |last| last.index + 1);
        let spans = (0..after)
            .rev()
            .take(SEGMENTS_MAX)
            .filter_map(move |index| self.timeline.span(tid, index));
        spans.take_while(move |span| span.end > start).filter(move |span| span.end <= at)
    }

    /// Returns at most `max` pauses of a thread that ended after `after` and by `at`, latest first.
    pub(super) fn ended_within(
        &self,
        tid: Tid,
        pause: Pause,
        after: Nanos,
        at: Nanos,
        max: usize,
    ) -> Vec<Span> {
        let pauses = self.pauses(tid, pause);
        let ended = self.ended(tid, &pauses, at).iter().rev();
        let spans = ended.filter_map(|index| self.timeline.span(tid, *index as usize));
        spans.take_while(|span| span.end > after).take(max).collect()
    }

    /// Returns the time from `at` on at which a thread is idle again; the mark if it is not.
    pub(crate) fn idle_after(&self, tid: Tid, at: Nanos) -> Nanos {
        self.pause_after(tid, at, Pause::Idle)
    }

    /// Returns the total idle time of a thread in `lo..hi`.
    pub(crate) fn idle_time(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Nanos {
        let idle = self.pauses(tid, Pause::Idle);
        let within = idle[self.ended(tid, &idle, lo).len()..]
            .iter()
            .filter_map(|index| self.timeline.span(tid, *index as usize))
            .take_while(|span| span.start < hi);
        within
            .map(|span| span.end.min(hi).since(span.start.max(lo)))
            .fold(Nanos(0), |sum, part| Nanos(sum.0 + part.0))
    }

    /// Returns the start of a thread's next pause, or `at` if it pauses then; the mark if there is
    /// none.
    pub(crate) fn pause_after(&self, tid: Tid, at: Nanos, pause: Pause) -> Nanos {
        let Some(first) = self.timeline.at(tid, at) else { return self.mark };
        let pauses = self.pauses(tid, pause);
        let next = pauses.get(pauses.partition_point(|index| (*index as usize) < first.index));
        let next = next.and_then(|index| self.timeline.span(tid, *index as usize));
        next.map_or(self.mark, |span| span.start.max(at))
    }

    /// Returns the tasks that ended the last idle waits of a thread up to a time, one entry per
    /// wait.
    pub(super) fn last_wakers(&self, tid: Tid, at: Nanos, waits_max: usize) -> Vec<Tid> {
        let idle = self.ended_within(tid, Pause::Idle, Nanos(0), at, waits_max);
        idle.iter().filter_map(Span::task_waker).collect()
    }

    /// Returns the starts of a thread's pauses between `lo` and `hi`, in chronological order.
    pub(super) fn pauses_begun(&self, tid: Tid, pause: Pause, lo: Nanos, hi: Nanos) -> Vec<Nanos> {
        let pauses = self.pauses(tid, pause);
        let first = pauses.partition_point(|index| {
            self.timeline.span(tid, *index as usize).is_some_and(|span| span.start <= lo)
        });
        let later = pauses[first..].iter();
        let spans = later.filter_map(|index| self.timeline.span(tid, *index as usize));
        spans.map(|span| span.start).take_while(|at| *at < hi).collect()
    }

    /// Returns `true` if a thread was idle just before `at`, or did not exist.
    pub(crate) fn is_idle_at(&self, tid: Tid, at: Nanos) -> bool {
        self.is_paused_at(tid, at, Pause::Idle)
    }

    /// Returns `true` if a thread paused just before `at`, or did not exist.
    pub(crate) fn is_paused_at(&self, tid: Tid, at: Nanos, pause: Pause) -> bool {
        self.timeline.before(tid, at).is_none_or(|span| self.is_pause(&span, pause))
    }
}

fn wake(span: &Span) -> Wake {
    match (span.task_waker(), span.segment.context) {
        (Some(waker), _) => Wake::Task(waker),
        (None, 0 | CONTEXT_UNKNOWN) => Wake::Unknown,
        (None, _) => Wake::Interrupt,
    }
}
