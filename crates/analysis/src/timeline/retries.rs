// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for a lock that consist of several: each but the last times out, and the thread retries at
//! once. The kernel itself does so in some calls.
//!
//! A thread that enters a contended Java monitor waits for 1 ms, then for 8 ms, and so on up to a
//! second. The end distinguishes these waits from sleeps: on the same futex, without work in
//! between, another thread finally wakes the waiter. That thread was waited for all along.

use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{HARD_INTERRUPT, Signature, Waited, is_futex, is_private_futex};
use tipme_record::records::Wait;
use tipme_record::{Nanos, SystemCall, Tid};

/// Minimum number of consecutive timeouts: a single one may be a sleep before an unrelated wait,
/// unless the waker computed all the time.
const RETRIES_MIN: usize = 2;

/// Maximum number of retries followed in either direction; those beyond it are classified on their
/// own.
const RETRIES_MAX: usize = 4_096;

/// Limits between two retries: run time and unrelated waits in total, and number of segments.
const BETWEEN_MAX: Nanos = Nanos::from_millis(1);
const SEGMENTS_MAX: usize = 16;

/// The same for retries inside the kernel: waits too short for a record lie between them.
const IN_CALL_MAX: Nanos = Nanos::from_millis(10);

/// Minimum ratio of the last retry to the first one at the mark, when no thread has ended the wait
/// yet. Each retry must also be at least 9/10 as long as the one before.
const GROWTH_MIN: u64 = 4;

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

    /// Returns `true` for the last of several waits for a lock, each longer than the one before: the
    /// thread rests only after it.
    pub(crate) fn is_last_retry(&self, span: &Span) -> bool {
        let tries = self.tries(span);
        let before = &tries[..tries.len().saturating_sub(1)];
        before.len() >= RETRIES_MIN && take_longer(before)
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

    /// Returns the consecutive waits that include `span`: all but the last timed out.
    fn tries(&self, span: &Span) -> Vec<Span> {
        let before = std::iter::successors(Some(*span), |span| {
            self.next_try(span, (0..span.index).rev()).filter(|before| self.timed_out(before))
        });
        let after = std::iter::successors(Some(*span), |span| {
            self.next_try(span, span.index + 1..).filter(|_| self.timed_out(span))
        });
        let mut tries: Vec<Span> = before.skip(1).take(RETRIES_MAX).collect();
        tries.reverse();
        tries.extend(after.take(RETRIES_MAX));
        tries
    }

    /// Returns the next wait on the same futex in the direction of `indices`, if the thread did
    /// nothing in between.
    fn next_try(&self, span: &Span, indices: impl Iterator<Item = usize>) -> Option<Span> {
        let futex = self.waits_in(span);
        let is_futex = futex.is_some_and(|(call, _)| call == Some(SystemCall::futex));
        let mut ran = Nanos(0);
        for index in indices.take(SEGMENTS_MAX) {
            let other = self.timeline.span(span.tid, index)?;
            match other.segment.state {
                ThreadState::Absent => return None,
                ThreadState::Blocked if self.waits_in(&other) == futex => {
                    let at_once = ran < if is_futex { BETWEEN_MAX } else { IN_CALL_MAX };
                    return Some(other)
                        .filter(|other| at_once && (!is_futex || self.woke_nobody(span, other)));
                }
                ThreadState::Blocked if !is_futex && self.waits.find(&other).is_none() => {}
                ThreadState::Running | ThreadState::Blocked => ran = ran.after(other.length()),
                ThreadState::Runnable => {}
            }
        }
        None
    }

    /// Returns `true` if a thread woke no other one between two of its waits: a wakeup would show
    /// work or news for others.
    fn woke_nobody(&self, one: &Span, other: &Span) -> bool {
        let (first, then) = if one.index < other.index { (one, other) } else { (other, one) };
        self.wakes.by(one.tid, first.end, then.start).next().is_none()
    }

    /// Returns `true` if a timer ended a wait; the timers of the kernel's own locks run in a
    /// softirq.
    fn timed_out(&self, span: &Span) -> bool {
        self.waits.find(span).is_some_and(|wait| match is_futex(wait) {
            true => wait.context == HARD_INTERRUPT,
            false => span.task_waker().is_none() && span.end < self.mark,
        })
    }

    /// Returns the thread that ended a wait, if it can access the futex.
    fn woken_by(&self, span: &Span, wait: &Wait) -> Option<Tid> {
        span.task_waker().filter(|by| {
            !is_private_futex(wait) || self.tasks.share_process(*by, span.tid, span.end)
        })
    }
}

/// Returns `true` if retries get longer and longer.
fn take_longer(tries: &[Span]) -> bool {
    let lengths: Vec<u64> = tries.iter().map(|span| span.length().0).collect();
    let grow = lengths.is_sorted_by(|one, next| next.saturating_mul(10) >= one.saturating_mul(9));
    grow && lengths
        .first()
        .zip(lengths.last())
        .is_some_and(|(first, last)| *last >= first.saturating_mul(GROWTH_MIN))
}
