// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for a lock that consist of several: each but the last times out, and the thread retries at
//! once. The kernel itself does so in some calls.
//!
//! A thread that enters a contended Java monitor waits for 1 ms, then for 8 ms, and so on up to a
//! second. The end distinguishes these waits from sleeps: on the same futex, without work in
//! between, another thread finally wakes the waiter. That thread was waited for all along.

use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::tries::{BETWEEN_MAX, RETRIES_MIN, SEGMENTS_MAX, take_longer};
use crate::timeline::waits::{Signature, Waited, is_futex, is_private_futex};
use tipme_record::records::Wait;
use tipme_record::{Nanos, Tid};

/// Consecutive waits of a thread on one futex.
#[derive(Clone, Copy)]
pub(crate) struct Retries {
    tid: Tid,
    futex: Option<Signature>,
    /// Segment indices of the first and the last one.
    ends: [usize; 2],
    /// `true` if they are one wait for a lock, and the thread that released it.
    pub is_lock: bool,
    pub holder: Option<Tid>,
}

impl Retries {
    /// Returns `true` if a wait is among them.
    pub(crate) fn contains(&self, recording: &Recording, span: &Span) -> bool {
        let [first, last] = self.ends;
        self.tid == span.tid
            && (first..=last).contains(&span.index)
            && self.futex == recording.waits_in(span)
    }
}

impl Recording {
    /// Returns `true` if a timer ended a wait for a lock, or a wait of unknown purpose that no
    /// event ends: it may be one of several retries.
    pub(crate) fn may_be_retried(&self, span: &Span, waited: Waited, wait: &Wait) -> bool {
        let for_lock = match waited {
            Waited::Sleep | Waited::Futex => is_futex(wait),
            waited => {
                matches!(waited, Waited::FileLock | Waited::KernelLock) || waited.is_unnamed()
            }
        };
        for_lock && self.timed_out(span) && !self.is_event_wait_condition(wait)
    }

    /// Returns the retries that include `span`, up to the one that another thread or the mark
    /// ended, but not after `until`.
    pub(crate) fn retries(&self, span: &Span, wait: &Wait, until: Nanos) -> Retries {
        let mut tries = self.tries(span);
        let short = tries.last().and_then(|last| self.short_try(last, wait));
        tries.extend(short);
        let last = tries.last().unwrap_or(span);
        let before = &tries[..tries.len().saturating_sub(1)];
        let holder = self.woken_by(last, wait);
        let lasts = last.end >= self.mark && take_longer(before);
        let enough = before.len() >= RETRIES_MIN
            || holder
                .zip(before.last())
                .is_some_and(|(by, one)| self.timeline.is_busy(by, one.start, one.end));
        Retries {
            tid: span.tid,
            futex: self.waits_in(span),
            ends: [tries.first().unwrap_or(span).index, last.index],
            is_lock: enough && last.end <= until && (holder.is_some() || lasts),
            holder,
        }
    }

    /// Returns the next wait after one that timed out, if it was too short for a record and the
    /// thread that ended it had been working since the earlier one began.
    fn short_try(&self, before: &Span, wait: &Wait) -> Option<Span> {
        let mut after = self.timeline.spans_from(before.tid, before.index + 1).take(SEGMENTS_MAX);
        let next = after.find(|span| span.is_blocked())?;
        let at_once = self.timeline.run_time(before.tid, before.end, next.start) < BETWEEN_MAX;
        let short = self.waits.find(&next).is_none() && next.length() < BETWEEN_MAX;
        let tried = self.timed_out(before) && at_once && short && self.woke_nobody(before, &next);
        let by = self.woken_by(&next, wait).filter(|_| tried)?;
        (self.pause_after(by, before.start, Pause::EventWait) >= next.end).then_some(next)
    }

    /// Returns the thread that ended a wait, if it can access the futex.
    fn woken_by(&self, span: &Span, wait: &Wait) -> Option<Tid> {
        span.task_waker().filter(|by| {
            !is_private_futex(wait) || self.tasks.share_process(*by, span.tid, span.end)
        })
    }
}
