// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits whose call does not say what they are for: polls of a few known files, and sleeps between the tries of a lock.
//!
//! A connected socket or a pipe has somebody at its other end, who is asked. A terminal, the display, a socket that
//! accepts connections: from there anybody may come, so a thread that polls them is idle. What is left (event counters,
//! timers, sockets to oneself) is for waking the thread up.

use crate::decode::messages::{Side, Stream};
use crate::timeline::attempts::AttemptWaiter;
use crate::timeline::polls::{DATAGRAM, INTERNET, is_loopback};
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::{PIPE_FILES, Waited, is_terminal_file, polls, reads};
use tipme_record::records::{Attempt, Polled, Wait};
use tipme_record::{Nanos, Pid, Tid};

const TERMINAL_FILES: u32 = 0x1cd1;
const TYPE_BITS: u32 = 0o170_000;
const TYPE_FIFO: u32 = 0o010_000;
const TYPE_CHARACTER: u32 = 0o020_000;
const UNIX: u16 = 1;
const STATE_CONNECTED: u8 = 1;
const STATE_LISTENS: u8 = 10;
const STREAM: u32 = 1;

/// An event that lay this long before the end of a wait would have ended it.
const LAY_MIN: Nanos = Nanos::from_millis(20);

/// What a polled file is to the thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum PolledRole {
    /// A remote address.
    Remote,
    /// A process at the other end.
    Peer,
    /// The other end of a pipe, whoever that is.
    Pipe,
    /// For waking the thread up.
    Inlet,
    /// Where anybody may come from.
    Open,
}

/// What a wait is for, where the call itself does not say: its kind, the wait as one for that file, and who is waited
/// for, where that is known and did not end the wait itself.
#[derive(Clone, Copy, Debug)]
pub struct NamedWait {
    pub waited: Waited,
    pub wait: Wait,
    pub holder: Option<Tid>,
}

impl Recording {
    fn role(&self, wait: &Wait, file: &Polled) -> PolledRole {
        let datagram = u32::from(file.socket) == DATAGRAM;
        match (file.family, file.mode & TYPE_BITS) {
            (0, TYPE_CHARACTER) => PolledRole::Open,
            (0, _) if file.magic == TERMINAL_FILES => PolledRole::Open,
            (0, TYPE_FIFO) => PolledRole::Pipe,
            (0, _) if file.magic == PIPE_FILES => PolledRole::Pipe,
            (0, _) => PolledRole::Inlet,
            (UNIX, _) if file.peer == wait.pid => PolledRole::Inlet,
            (UNIX, _) if self.messages.is_server(file.peer) || file.state != STATE_CONNECTED => PolledRole::Open,
            (UNIX, _) if file.peer == Pid(0) => PolledRole::Open,
            (UNIX, _) => PolledRole::Peer,
            (family, _) if INTERNET.contains(&family) && file.state == STATE_LISTENS => PolledRole::Open,
            // A datagram socket that others can find has the port of whom it answered last.
            (family, _) if INTERNET.contains(&family) && datagram && file.state != STATE_CONNECTED => PolledRole::Open,
            (family, _) if INTERNET.contains(&family) && (datagram || file.port != 0) => PolledRole::Remote,
            _ => PolledRole::Inlet,
        }
    }

    /// The roles of the files of a wait; none where anybody may come, or they are not known.
    fn roles(&self, wait: &Wait) -> Vec<(PolledRole, Polled)> {
        let roles: Vec<(PolledRole, Polled)> =
            self.polls.of(wait).iter().map(|file| (self.role(wait, file), *file)).collect();
        if roles.iter().any(|(role, _)| *role == PolledRole::Open) { Vec::new() } else { roles }
    }

    /// Whether a thread polls a remote address and nothing through which anybody could wake it: it is in the middle of
    /// something, whatever else it polls at other times.
    pub(crate) fn awaits_remote(&self, wait: &Wait) -> bool {
        let roles = self.roles(wait);
        !roles.is_empty() && roles.iter().all(|(role, _)| *role == PolledRole::Remote)
    }

    /// Whether a thread that takes events of a display polls others without its display: an event lay there meanwhile and did
    /// not end the wait.
    pub(crate) fn polls_aside(&self, wait: &Wait) -> bool {
        let files = self.polls.of(wait);
        let display = |file: &Polled| self.messages.is_server(file.peer) || is_terminal_file(file.mode, file.magic);
        let asks = polls(wait) && files.iter().any(|file| self.role(wait, file) == PolledRole::Peer);
        let own = |stream: &&Stream| stream.client == wait.pid && stream.reader(Side::EventReceived) == wait.head.tid;
        let lay = |stream: &Stream| {
            let sent = stream.side(Side::EventSent);
            let last = sent.partition_point(|part| part.ts < wait.head.ts.before(LAY_MIN)).checked_sub(1);
            let taken = |index| stream.received(Side::EventSent, index).map(|(_, part)| part.ts);
            last.is_some_and(|index| taken(index).is_some_and(|at| at >= wait.head.ts))
        };
        asks && !files.iter().any(display) && self.messages.streams().iter().filter(own).any(lay)
    }

    /// Whether a thread reads or polls a terminal in a wait: a person may be who ends it.
    pub(crate) fn waits_for_terminal(&self, wait: &Wait) -> bool {
        let polled = || self.polls.of(wait).iter().any(|file| is_terminal_file(file.mode, file.magic));
        reads(wait) && is_terminal_file(wait.mode, wait.magic) || polls(wait) && polled()
    }

    /// Whether a thread reads a terminal, also one into which nobody has typed yet.
    pub(crate) fn reads_terminal(&self, tid: Tid) -> bool {
        let waits = || self.waits.of(tid).iter().any(|wait| self.waits_for_terminal(wait));
        self.terminals.reads(tid) || waits()
    }

