// SPDX-License-Identifier: MIT OR Apache-2.0
//! Purpose of waits that the system call does not reveal: polls of a few known files, and sleeps
//! between attempts at a lock.
//!
//! A connected socket or a pipe has a process at its other end, from which an answer is due.
//! Anything may arrive from a terminal, the display or a listening socket, so a thread that polls
//! one of them is idle. The remaining files (event counters, timers, sockets to the own process)
//! serve to wake the thread up.

use crate::decode::messages::{Side, Stream};
use crate::timeline::attempts::AttemptWaiter;
use crate::timeline::polls::{DATAGRAM, INTERNET, is_loopback};
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::{
    PIPE_FILES, TYPE_BITS, TYPE_FIFO, Waited, is_terminal_file, polls, reads,
};
use tipme_record::records::{Attempt, Polled, Wait};
use tipme_record::{Nanos, Pid, Tid};

const UNIX: u16 = 1;
const STATE_CONNECTED: u8 = 1;
const STATE_CONNECTS: u8 = 2;
const STATE_LISTENS: u8 = 10;
const STREAM: u16 = 1;

/// Minimum time for which an event was pending before the end of a wait that it would have ended.
const LAY_MIN: Nanos = Nanos::from_millis(20);

/// Role of a polled file for the thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum PolledRole {
    /// A connection to a remote address.
    Remote,
    /// A connection to another process.
    Peer,
    /// A pipe, with an unknown process at the other end.
    Pipe,
    /// A file to wake the thread up.
    Inlet,
    /// A source that any client may use.
    Open,
}

/// Purpose of a wait that the call does not reveal: its kind, the wait rewritten as one for a
/// single file, and the process waited for, if it is known and did not end the wait itself.
#[derive(Clone, Copy, Debug)]
pub struct NamedWait {
    pub waited: Waited,
    pub wait: Wait,
    pub holder: Option<Tid>,
}

impl Recording {
    fn role(&self, wait: &Wait, file: &Polled) -> PolledRole {
        let datagram = file.socket == DATAGRAM;
        let is_connected = file.state == STATE_CONNECTED;
        let is_server = self.messages.is_server(file.peer);
        match file.family {
            0 if is_terminal_file(file.mode, file.magic) => PolledRole::Open,
            0 if file.mode & TYPE_BITS == TYPE_FIFO || file.magic == PIPE_FILES => PolledRole::Pipe,
            UNIX if file.peer == wait.pid => PolledRole::Inlet,
            UNIX if is_server || !is_connected || file.peer == Pid(0) => PolledRole::Open,
            UNIX => PolledRole::Peer,
            family if !INTERNET.contains(&family) => PolledRole::Inlet,
            _ if file.state == STATE_LISTENS => PolledRole::Open,
            // An unconnected datagram socket has the port of the last peer that it answered.
            _ if datagram && !is_connected => PolledRole::Open,
            _ if datagram || file.port != 0 => PolledRole::Remote,
            _ => PolledRole::Inlet,
        }
    }

    /// Returns the files of a wait with their roles; empty if any client may end the wait, or the
    /// files are unknown.
    fn roles(&self, wait: &Wait) -> Vec<(PolledRole, Polled)> {
        let roles: Vec<(PolledRole, Polled)> =
            self.polls.files(wait).iter().map(|file| (self.role(wait, file), *file)).collect();
        if roles.iter().any(|(role, _)| *role == PolledRole::Open) { Vec::new() } else { roles }
    }

    /// Returns `true` if a thread polls only remote addresses: it is in the middle of its work,
    /// whatever else it polls at other times.
    pub(crate) fn awaits_remote(&self, wait: &Wait) -> bool {
        let roles = self.roles(wait);
        !roles.is_empty() && roles.iter().all(|(role, _)| *role == PolledRole::Remote)
    }

    /// Returns `true` if a thread that receives display events polls other files without its
    /// display: an event was pending meanwhile and did not end the wait.
    pub(crate) fn polls_aside(&self, wait: &Wait) -> bool {
        let files = self.polls.files(wait);
        let asks =
            polls(wait) && files.iter().any(|file| self.role(wait, file) == PolledRole::Peer);
        let polls_display = files.iter().any(|file| {
            self.messages.is_server(file.peer) || is_terminal_file(file.mode, file.magic)
        });
        asks && !polls_display
            && self.messages.streams_of(wait.pid).any(|stream| {
                stream.reader(Side::EventReceived) == wait.head.tid
                    && had_pending_event(stream, wait.head.ts)
            })
    }

