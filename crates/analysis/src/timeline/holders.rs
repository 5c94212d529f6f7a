// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holders of the resources that threads wait for: at the mark no wakeup has ended such a wait yet,
//! and a thread that ends a wait by a fatal signal was not waited for.

use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::timeline::threads::Span;
use crate::timeline::waits::{PIPE_FILES, Waited, awaits_signal, reads};
use tipme_record::records::{Signal, Wait};
use tipme_record::{Nanos, Pid, SystemCall, Tid};

/// SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM; and the maximum distance between their record and the
/// wakeup.
const ENDS: [u32; 5] = [1, 2, 3, 9, 15];
const SIGNALLED: Nanos = Nanos::from_millis(1);

/// Signal of Ctrl-Z.
const SIGTSTP: u32 = 20;

/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU; and the maximum time from the stop of a thread to the record
/// of the signal.
const STOPS: [u32; 4] = [19, 20, 21, 22];
const STOP_SLACK: Nanos = Nanos::from_millis(1);

/// Time before a wait within which the thread may have handed its work to another thread.
const ENTRUSTED_WITHIN: Nanos = Nanos::from_millis(500);

/// Maximum distance between the exit of a process and the close of its files, and the minimum share
/// of time in event waits of a process that merely keeps a file open.
const ENDED_WITHIN: Nanos = Nanos::from_millis(2);
const IDLE_SHARE: f64 = 0.9;

/// Maximum time from the exit of one child to the wait for the next one, and maximum number of
/// segments considered.
const AGAIN_WITHIN: Nanos = Nanos::from_millis(20);
const CHILDREN_MAX: usize = 64;

/// Maximum length of a sleep between polls for the exit of a child, and maximum age of such a child
/// at the start of the interval: an earlier input may have started it.
const NAP_MAX: Nanos = Nanos::from_millis(200);
const STARTED_BEFORE: Nanos = Nanos::from_secs(10);

impl Recording {
    /// Returns `true` if another process ended a wait with a signal that terminates the process.
    pub(crate) fn was_ended_by_signal(&self, span: &Span) -> bool {
        let Some(by) = span.task_waker() else { return false };
        let pid = self.tasks.pid(span.tid, span.start);
        self.ending_signals(pid, span.end.before(SIGNALLED), span.end.after(SIGNALLED))
            .any(|signal| signal.head.tid == by && self.tasks.pid(by, span.end) != pid)
    }

    /// Returns the signals in `lo..=hi` that terminate a process.
    pub(crate) fn ending_signals(
        &self,
        pid: Pid,
        lo: Nanos,
        hi: Nanos,
    ) -> impl Iterator<Item = &Signal> {
        let first = self.signals.partition_point(|signal| signal.head.ts < lo);
        let within = self.signals[first..].iter().take_while(move |signal| signal.head.ts <= hi);
        within.filter(move |signal| signal.target == pid && ENDS.contains(&signal.number))
    }

    /// Returns the owner in the lock word of a futex on which a thread was still blocked at the
    /// mark.
    pub(crate) fn futex_owner(&self, tid: Tid) -> Option<Tid> {
        self.locks.futexes.iter().find(|futex| futex.tid == tid.0).map(|futex| Tid(futex.owner))
    }

    /// Returns the last thread of the same process that a thread woke or created before it began to
    /// wait, if that thread has worked ever since.
    pub(crate) fn entrusted(&self, span: &Span) -> Option<Tid> {
        let at_mark = self.mark.before(Nanos(1));
        let woken = self.wakes.by(span.tid, span.start.before(ENTRUSTED_WITHIN), span.start);
        let working = woken.filter(|(at, tid)| {
            self.tasks.share_process(*tid, span.tid, at_mark)
                && self.pause_after(*tid, *at, Pause::EventWait) >= self.mark
        });
        working.last().map(|(_, tid)| tid)
    }

    /// Returns the process with the other end of the pipe on which a thread was still blocked at
    /// the mark. Prefers processes that are not ancestors of the waiter, since a shell may keep the
    /// pipes of its children open.
    pub(crate) fn pipe_holder(&self, tid: Tid) -> Option<Tid> {
        let pid = self.tasks.pid(tid, self.mark);
        let holders =
            self.locks.pipes.iter().filter(|end| end.tid == tid.0).map(|end| Pid(end.holder));
        let holder =
            holders.min_by_key(|holder| (self.tasks.descends(pid, *holder, self.mark), holder.0));
        holder.map(|holder| Tid(holder.0))
    }

    /// Returns `true` if the exit of a process ended a wait for a pipe that it had merely kept
    /// open: it was a daemon that waited for events and wrote nothing any more.
    pub(crate) fn keeps_open(&self, holder: Tid, span: &Span, wait: &Wait) -> bool {
        let pid = self.tasks.pid(holder, span.end.before(Nanos(1)));
        let Some(life) = self.tasks.process(pid, span.end.before(Nanos(1))) else { return false };
        let ended = span.end >= self.mark || life.until.0.abs_diff(span.end.0) <= ENDED_WITHIN.0;
        let from = span.start.max(life.from);
        reads(wait)
            && wait.magic == PIPE_FILES
            && ended
            && self.tasks.process(life.parent, life.from).is_some_and(|parent| {
                parent.until.min(span.end).since(from).0 * 2 < span.end.since(from).0
            })
            && self.idle_share(holder, from, span.end) >= IDLE_SHARE
    }

