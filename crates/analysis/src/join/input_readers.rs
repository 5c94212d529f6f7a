// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a display server had what its input devices reported.
//!
//! A device stamps a press in the interrupt that also wakes the thread which reads it: the server's input
//! thread, or its only one. On a busy machine that thread gets its turn much later, and wakes the one that
//! tells clients later still. So the reader is found by who is woken with the stamps, and a press lies in
//! the server's hands from the reader's first turn after the stamp on, until the reader is idle again.

use crate::timeline::recording::Recording;
use crate::timeline::threads::{CONTEXT_UNKNOWN, Span, ThreadState};
use std::cmp::Reverse;
use tipme_record::{Nanos, Pid, Tid};

/// An interrupt wakes the reader within this time of the stamp that it makes, or does not wake it at all.
const WAKE_MAX: Nanos = Nanos::from_millis(5);

/// Where the reader is not known, a server is taken to have a press within this time of its stamp.
const READ_MAX: Nanos = Nanos::from_millis(5);

/// Stamps that are looked at to find the reader, the latest ones.
const STAMPS_MAX: usize = 1_024;

/// Segments of the reader after a stamp that are looked at.
const SEGMENTS_MAX: usize = 4_096;

/// From when until when a server read a press.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reading {
    /// The earliest time at which it had it; `None` where it had not at the mark.
    pub from: Option<Nanos>,
    pub until: Nanos,
}

/// The thread of a server that reads its input devices.
pub(crate) struct InputReader<'a> {
    recording: &'a Recording,
    tid: Option<Tid>,
}

impl<'a> InputReader<'a> {
    /// Finds the thread of a server that devices woke most often, and soonest, when they made stamps.
    pub(crate) fn find(recording: &'a Recording, server: Pid, stamps: &[Nanos]) -> InputReader<'a> {
        let stamps = &stamps[stamps.len().saturating_sub(STAMPS_MAX)..];
        let own = recording.timeline.threads().filter(|tid| recording.tasks.pid(*tid, recording.mark) == server);
        let woken = own.filter_map(|tid| {
            let delays = stamps.iter().filter_map(|stamp| Some(wake(recording, tid, *stamp)?.end.since(*stamp).0));
            let (count, sum) = delays.fold((0_usize, 0_u64), |(count, sum), delay| (count + 1, sum + delay));
            (count > 0).then_some(((count, Reverse(sum), Reverse(tid)), tid))
        });
        let tid = woken.max_by_key(|(rank, _)| *rank).map(|(_, tid)| tid);
        InputReader { recording, tid }
    }

    /// When the server read a press of this time.
    pub(crate) fn reading(&self, stamp: Nanos) -> Reading {
        let known = self.tid.filter(|tid| self.recording.timeline.at(*tid, stamp).is_some());
        let Some(tid) = known else { return Reading { from: Some(stamp), until: stamp.after(READ_MAX) } };
        let from = self.turn(tid, stamp);
        // It may be about to go idle when the stamp is made, and be woken for it at once.
        let woken = wake(self.recording, tid, stamp).and_then(|span| self.turn(tid, span.end));
        let last = from.max(woken);
        let until = last.map_or(self.recording.mark, |at| self.recording.idle_after(tid, at));
        Reading { from, until }
    }

    /// The first time at or after another at which a thread ran.
    fn turn(&self, tid: Tid, at: Nanos) -> Option<Nanos> {
        let first = self.recording.timeline.at(tid, at)?.index;
        let spans = (first..).map_while(|index| self.recording.timeline.span(tid, index)).take(SEGMENTS_MAX);
        let mut ran = spans.filter(|span| span.segment.state == ThreadState::Running);
        ran.next().map(|span| span.start.max(at))
    }
}

/// The first wait of a thread that a device ended at a stamp or soon after it.
fn wake(recording: &Recording, tid: Tid, stamp: Nanos) -> Option<Span> {
    let first = recording.timeline.at(tid, stamp)?.index;
    let spans = (first..).map_while(|index| recording.timeline.span(tid, index)).take(SEGMENTS_MAX);
    let mut soon = spans.take_while(|span| span.end <= stamp.after(WAKE_MAX));
    soon.find(|span| span.segment.state == ThreadState::Blocked && span.end >= stamp && by_device(recording, span))
}

/// Whether an interrupt ended a wait, or a thread of the kernel, which handles those of some devices.
fn by_device(recording: &Recording, span: &Span) -> bool {
    let in_interrupt = !matches!(span.segment.context, 0 | CONTEXT_UNKNOWN);
    let by_kernel = |waker| {
        let pid = recording.tasks.pid(waker, span.end);
        recording.tasks.process(pid, span.end).is_some_and(|life| life.is_kernel())
    };
    in_interrupt || span.task_waker().is_some_and(by_kernel)
}
