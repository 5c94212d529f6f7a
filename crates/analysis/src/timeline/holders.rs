// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who has what a thread waits for: at the mark nobody has ended that wait yet, and who ends it by a signal that ends the
//! process was not waited for.

use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::timeline::threads::Span;
use crate::timeline::waits::{PIPE_FILES, reads};
use tipme_record::records::{Signal, Wait};
use tipme_record::{Nanos, Pid, Tid};

/// SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM; and how near their record lies to the wake-up.
const ENDS: [u32; 5] = [1, 2, 3, 9, 15];
const SIGNALLED: Nanos = Nanos::from_millis(1);

/// What a thread waits for at the mark it may have given to another one so long before.
const ENTRUSTED_WITHIN: Nanos = Nanos::from_millis(500);

/// A process that ends closes its files this near to its end; one that merely keeps one open waits for events for so much of
/// the time.
const ENDED_WITHIN: Nanos = Nanos::from_millis(2);
const IDLE_SHARE: f64 = 0.9;

impl Recording {
    /// Whether a wait was ended by who asked the process to end, or killed it.
    pub(crate) fn was_ended_by_signal(&self, span: &Span) -> bool {
        let Some(by) = span.task_waker() else { return false };
        let pid = self.tasks.pid(span.tid, span.start);
        self.ending_signals(pid, span.end.before(SIGNALLED), span.end.after(SIGNALLED))
            .any(|signal| signal.head.tid == by && self.tasks.pid(by, span.end) != pid)
    }

    /// The signals of `lo..=hi` that asked a process to end, or killed it.
    pub(crate) fn ending_signals(&self, pid: Pid, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &Signal> {
        let first = self.signals.partition_point(|signal| signal.head.ts < lo);
        let within = self.signals[first..].iter().take_while(move |signal| signal.head.ts <= hi);
        within.filter(move |signal| signal.target == pid && ENDS.contains(&signal.number))
    }

    /// The owner in the lock word that a thread still waited for at the mark.
    pub(crate) fn futex_owner(&self, tid: Tid) -> Option<Tid> {
        self.locks.futexes.iter().find(|futex| futex.tid == tid.0).map(|futex| Tid(futex.owner))
    }

    /// The thread of the same process that a thread woke or made last before it began to wait, and that has worked ever
    /// since.
    pub(crate) fn entrusted(&self, span: &Span) -> Option<Tid> {
        let pid = |tid| self.tasks.pid(tid, self.mark.before(Nanos(1)));
        let given = self.wakes.by(span.tid, span.start.before(ENTRUSTED_WITHIN), span.start);
        let works = |at, tid| self.pause_after(tid, at, Pause::EventWait) >= self.mark;
        given.filter(|(at, tid)| pid(*tid) == pid(span.tid) && works(*at, *tid)).last().map(|(_, tid)| tid)
    }

    /// The process that had the other end of the pipe which a thread still waited for at the mark: one that did not
    /// start the waiter before others, since a shell may keep what it gave to its children.
    pub(crate) fn pipe_holder(&self, tid: Tid) -> Option<Tid> {
        let pid = self.tasks.pid(tid, self.mark);
        let holders = self.locks.pipes.iter().filter(|end| end.tid == tid.0).map(|end| Pid(end.holder));
        let holder = holders.min_by_key(|holder| (self.tasks.descends(pid, *holder, self.mark), holder.0));
        holder.map(|holder| Tid(holder.0))
    }

    /// Whether the end of a process ended a wait for a pipe that it had merely kept open: it had gone to the background, where
    /// it waited for events, and writes nothing there any more.
    pub(crate) fn keeps_open(&self, holder: Tid, span: &Span, wait: &Wait) -> bool {
        let pid = self.tasks.pid(holder, span.end.before(Nanos(1)));
        let Some(life) = self.tasks.process(pid, span.end.before(Nanos(1))) else { return false };
        let ended = span.end >= self.mark || life.until.0.abs_diff(span.end.0) <= ENDED_WITHIN.0;
        let from = span.start.max(life.from);
        let left = |parent: &Life| parent.until.min(span.end).since(from).0 * 2 < span.end.since(from).0;
        reads(wait)
            && wait.magic == PIPE_FILES
            && ended
            && self.tasks.process(life.parent, life.from).is_some_and(left)
            && self.idle_share(holder, from, span.end) >= IDLE_SHARE
    }

    /// The process that holds a lock on the file with this inode number, from /proc/locks.
    pub(crate) fn file_lock_owner(&self, inode: u64) -> Option<Tid> {
        self.locks.proc_locks.lines().filter_map(lock_line).find(|(_, of)| *of == inode).map(|(pid, _)| Tid(pid.0))
    }

    /// The child that a thread waits for: the one it names, or the youngest that lives.
    pub(crate) fn living_child(&self, tid: Tid, wait: Option<&Wait>) -> Option<Tid> {
        let pid = self.tasks.pid(tid, self.mark);
        let named = wait.filter(|wait| wait.syscall == 61 && (wait.args[0] as i32) > 0).map(|wait| wait.args[0] as u32);
        let living = self.tasks.lives().iter().filter(|life| life.until > self.mark && life.tid.0 == life.pid.0);
        let children = living.filter(|life| life.parent == pid && named.is_none_or(|named| named == life.pid.0));
        children.max_by_key(|life| (life.from, life.tid)).map(|life| life.tid)
    }
}

/// Holder and inode of a line of /proc/locks; `None` for those who wait.
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
        assert_eq!(lock_line("1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"), Some((Pid(1234), 5678)));
        assert_eq!(lock_line("1: -> FLOCK  ADVISORY  WRITE 1235 fe:00:5678 0 EOF"), None);
        assert_eq!(lock_line("rubbish"), None);
    }
}