    /// Returns `true` if a wait reads or polls a terminal, so that the user may end it.
    pub(crate) fn waits_for_terminal(&self, wait: &Wait) -> bool {
        reads(wait) && is_terminal_file(wait.mode, wait.magic)
            || polls(wait)
                && self.polls.files(wait).iter().any(|file| is_terminal_file(file.mode, file.magic))
    }

    /// Returns `true` if a thread reads a terminal, even one without input so far.
    pub(crate) fn reads_terminal(&self, tid: Tid) -> bool {
        self.terminals.reads(tid)
            || self.waits.of_thread(tid).iter().any(|wait| self.waits_for_terminal(wait))
    }

    /// Returns `true` if a thread ever waited for its terminal and for no other file.
    pub(crate) fn waits_for_nothing_but_terminal(&self, tid: Tid) -> bool {
        let mut waits = self.waits.of_thread(tid).iter();
        waits.any(|wait| {
            let mut files = self.polls.files(wait).iter();
            self.waits_for_terminal(wait)
                && files.all(|file| is_terminal_file(file.mode, file.magic))
        })
    }

    /// Rewrites a wait as one for the polled connection with this inode, or, if `inode` is 0, for
    /// the only remote connection, or the only one that is not established yet.
    pub(crate) fn as_remote(&self, wait: &Wait, inode: u64) -> Wait {
        let files: Vec<Polled> = self.remote_files(wait).collect();
        let connecting: Vec<Polled> = files.iter().copied().filter(connects).collect();
        let file = match (&files[..], &connecting[..]) {
            _ if inode != 0 => files.iter().find(|file| file.inode == inode),
            ([only], _) | (_, [only]) => Some(only),
            _ => None,
        };
        file.map_or(*wait, |file| as_wait(wait, file))
    }

    /// Returns the remote connections among the polled files of a wait.
    pub(crate) fn remote_files(&self, wait: &Wait) -> impl Iterator<Item = Polled> {
        let files = self.polls.files(wait).iter().copied();
        files.filter(move |file| self.role(wait, file) == PolledRole::Remote)
    }

    /// Returns `true` if a thread waits for a connection that the other end has not accepted yet. A
    /// retry may then arrive in the context of any thread.
    pub(crate) fn awaits_connection(&self, wait: &Wait) -> bool {
        self.remote_files(wait).any(|file| connects(&file))
    }

    /// Finds the purpose of a wait in which a thread polls, or sleeps between attempts at a lock.
    pub fn named(&self, span: &Span, waited: Waited, wait: &Wait) -> Option<NamedWait> {
        match waited {
            Waited::Sleep | Waited::Events if polls(wait) && !self.polls.files(wait).is_empty() => {
                self.asked(span, wait)
            }
            Waited::Sleep => self.tried(span, wait).map(|(wait, holder)| NamedWait {
                waited: Waited::FileLock,
                wait,
                holder,
            }),
            _ => None,
        }
    }

    /// Finds the polled file from which a thread awaits an answer: the one of the process that
    /// ended the wait, or, for an unfinished wait, the most certain one.
    fn asked(&self, span: &Span, wait: &Wait) -> Option<NamedWait> {
        let roles = self.roles(wait);
        let aside = self.polls_aside(wait);
        let loops = !aside && roles.iter().any(|(role, _)| *role == PolledRole::Inlet);
        if loops
            && (self.messages.is_server(wait.pid)
                || self.messages.streams_of(wait.pid).next().is_some())
        {
            return None;
        }
        let by = span
            .task_waker()
            .filter(|_| span.end < self.mark)
            .map(|by| self.tasks.pid(by, span.end));
        let (role, file) = match by {
            Some(by) if by == wait.pid => return None,
            Some(by) => ended_by(&roles, by)?,
            None => {
                let first = roles.iter().min_by_key(|(role, file)| (*role, !connects(file)));
                first.filter(|(role, _)| is_asked(*role, loops))?
            }
        };
        let named = as_wait(wait, file);
        let peers = roles.iter().filter(|(role, _)| *role == PolledRole::Peer).count();
        let peer = (*role == PolledRole::Peer && (peers == 1 || !aside)).then_some(file.peer);
        let holder = peer
            .or_else(|| self.port_owner(&named).filter(|_| span.end >= self.mark))
            .filter(|_| by.is_none())
            .map(|pid| Tid(pid.0));
        let waited = if *role == PolledRole::Remote && holder.is_none() {
            Waited::Network
        } else {
            Waited::Peer
        };
        Some(NamedWait { waited, wait: named, holder })
    }