    /// A wait as one for the connection of an inode that is polled beside other files, or where that is 0, for the only one.
    pub(crate) fn as_remote(&self, wait: &Wait, inode: u64) -> Wait {
        let files: Vec<Polled> = self.remote_files(wait).collect();
        let only = if let [file] = files[..] { Some(file) } else { None };
        let file = if inode == 0 { only } else { files.iter().copied().find(|file| file.inode == inode) };
        file.map_or(*wait, |file| as_wait(wait, &file))
    }

    /// The remote addresses among the files that are polled in a wait.
    pub(crate) fn remote_files(&self, wait: &Wait) -> impl Iterator<Item = Polled> {
        let files = self.polls.of(wait).iter().copied();
        files.filter(move |file| self.role(wait, file) == PolledRole::Remote)
    }

    /// Names a wait in which a thread polls, or sleeps between the tries of a lock.
    pub fn named(&self, span: &Span, waited: Waited, wait: &Wait) -> Option<NamedWait> {
        match waited {
            Waited::Sleep | Waited::Events if polls(wait) && !self.polls.of(wait).is_empty() => self.asked(span, wait),
            Waited::Sleep => {
                self.tried(span, wait).map(|(wait, holder)| NamedWait { waited: Waited::FileLock, wait, holder })
            }
            _ => None,
        }
    }

    /// The file that a thread polls for an answer: the one that who ended the wait has to do with; where nobody did, the
    /// one that can be waited for most surely.
    fn asked(&self, span: &Span, wait: &Wait) -> Option<NamedWait> {
        let roles = self.roles(wait);
        let aside = self.polls_aside(wait);
        let loops = !aside && roles.iter().any(|(role, _)| *role == PolledRole::Inlet);
        let shows =
            || self.messages.is_server(wait.pid) || self.messages.streams().iter().any(|one| one.client == wait.pid);
        if loops && shows() {
            return None;
        }
        let by = span.task_waker().filter(|_| span.end < self.mark).map(|by| self.tasks.pid(by, span.end));
        let (role, file) = match by {
            Some(by) if by == wait.pid => return None,
            Some(by) => ended_by(&roles, by)?,
            None => roles.iter().min_by_key(|(role, _)| *role).filter(|(role, _)| is_asked(*role, loops))?,
        };
        let named = as_wait(wait, file);
        let peers = roles.iter().filter(|(role, _)| *role == PolledRole::Peer).count();
        let peer = (*role == PolledRole::Peer && (peers == 1 || !aside)).then_some(file.peer);
        let owner = || self.port_owner(&named).filter(|_| span.end >= self.mark);
        let holder = peer.or_else(owner).filter(|_| by.is_none()).map(|pid| Tid(pid.0));
        let waited = if *role == PolledRole::Remote && holder.is_none() { Waited::Network } else { Waited::Peer };
        Some(NamedWait { waited, wait: named, holder })
    }

    /// The process that has the port of this machine to which a thread is connected at the mark.
    fn port_owner(&self, wait: &Wait) -> Option<Pid> {
        let owners = self.ports.iter().filter(|owner| owner.port == wait.port && owner.pid != wait.pid.0);
        owners.map(|owner| Pid(owner.pid)).next().filter(|_| is_loopback(wait) && wait.socket == STREAM)
    }
}

/// Whether a thread waits for the other end of a file though nobody ended the wait: a process that it has a connection to
/// may as well be one that it serves in an event loop, and a pipe may be its own.
fn is_asked(role: PolledRole, loops: bool) -> bool {
    role == PolledRole::Remote || role == PolledRole::Peer && !loops
}

/// The file whose other end a process has that ended the wait.
fn ended_by(roles: &[(PolledRole, Polled)], by: Pid) -> Option<&(PolledRole, Polled)> {
    let own = roles.iter().find(|(role, file)| *role == PolledRole::Peer && file.peer == by);
    own.or_else(|| roles.iter().find(|(role, _)| matches!(role, PolledRole::Peer | PolledRole::Pipe)))
}

/// The wait as if its call were for that file alone.
fn as_wait(wait: &Wait, file: &Polled) -> Wait {
    Wait {
        inode: file.inode,
        mode: file.mode,
        magic: file.magic,
        peer: file.peer,
        address: file.address,
        port: file.port,
        family: file.family,
        socket: u32::from(file.socket),
        ..*wait
    }
}

impl Recording {
    /// The lock that a thread waits for by sleeping between its tries, or those of its process, or those of its parent's
    /// other children, as the wait that it is; and who held it then.
    pub fn tried(&self, span: &Span, wait: &Wait) -> Option<(Wait, Option<Tid>)> {
        let own = self.tasks.pid(span.tid, span.start);
        let parent = self.tasks.process(own, span.start).map(|life| AttemptWaiter::Parent(life.parent));
        let waiters = [AttemptWaiter::Thread(span.tid), AttemptWaiter::Parent(own)].into_iter().chain(parent);
        let failed = waiters.filter_map(|waiter| self.attempts.before(waiter, span)).next()?;
        let wait = Wait { inode: failed.inode, device: failed.device, peer: failed.holder, ..*wait };
        Some((wait, self.holder_of(failed, span.end)))
    }

    /// The process that holds a lock: the one that took it, or where that has ended, its parent, which may have the same
    /// open file.
    fn holder_of(&self, failed: &Attempt, at: Nanos) -> Option<Tid> {
        let took = self.tasks.process(failed.holder, failed.head.ts).filter(|_| failed.holder != Pid(0))?;
        let holder = if took.until >= at { took } else { self.tasks.process(took.parent, at)? };
        (holder.until >= at && holder.pid != Pid(1)).then_some(Tid(holder.pid.0))
    }
}
