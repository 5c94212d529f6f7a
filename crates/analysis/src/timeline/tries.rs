// SPDX-License-Identifier: MIT OR Apache-2.0
//! Consecutive waits of a thread at one place, all but the last of which timed out.

use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{HARD_INTERRUPT, Signature, is_futex, signature};
use tipme_record::records::Wait;
use tipme_record::{Nanos, SystemCall};

/// Minimum number of consecutive timeouts: a single one may be a sleep before an unrelated wait,
/// unless the waker computed all the time.
pub(super) const RETRIES_MIN: usize = 2;

/// Maximum number of retries followed in either direction; those beyond it are classified on their
/// own.
const RETRIES_MAX: usize = 4_096;

/// Limits between two retries: run time and unrelated waits in total, and number of segments.
pub(super) const BETWEEN_MAX: Nanos = Nanos::from_millis(1);
pub(super) const SEGMENTS_MAX: usize = 16;

/// The same for retries inside the kernel: waits too short for a record lie between them.
const IN_CALL_MAX: Nanos = Nanos::from_millis(10);

/// Minimum ratio of the last retry to the first one at the mark, when no thread has ended the wait
/// yet. Each retry must also be at least 9/10 as long as the one before.
const GROWTH_MIN: u64 = 4;

impl Recording {
    /// Returns the signature that distinguishes a wait from the others of its thread.
    pub fn signature(&self, wait: &Wait) -> Signature {
        signature(wait, self.polls.files(wait).first().map(|file| file.inode))
    }

    /// Returns the signature of a blocked span, if its wait is recorded.
    pub(crate) fn waits_in(&self, span: &Span) -> Option<Signature> {
        let wait = self.waits.find(span).filter(|_| span.is_blocked());
        wait.map(|wait| self.signature(wait))
    }

    /// Returns `true` for the last of several waits for a lock, each longer than the one before: the
    /// thread rests only after it.
    pub(crate) fn is_last_retry(&self, span: &Span) -> bool {
        let tries = self.tries(span);
        let before = &tries[..tries.len().saturating_sub(1)];
        before.len() >= RETRIES_MIN && take_longer(before)
    }

    /// Returns the consecutive waits that include `span`: all but the last timed out.
    pub(super) fn tries(&self, span: &Span) -> Vec<Span> {
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
    pub(super) fn woke_nobody(&self, one: &Span, other: &Span) -> bool {
        let (first, then) = if one.index < other.index { (one, other) } else { (other, one) };
        self.wakes.by(one.tid, first.end, then.start).next().is_none()
    }

    /// Returns `true` if a timer ended a wait; the timers of the kernel's own locks run in a
    /// softirq.
    pub(super) fn timed_out(&self, span: &Span) -> bool {
        self.waits.find(span).is_some_and(|wait| match is_futex(wait) {
            true => wait.context == HARD_INTERRUPT,
            false => span.task_waker().is_none() && span.end < self.mark,
        })
    }
}

/// Returns `true` if retries get longer and longer.
pub(super) fn take_longer(tries: &[Span]) -> bool {
    let lengths: Vec<u64> = tries.iter().map(|span| span.length().0).collect();
    let grow = lengths.is_sorted_by(|one, next| next.saturating_mul(10) >= one.saturating_mul(9));
    grow && lengths
        .first()
        .zip(lengths.last())
        .is_some_and(|(first, last)| *last >= first.saturating_mul(GROWTH_MIN))
}
