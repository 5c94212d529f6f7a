// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bursts: what a thread does from the end of one idle wait to the begin of the next.

use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{CONTEXT_UNKNOWN, Span, ThreadState};
use crate::timeline::waits::Waited;
use std::rc::Rc;
use tipme_record::{Nanos, Tid};

/// Waits inside a burst whose ends are looked at, the latest ones.
const HELPERS_MAX: usize = 16;

/// Segments of a burst that are looked at, the latest ones.
pub(super) const SEGMENTS_MAX: usize = 1_024;

/// Who draws in frames waits no longer than this for the next one: 60 a second, and somewhat late.
pub(crate) const FRAME: Nanos = Nanos::from_millis(20);

/// Events during one wait for a frame that are looked at, the latest ones.
const INTERRUPTIONS_MAX: usize = 4;

/// A wait of this length has a description, unless it is older than the recording.
const DESCRIBED: Nanos = Nanos::from_millis(2);

/// Why a burst began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// A task woke or created the thread on its own time.
    Task(Tid),
    /// An interrupt or timer did.
    Interrupt,
    /// The burst is older than the records, or its wake-up was lost.
    Unknown,
}

/// The part of a burst up to some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    pub start: Nanos,
    pub wake: Wake,
}

impl Recording {
    fn pauses(&self, tid: Tid, pause: Pause) -> Rc<[u32]> {
        let find = || {
            let spans = self.timeline.spans(tid).filter(|span| self.is_pause(span, pause));
            spans.map(|span| span.index as u32).collect::<Vec<u32>>().into()
        };
        self.pauses.borrow_mut().entry((tid, pause)).or_insert_with(find).clone()
    }

    pub(crate) fn is_pause(&self, span: &Span, pause: Pause) -> bool {
        let condition = || span.segment.state == ThreadState::Blocked && self.waits.is_for_condition(span);
        match pause {
            Pause::Idle => self.separates(span),
            Pause::Condition => condition(),
            Pause::Rest => self.separates(span) || condition(),
            Pause::EventWait => self.is_event_wait(span),
            Pause::HeldUp => self.is_held_up(span),
        }
    }

    /// Whether a segment lies between two bursts.
    fn separates(&self, span: &Span) -> bool {
        match span.segment.state {
            ThreadState::Absent => true,
            ThreadState::Blocked => self.waits.is_idle(span) && !self.is_handover(span),
            ThreadState::Running | ThreadState::Runnable => false,
        }
    }

    /// Whether a thread could not go on for longer than a frame, though it waited for nobody.
    fn is_held_up(&self, span: &Span) -> bool {
        // By its length first: a busy thread has many short spans, and the kind of each takes a search.
        span.end.since(span.start) > FRAME
            && match span.segment.state {
                ThreadState::Runnable => true,
                ThreadState::Blocked => self.waits.kind(span) == Waited::Stopped,
                ThreadState::Running | ThreadState::Absent => false,
            }
    }

    /// Whether a wait that is too short for a description was ended by another thread of the process: the
    /// threads of one process wait for each other in the middle of their work.
    pub(crate) fn is_handover(&self, span: &Span) -> bool {
        let pid = |tid| self.tasks.pid(tid, span.end);
        let own = span.task_waker().is_some_and(|waker| pid(waker) == pid(span.tid));
        own && span.end.since(span.start) < DESCRIBED && self.waits.find(span).is_none()
    }

    /// The burst of a thread that the instant before `at` lies in.
    pub fn burst(&self, tid: Tid, at: Nanos) -> Burst {
        let Some(last) = self.timeline.before(tid, at) else { return Burst { start: at, wake: Wake::Unknown } };
        let idle = self.pauses(tid, Pause::Idle);
        let before = idle.partition_point(|index| *index as usize <= last.index).checked_sub(1);
        let before = before.and_then(|index| self.timeline.span(tid, idle[index] as usize));
        match before {
            Some(span) => Burst { start: span.end.min(at), wake: wake(&span) },
            None => Burst { start: self.timeline.span(tid, 0).map_or(at, |span| span.start), wake: Wake::Unknown },
        }
    }

