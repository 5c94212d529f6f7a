// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread, device or other resource that a blocked thread on a chain depends on.

use crate::timeline::recording::Recording;
use crate::timeline::retries::Retries;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{
    Waited, has_timeout, is_over, is_private_futex, polls, writes_to_terminal,
};
use tipme_record::records::Wait;
use tipme_record::{Nanos, Pid, Tid};

/// Signal that continues a stopped process, and maximum distance of its record from the wakeup.
const SIGCONT: u32 = 18;
const CONTINUED: Nanos = Nanos::from_millis(1);

/// Object of a wait, and the thread to follow if a record names it.
#[derive(Clone, Copy)]
pub(super) struct BlockedWait {
    pub waited: Waited,
    pub wait: Option<Wait>,
    pub holder: Option<Tid>,
}

/// Finder of what waits of one chain depended on.
pub(super) struct BlockedWaits<'a> {
    pub recording: &'a Recording,
    /// Begin and end of the interval.
    pub begin: Nanos,
    pub end: Nanos,
    /// Application that dequeued the input, if any.
    pub client: Option<Pid>,
    /// Last retries found. Consecutive tries belong to the same ones.
    pub retries: Option<Retries>,
}

impl BlockedWaits<'_> {
    /// Returns the wait of a thread for an answer that arrived over a connection at a time: a wait
    /// for the process that sent it, or for the network.
    pub(super) fn answered(&mut self, tid: Tid, at: Nanos, file: u64) -> Option<BlockedWait> {
        let span = self
            .recording
            .timeline
            .before(tid, at)
            .filter(|span| span.segment.state == ThreadState::Blocked)?;
        let recorded = self.recorded(&span);
        let wait = recorded.wait.map(|wait| self.recording.as_remote(&wait, file));
        let waiting = self.with_peer(&span, BlockedWait { wait, ..recorded });
        let network = BlockedWait { waited: Waited::Network, wait, holder: None };
        Some(if waiting.holder.is_some() { waiting } else { network })
    }

    /// Returns the wait of a span, from its own record and from related records.
    pub(super) fn recorded(&mut self, span: &Span) -> BlockedWait {
        let wait = self.recording.waits.find(span).copied();
        let stopped = self.was_stopped(span, wait.as_ref());
        let waited = if stopped { Waited::Stopped } else { self.recording.waits.kind(span) };
        if let Some(named) = wait.and_then(|wait| self.recording.named(span, waited, &wait)) {
            return BlockedWait {
                waited: named.waited,
                wait: Some(named.wait),
                holder: named.holder,
            };
        }
        if let Some(child) = wait.and_then(|wait| self.recording.supervised(span, &wait)) {
            return BlockedWait { waited: Waited::Child, wait, holder: Some(child) };
        }
        if waited == Waited::Child
            && let Some(child) = self.recording.awaited_longer(span)
        {
            return BlockedWait { waited, wait, holder: Some(child) };
        }
        if let Some(child) = self.polled_child(span, waited, wait.as_ref()) {
            return BlockedWait { waited: Waited::Child, wait, holder: Some(child) };
        }
        match wait.and_then(|wait| self.retried(span, waited, &wait)) {
            Some(retries) => {
                let waited = if waited == Waited::Sleep { Waited::Futex } else { waited };
                BlockedWait { waited, wait, holder: retries.holder }
            }
            None => BlockedWait { waited, wait, holder: None },
        }
    }

    /// Returns the child whose exit a thread polls for, if a wait is a nap between two checks.
    fn polled_child(&self, span: &Span, waited: Waited, wait: Option<&Wait>) -> Option<Tid> {
        let naps = match waited {
            Waited::Sleep => true,
            Waited::Events => wait.is_some_and(|wait| has_timeout(wait) || is_over(wait)),
            _ => false,
        };
        naps.then(|| self.recording.polled_child(span, (self.begin, self.end))).flatten()
    }

    /// Finds the series of lock attempts that a wait is part of.
    fn retried(&mut self, span: &Span, waited: Waited, wait: &Wait) -> Option<Retries> {
        if !self.recording.may_be_retried(span, waited, wait) {
            return None;
        }
        let known = self.retries.filter(|retries| retries.contains(self.recording, span));
        let retries = known.unwrap_or_else(|| self.recording.retries(span, wait, self.end));
        self.retries = Some(retries);
        self.retries.filter(|retries| retries.is_lock)
    }

    /// Turns a wait for a local socket, or for a stopped display of a terminal, into a wait for the
    /// process behind it.
    pub(super) fn with_peer(&self, span: &Span, waiting: BlockedWait) -> BlockedWait {
        let asks = matches!(
            waiting.waited,
            Waited::Events | Waited::Sleep | Waited::Network | Waited::Peer
        );
        let behind = || self.recording.loopback_peer(span, waiting.wait.as_ref());
        match if asks { behind().or_else(|| self.recording.stopped_display(span)) } else { None } {
            Some(peer) => BlockedWait { waited: Waited::Peer, holder: Some(peer), ..waiting },
            None => waiting,
        }
    }

    /// Returns `true` if a thread in such a wait may still be waiting for its answer.
    pub(super) fn may_go_on(&self, span: &Span, waited: Waited) -> bool {
        match waited {
            Waited::Events | Waited::Network | Waited::Peer => true,
            Waited::Sleep => self.recording.waits.find(span).is_some_and(polls),
            _ => self.recording.waits.is_idle(span),
        }
    }

    /// Returns the thread to follow from a wait, or `None` if the walk ends here.
    pub(super) fn whose_past(&self, span: &Span, waiting: &BlockedWait, idle: bool) -> Option<Tid> {
        let ends = idle
            || self.recording.was_ended_by_signal(span)
            || self.was_ended_by_person(span)
            || ends_here(waiting.waited) && !self.ended_by_user(span, waiting.waited);
        let known =
            || waiting.holder.or_else(|| self.holder(span, waiting.wait.as_ref(), waiting.waited));
        if ends { None } else { known() }
    }

    /// Returns `true` if typing into the terminal of another application ended the wait.
    fn was_ended_by_person(&self, span: &Span) -> bool {
        if !self.recording.terminals.reads(span.tid) {
            return false;
        }
        let writer = span.task_waker().and_then(|by| self.recording.terminals.writer(by, span.end));
        writer.is_some_and(|(writer, at): (Tid, Nanos)| {
            let pid = self.recording.tasks.pid(writer, at);
            let shows = self.recording.messages.streams().iter().any(|stream| stream.client == pid);
            shows && self.client.is_some_and(|client| client != pid)
        })
    }

    /// Returns `true` for an event wait of a display server, which depends on no particular waker.
    pub(super) fn is_idle_server(&self, span: &Span, waited: Waited) -> bool {
        waited == Waited::Events && self.is_server(span.tid, span.start)
    }

    /// Returns `true` for a wait to be resumed that is not recorded as one: of a stopped process,
    /// or for stopped terminal output.
    fn was_stopped(&self, span: &Span, wait: Option<&Wait>) -> bool {
        self.was_continued(span, wait)
            || wait.is_some_and(|wait| self.recording.is_output_stopped(span, wait))
    }

    /// Returns `true` if SIGCONT from another process ended a wait for a private futex, which that
    /// process cannot know.
    fn was_continued(&self, span: &Span, wait: Option<&Wait>) -> bool {
        let pid = |tid| self.recording.tasks.pid(tid, span.start);
        let private = wait.is_some_and(is_private_futex) && span.end < self.recording.mark;
        let other = span.task_waker().filter(|by| private && pid(*by) != pid(span.tid));
        other.is_some_and(|by| {
            self.recording.signals.iter().any(|signal| {
                let near = signal.head.ts.0.abs_diff(span.end.0) <= CONTINUED.0;
                signal.number == SIGCONT
                    && signal.head.tid == by
                    && signal.target == pid(span.tid)
                    && near
            })
        })
    }

    pub(super) fn is_server(&self, tid: Tid, at: Nanos) -> bool {
        self.recording.messages.is_server(self.recording.tasks.pid(tid, at))
    }

    fn is_kernel(&self, tid: Tid, at: Nanos) -> bool {
        self.recording.tasks.life(tid, at).is_none_or(|life| life.is_kernel())
    }

    /// Returns `true` if a task of another process ended a wait for a device, as a FUSE server
    /// does.
    fn ended_by_user(&self, span: &Span, waited: Waited) -> bool {
        let pid = |tid| self.recording.tasks.pid(tid, span.start);
        let device = matches!(waited, Waited::Disk | Waited::PageIn | Waited::Fsync);
        let Some(by) = span.task_waker().filter(|_| device) else { return false };
        if self.is_kernel(by, span.end.before(Nanos(1))) {
            return self.waited_for_user(by, span);
        }
        pid(by) != pid(span.tid) && !self.recording.disk.completed_of(span.tid, span.end)
    }

    /// Returns `true` if a kernel thread that ended a wait was itself blocked on another process
    /// for most of it, like the worker of a loop device with its image on a FUSE file system.
    fn waited_for_user(&self, worker: Tid, span: &Span) -> bool {
        let Some(first) = self.recording.timeline.at(worker, span.start) else { return false };
        let spans = (first.index..).map_while(|index| self.recording.timeline.span(worker, index));
        let within = spans.take_while(|other| other.start < span.end);
        let mut waits = within.filter(|other| other.segment.state == ThreadState::Blocked);
        waits.any(|other| {
            let user = other.task_waker().filter(|by| !self.is_kernel(*by, other.end));
            let long = other.end.min(span.end).since(other.start.max(span.start)).0 * 2
                > span.end.since(span.start).0;
            long && user.is_some() && self.recording.waits.kind(&other) == Waited::Peer
        })
    }

    /// Returns `true` if a display server waits for the end of a client's grab, whatever wakes it
    /// meanwhile.
    pub(super) fn is_grabbed(&self, tid: Tid, at: Nanos) -> bool {
        self.is_server(tid, at) && self.recording.messages.grab(at).is_some()
    }

    /// Returns the thread to follow from a wait: the waker, or the holder of the object for a wait
    /// that lasts at the mark.
    fn holder(&self, span: &Span, wait: Option<&Wait>, waited: Waited) -> Option<Tid> {
        if span.end < self.recording.mark {
            return span.task_waker();
        }
        let holder = match waited {
            Waited::Futex => {
                self.recording.futex_owner(span.tid).or_else(|| self.recording.entrusted(span))
            }
            Waited::FileLock => wait.and_then(|wait| self.recording.file_lock_owner(wait.inode)),
            Waited::Child => self.recording.living_child(span.tid, wait),
            Waited::Peer if wait.is_some_and(writes_to_terminal) => {
                self.recording.terminals.other_ends(span.tid).into_iter().next()
            }
            Waited::Peer => {
                self.recording.pipe_holder(span.tid).or(wait.map(|wait| Tid(wait.peer.0)))
            }
            _ => None,
        };
        holder.filter(|holder| *holder != Tid(0) && *holder != span.tid)
    }
}

/// Returns `true` for waits that need no other thread to explain them, whatever ended them.
fn ends_here(waited: Waited) -> bool {
    use Waited::{DirtyLimit, Disk, Fsync, Network, PageIn, Reclaim, Sleep, Stopped, SwapIn, Thaw};
    matches!(
        waited,
        Stopped | Thaw | SwapIn | Reclaim | DirtyLimit | Fsync | PageIn | Disk | Sleep | Network
    )
}