    /// Returns the process that owns the local port to which a thread is connected at the mark.
    fn port_owner(&self, wait: &Wait) -> Option<Pid> {
        let owners =
            self.ports.iter().filter(|owner| owner.port == wait.port && owner.pid != wait.pid.0);
        owners
            .map(|owner| Pid(owner.pid))
            .next()
            .filter(|_| is_loopback(wait) && wait.socket == STREAM)
    }
}

/// Returns `true` if an event had been sent to a client for at least [`LAY_MIN`], and the client
/// received it only after `at`.
fn had_pending_event(stream: &Stream, at: Nanos) -> bool {
    let sent = stream.side(Side::EventSent);
    let last = sent.partition_point(|part| part.ts < at.before(LAY_MIN)).checked_sub(1);
    let receipt = last.and_then(|last| stream.receipt(Side::EventSent, last));
    receipt.is_some_and(|receipt| receipt.ts >= at)
}

/// Returns `true` for a connection that the other end has not accepted yet. It explains a wait
/// better than an established one, which may be idle.
fn connects(file: &Polled) -> bool {
    INTERNET.contains(&file.family) && file.state == STATE_CONNECTS
}

/// Returns `true` if a thread waits for the other end of a file even though no process ended the
/// wait. A connected process may also be a client that the thread serves in an event loop, and a
/// pipe may be its own.
fn is_asked(role: PolledRole, loops: bool) -> bool {
    role == PolledRole::Remote || role == PolledRole::Peer && !loops
}

/// Returns the file with the process at its other end that ended the wait.
fn ended_by(roles: &[(PolledRole, Polled)], by: Pid) -> Option<&(PolledRole, Polled)> {
    let own = roles.iter().find(|(role, file)| *role == PolledRole::Peer && file.peer == by);
    own.or_else(|| {
        roles.iter().find(|(role, _)| matches!(role, PolledRole::Peer | PolledRole::Pipe))
    })
}

/// Rewrites a wait as if its call were for this file alone.
fn as_wait(wait: &Wait, file: &Polled) -> Wait {
    Wait {
        inode: file.inode,
        mode: file.mode,
        magic: file.magic,
        peer: file.peer,
        address: file.address,
        port: file.port,
        family: file.family,
        socket: file.socket,
        ..*wait
    }
}

impl Recording {
    /// Returns the lock that a thread waits for by sleeping between attempts, rewritten as a wait
    /// for that lock, with its holder. The attempts are those of the thread, of its child
    /// processes, or of its siblings.
    pub fn tried(&self, span: &Span, wait: &Wait) -> Option<(Wait, Option<Tid>)> {
        let own = self.tasks.pid(span.tid, span.start);
        let parent =
            self.tasks.process(own, span.start).map(|life| AttemptWaiter::Parent(life.parent));
        let waiters =
            [AttemptWaiter::Thread(span.tid), AttemptWaiter::Parent(own)].into_iter().chain(parent);
        let failed = waiters.filter_map(|waiter| self.attempts.before(waiter, span)).next()?;
        let wait =
            Wait { inode: failed.inode, device: failed.device, peer: failed.holder, ..*wait };
        Some((wait, self.holder_of(failed, span.end)))
    }

    /// Returns the process that held a lock in an attempt: the one that acquired it, or, if that
    /// had exited before, its parent, which may share the open file.
    fn holder_of(&self, failed: &Attempt, at: Nanos) -> Option<Tid> {
        let took = self
            .tasks
            .process(failed.holder, failed.head.ts)
            .filter(|_| failed.holder != Pid(0))?;
        if took.until >= failed.head.ts {
            return Some(Tid(took.pid.0));
        }
        let parent = self.tasks.process(took.parent, at)?;
        (parent.until >= at && parent.pid != Pid(1)).then_some(Tid(parent.pid.0))
    }
}