    /// The part of a burst up to some time in which the thread did not wait for a condition.
    pub(crate) fn since_condition(&self, tid: Tid, burst: Burst, at: Nanos) -> Burst {
        let condition = self.pause_before(tid, at, Pause::Condition).filter(|span| span.end > burst.start);
        condition.map_or(burst, |span| Burst { start: span.end, wake: wake(&span) })
    }

    /// The last pause of a thread that ended by then.
    fn pause_before(&self, tid: Tid, at: Nanos, pause: Pause) -> Option<Span> {
        let last = *self.ended(tid, &self.pauses(tid, pause), at).last()?;
        self.timeline.span(tid, last as usize)
    }

    /// Those of a thread's pauses that ended by a time.
    fn ended<'p>(&self, tid: Tid, pauses: &'p [u32], at: Nanos) -> &'p [u32] {
        let ended = |index: &u32| self.timeline.span(tid, *index as usize).is_some_and(|span| span.end <= at);
        &pauses[..pauses.partition_point(ended)]
    }

    /// When a thread began to wait for a frame, where a timer or its compositor ended that wait at a time.
    pub(crate) fn frame_wait(&self, tid: Tid, at: Nanos) -> Option<Nanos> {
        let span = self.timeline.before(tid, at).filter(|span| span.end == at)?;
        let short = span.segment.state == ThreadState::Blocked && span.end.since(span.start) <= FRAME;
        let by_timer = wake(&span) == Wake::Interrupt && self.waits.may_time_out(&span);
        let by_compositor =
            || span.task_waker().is_some_and(|by| self.messages.tells_of_frame(by, self.tasks.pid(tid, at), span.end));
        (short && (by_timer || by_compositor())).then_some(span.start)
    }

    /// Begins of the waits of which a wait for a frame that ended at a time consists, the latest first: events that a thread
    /// handles meanwhile, such as the release of a key, interrupt it.
    pub(crate) fn frame_waits(&self, tid: Tid, at: Nanos) -> Vec<Nanos> {
        let Some(last) = self.frame_wait(tid, at) else { return Vec::new() };
        let since = at.before(FRAME);
        let parts = self.ended_within(tid, Pause::Idle, since, last, INTERRUPTIONS_MAX);
        let parts = parts.iter().filter(|span| span.segment.state == ThreadState::Blocked && span.start >= since);
        std::iter::once(last).chain(parts.map(|span| span.start)).collect()
    }

    /// When a timer ended idle waits of a thread in `lo..hi` that were longer than the wait for a frame.
    pub(crate) fn timer_wakes(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Vec<Nanos> {
        let idle = self.pauses(tid, Pause::Idle);
        let spans = idle.iter().filter_map(|index| self.timeline.span(tid, *index as usize));
        let within = spans.skip_while(|span| span.end < lo).take_while(|span| span.end < hi);
        let timed = within.filter(|span| wake(span) == Wake::Interrupt && span.segment.state == ThreadState::Blocked);
        timed.map(|span| span.end).filter(|end| self.frame_wait(tid, *end).is_none()).collect()
    }

    /// Whether a thread waits for a frame at a time, or was last woken for one, not long ago.
    pub(crate) fn is_paced(&self, tid: Tid, at: Nanos) -> bool {
        let Some(span) = self.timeline.at(tid, at) else { return false };
        let waits = span.segment.state == ThreadState::Blocked;
        let until = if waits { span.start } else { at.after(Nanos(1)) };
        let last = self.since_condition(tid, self.burst(tid, until), until).start;
        let was_woken = at.since(last) <= FRAME && self.frame_wait(tid, last).is_some();
        was_woken || waits && self.frame_wait(tid, span.end).is_some()
    }

    /// Tasks that ended waits of a thread inside a burst, and when; the latest first.
    pub fn helpers(&self, tid: Tid, burst: &Burst, at: Nanos) -> Vec<(Tid, Nanos)> {
        let waits = self.waits_within(tid, burst, at);
        waits.filter_map(|span| Some((span.task_waker()?, span.end))).take(HELPERS_MAX).collect()
    }

    /// The last wait of a thread for a CPU inside a burst up to a time that was longer than one for a frame.
    pub(crate) fn last_delay(&self, tid: Tid, burst: &Burst, at: Nanos) -> Option<Span> {
        let ready = |span: &Span| span.segment.state == ThreadState::Runnable && span.end.since(span.start) > FRAME;
        self.spans_within(tid, burst, at).find(ready)
    }

    /// The waits of a thread inside a burst up to a time, the latest first.
    fn waits_within<'a>(&'a self, tid: Tid, burst: &Burst, at: Nanos) -> impl Iterator<Item = Span> + use<'a> {
        self.spans_within(tid, burst, at).filter(|span| span.segment.state == ThreadState::Blocked)
    }

    /// What a thread did inside a burst and was over by a time, the latest first.
    fn spans_within<'a>(&'a self, tid: Tid, burst: &Burst, at: Nanos) -> impl Iterator<Item = Span> + use<'a> {
        let start = burst.start;
        let after = self.timeline.before(tid, at).map_or(0, |last| last.index + 1);
        let spans = (0..after).rev().take(SEGMENTS_MAX).filter_map(move |index| self.timeline.span(tid, index));
        spans.take_while(move |span| span.end > start).filter(move |span| span.end <= at)
    }

    /// The pauses of a thread that ended after one time and by another, the latest of them.
    pub(super) fn ended_within(&self, tid: Tid, pause: Pause, after: Nanos, at: Nanos, max: usize) -> Vec<Span> {
        let pauses = self.pauses(tid, pause);
        let ended = self.ended(tid, &pauses, at).iter().rev();
        let spans = ended.filter_map(|index| self.timeline.span(tid, *index as usize));
        spans.take_while(|span| span.end > after).take(max).collect()
    }

    /// When a thread is idle again at or after a time; the mark where it is not.
    pub(crate) fn idle_after(&self, tid: Tid, at: Nanos) -> Nanos {
        self.pause_after(tid, at, Pause::Idle)
    }

    /// How long a thread was idle in `lo..hi`, all its pauses together.
    pub(crate) fn idle_time(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Nanos {
        let idle = self.pauses(tid, Pause::Idle);
        let span = |index: &u32| self.timeline.span(tid, *index as usize);
        let within =
            idle[self.ended(tid, &idle, lo).len()..].iter().filter_map(span).take_while(|span| span.start < hi);
        within.map(|span| span.end.min(hi).since(span.start.max(lo))).fold(Nanos(0), |sum, part| Nanos(sum.0 + part.0))
    }

    /// When a thread pauses next, at or after a time; the mark where it does not.
    pub(crate) fn pause_after(&self, tid: Tid, at: Nanos, pause: Pause) -> Nanos {
        let Some(first) = self.timeline.at(tid, at) else { return self.mark };
        let pauses = self.pauses(tid, pause);
        let next = pauses.get(pauses.partition_point(|index| (*index as usize) < first.index));
        let next = next.and_then(|index| self.timeline.span(tid, *index as usize));
        next.map_or(self.mark, |span| span.start.max(at))
    }

    /// Tasks that ended idle waits of a thread up to a time, one for each of the latest of them.
    pub(super) fn last_wakers(&self, tid: Tid, at: Nanos, waits_max: usize) -> Vec<Tid> {
        let idle = self.ended_within(tid, Pause::Idle, Nanos(0), at, waits_max);
        idle.iter().filter_map(Span::task_waker).collect()
    }

    /// When a thread began to pause in `lo..hi`, in the order of time.
    pub(super) fn pauses_begun(&self, tid: Tid, pause: Pause, lo: Nanos, hi: Nanos) -> Vec<Nanos> {
        let pauses = self.pauses(tid, pause);
        let begin = |index: &u32| self.timeline.span(tid, *index as usize).map_or(self.mark, |span| span.start);
        let first = pauses.partition_point(|index| begin(index) <= lo);
        pauses[first..].iter().map(begin).take_while(|at| *at < hi).collect()
    }

    /// Whether a thread is idle or gone at a time.
    pub(crate) fn is_idle_at(&self, tid: Tid, at: Nanos) -> bool {
        self.is_paused_at(tid, at, Pause::Idle)
    }

    /// Whether a thread pauses or is gone at a time.
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
