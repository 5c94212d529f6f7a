// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time at which a display server read the reports of its input devices.
//!
//! A device stamps a press in the interrupt that also wakes the reading thread: the input thread of
//! the server, or its only one. On a busy machine that thread runs much later, and wakes the thread
//! that notifies clients later still. The reader is therefore the thread that is woken at the time
//! stamps, and the server has a press from the reader's first run after the stamp until the reader
//! is idle again.

use crate::timeline::recording::Recording;
use crate::timeline::threads::{CONTEXT_UNKNOWN, Span, ThreadState};
use std::cmp::Reverse;
use tipme_record::{Nanos, Pid, Tid};

/// Maximum time from a time stamp to the wakeup of the reader by the same interrupt.
const WAKE_MAX: Nanos = Nanos::from_millis(5);

/// Maximum time from a stamp to its read by a server with an unknown reader.
const READ_MAX: Nanos = Nanos::from_millis(5);

/// Maximum number of stamps used to find the reader, latest first.
const STAMPS_MAX: usize = 1_024;

/// Maximum number of segments of the reader searched after a stamp.
const SEGMENTS_MAX: usize = 4_096;

/// Time in which a server read a press.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading {
    /// Earliest time at which the server had it; `None` if it did not have it at the mark.
    pub from: Option<Nanos>,
    pub until: Nanos,
}

/// Thread of a server that reads its input devices.
pub(crate) struct InputReader<'a> {
    recording: &'a Recording,
    tid: Option<Tid>,
}

impl<'a> InputReader<'a> {
    /// Finds the thread of a server that devices woke most often, and soonest, at their stamps.
    pub(crate) fn find(recording: &'a Recording, server: Pid, stamps: &[Nanos]) -> InputReader<'a> {
        let stamps = &stamps[stamps.len().saturating_sub(STAMPS_MAX)..];
        let own = recording
            .timeline
            .threads()
            .filter(|tid| recording.tasks.pid(*tid, recording.mark) == server);
        let woken = own.filter_map(|tid| {
            let delays = stamps
                .iter()
                .filter_map(|stamp| Some(wake(recording, tid, *stamp)?.end.since(*stamp).0));
            let (count, sum) =
                delays.fold((0_usize, 0_u64), |(count, sum), delay| (count + 1, sum + delay));
            (count > 0).then_some(((count, Reverse(sum), Reverse(tid)), tid))
        });
        let tid = woken.max_by_key(|(rank, _)| *rank).map(|(_, tid)| tid);
        InputReader { recording, tid }
    }

    /// Returns the time in which the server read a press with this stamp.
    pub(crate) fn reading(&self, stamp: Nanos) -> Reading {
        let known = self.tid.filter(|tid| self.recording.timeline.at(*tid, stamp).is_some());
        let Some(tid) = known else {
            return Reading { from: Some(stamp), until: stamp.after(READ_MAX) };
        };
        let from = self.turn(tid, stamp);
        // The reader may be about to go idle at the stamp, and be woken for it at once.
        let woken = wake(self.recording, tid, stamp).and_then(|span| self.turn(tid, span.end));
        let last = from.max(woken);
        let until = last.map_or(self.recording.mark, |at| self.recording.idle_after(tid, at));
        Reading { from, until }
    }

    /// Returns the first time at or after `at` at which a thread ran.
    fn turn(&self, tid: Tid, at: Nanos) -> Option<Nanos> {
        let first = self.recording.timeline.at(tid, at)?.index;
        let spans = self.recording.timeline.spans_from(tid, first).take(SEGMENTS_MAX);
        let mut ran = spans.filter(|span| span.segment.state == ThreadState::Running);
        ran.next().map(|span| span.start.max(at))
    }
}

/// Returns the first wait of a thread that a device ended at a stamp or soon after it.
fn wake(recording: &Recording, tid: Tid, stamp: Nanos) -> Option<Span> {
    let first = recording.timeline.at(tid, stamp)?.index;
    let spans = recording.timeline.spans_from(tid, first).take(SEGMENTS_MAX);
    let mut soon = spans.take_while(|span| span.end <= stamp.after(WAKE_MAX));
    soon.find(|span| span.is_blocked() && span.end >= stamp && by_device(recording, span))
}

/// Returns `true` if an interrupt ended a wait, or a kernel thread, which handles the interrupts of
/// some devices.
fn by_device(recording: &Recording, span: &Span) -> bool {
    let in_interrupt = !matches!(span.segment.context, 0 | CONTEXT_UNKNOWN);
    in_interrupt
        || span.task_waker().is_some_and(|waker| {
            let pid = recording.tasks.pid(waker, span.end);
            recording.tasks.process(pid, span.end).is_some_and(|life| life.is_kernel())
        })
}