    /// Returns the process that holds a lock on the file with this inode number, from /proc/locks.
    pub(crate) fn file_lock_owner(&self, inode: u64) -> Option<Tid> {
        self.locks
            .proc_locks
            .lines()
            .filter_map(lock_line)
            .find(|(_, of)| *of == inode)
            .map(|(pid, _)| Tid(pid.0))
    }

    /// Returns the child of a thread that waits for a signal, unless another task sent that: the
    /// youngest child that lived throughout the wait. Its exit would have been the signal.
    pub(crate) fn supervised(&self, span: &Span, wait: &Wait) -> Option<Tid> {
        if !awaits_signal(wait) || span.task_waker().is_some() {
            return None;
        }
        let pid = self.tasks.pid(span.tid, span.start);
        let children =
            self.tasks.lives().iter().filter(|life| life.parent == pid && life.tid.0 == life.pid.0);
        let lived = children
            .filter(|life| life.from <= span.start && life.until >= span.end.min(self.mark));
        lived.max_by_key(|life| (life.from, life.tid)).map(|life| life.tid)
    }

    /// Returns the child that a thread waits for all along, if another one ended the wait: it then
    /// waits again at once, having started no process, for one that lived throughout. A shell waits
    /// for its command although a background job ends.
    pub(crate) fn awaited_longer(&self, span: &Span) -> Option<Tid> {
        let mut last = *span;
        for index in (span.index + 1..).take(CHILDREN_MAX) {
            let Some(next) = self.timeline.span(span.tid, index) else { break };
            if next.start.since(last.end) > AGAIN_WITHIN {
                break;
            }
            if next.is_blocked() && self.waits.kind(&next) == Waited::Child {
                last = next;
            }
        }
        let child = self
            .tasks
            .life(last.task_waker()?, last.end.before(Nanos(1)))
            .filter(|child| last.index > span.index && child.from <= span.start)
            .filter(|child| child.parent == self.tasks.pid(span.tid, span.start))?;
        let started = |life: &Life| {
            life.parent == child.parent && life.from > span.start && life.from < last.start
        };
        (!self.tasks.lives().iter().any(started)).then_some(child.tid)
    }

    /// Returns the child whose exit a thread polls for between naps, in an interval: the child
    /// started not long before it, lived throughout the nap, and ended at the end of the interval,
    /// or not yet at the mark.
    pub(crate) fn polled_child(&self, span: &Span, (lo, hi): (Nanos, Nanos)) -> Option<Tid> {
        if span.end.since(span.start) > NAP_MAX {
            return None;
        }
        let pid = self.tasks.pid(span.tid, span.start);
        let ended = |life: &Life| match hi >= self.mark {
            true => life.until >= hi,
            false => hi.0.abs_diff(life.until.0) <= NAP_MAX.0,
        };
        let polled = |life: &&Life| {
            life.parent == pid
                && life.tid.0 == life.pid.0
                && life.from.after(STARTED_BEFORE) >= lo
                && life.from <= span.start
                && life.until >= span.end.before(NAP_MAX)
                && ended(life)
        };
        self.tasks.lives().iter().find(polled).map(|life| life.tid)
    }

    /// Returns the last stop signal that a thread got before it stopped at the start of a span.
    pub(crate) fn stop_signal(&self, span: &Span) -> Option<&Signal> {
        let pid = self.tasks.pid(span.tid, span.start);
        let group = self.tasks.process(pid, span.start).map_or(Pid(0), |life| life.group);
        let mut stops = self.signals.iter().rev().filter(|signal| {
            STOPS.contains(&signal.number) && signal.head.ts <= span.start.after(STOP_SLACK)
        });
        let direct =
            stops.clone().find(|signal| signal.target == pid || signal.target.0 == span.tid.0);
        direct.or_else(|| stops.find(|signal| signal.target == group))
    }

    /// Returns `true` for the stop signal of Ctrl-Z. A kernel thread delivers it with the input of
    /// the terminal, but the user is the sender.
    pub(crate) fn is_typed(&self, signal: &Signal) -> bool {
        let sender = self.tasks.life(signal.head.tid, signal.head.ts);
        signal.number == SIGTSTP && sender.is_some_and(|life| life.is_kernel())
    }

    /// Returns the child that a thread waits for: the one in the arguments of `wait4`, or the
    /// youngest living one.
    pub(crate) fn living_child(&self, tid: Tid, wait: Option<&Wait>) -> Option<Tid> {
        let pid = self.tasks.pid(tid, self.mark);
        let named = wait
            .filter(|wait| wait.call() == Some(SystemCall::wait4) && (wait.args[0] as i32) > 0)
            .map(|wait| wait.args[0] as u32);
        let living = self
            .tasks
            .lives()
            .iter()
            .filter(|life| life.until > self.mark && life.tid.0 == life.pid.0);
        let children = living
            .filter(|life| life.parent == pid && named.is_none_or(|named| named == life.pid.0));
        children.max_by_key(|life| (life.from, life.tid)).map(|life| life.tid)
    }
}

/// Parses holder and inode of a line of /proc/locks; `None` for waiters.
///
/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`
fn lock_line(line: &str) -> Option<(Pid, u64)> {
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next().filter(|word| *word != "->")?;
    let (pid, file) = (words.nth(2)?, words.next()?);
    let inode = file.rsplit(':').next()?;
    (!kind.is_empty()).then_some((Pid(pid.parse().ok()?), inode.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_read_from_the_lock_table() {
        assert_eq!(
            lock_line("1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"),
            Some((Pid(1234), 5678))
        );
        assert_eq!(lock_line("1: -> FLOCK  ADVISORY  WRITE 1235 fe:00:5678 0 EOF"), None);
        assert_eq!(lock_line("rubbish"), None);
    }
}
