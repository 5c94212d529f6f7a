// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blame of the pieces of a chain: kind and owner of the cause.
//!
//! The far end of the chain decides. If it waited for the disk, a CPU, memory, a stopped process or
//! the network, that is the cause, through however many locks and pipes the chain went. If it
//! merely ran or slept, the deepest lock on the way is the cause, then the deepest wait for another
//! process, then the deepest wait for a child, and finally the thread itself.

use crate::decode::messages::{PartPlace, Side};
use crate::explain::chain::{Chain, ChainPiece, Doing, Via};
use crate::model::CauseKind;
use crate::timeline::interrupts::Source;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use crate::timeline::waits::{
    HARD_INTERRUPT, Waited, has_timeout, is_condition, is_lone, is_over, is_shared_futex,
    is_traced, polls, writes_to_terminal,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use tipme_record::records::Wait;
use tipme_record::{Cpu, Device, Nanos, Pid, Tid};

/// Owner of the cause of a piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Who {
    Thread(Tid),
    /// Device with the awaited queue, and the thread that waited.
    Device(Option<Device>, Tid),
    /// Address, if known, and port.
    Address(Option<IpAddr>, u16),
    Interrupt(Source),
    Nobody,
}

/// Kind and owner of the cause of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Blame {
    pub kind: CauseKind,
    pub who: Who,
}

/// Processes that the user waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Waiter {
    /// Application that took the input.
    pub client: Pid,
    /// Command that the application started. A wait for its end is expected, so the activity of the
    /// command is the cause.
    pub command: Option<Pid>,
}

/// Finds the blame for the pieces of one interval.
pub(crate) struct BlameFinder<'a> {
    recording: &'a Recording,
    pub client: Pid,
    command: Option<Pid>,
    at: Nanos,
    family: RefCell<HashMap<Pid, bool>>,
}

/// Minimum idle time of a CPU beside a runnable thread that is more than wakeup latency.
pub(crate) const HELD_BACK_MIN: Nanos = Nanos::from_millis(4);

/// Maximum number of ancestors searched for one that existed at the time.
const ANCESTORS_MAX: usize = 8;

/// Maximum number of earlier pieces searched for the process that asked for a piece.
const BEFORE_MAX: usize = 64;

/// Maximum time from the wakeup of the waiter to the record of the child's exit.
const ENDED_SLACK: Nanos = Nanos::from_millis(10);

const UNATTRIBUTED: Blame = Blame { kind: CauseKind::Unattributed, who: Who::Nobody };

impl<'a> BlameFinder<'a> {
    pub(crate) fn new(recording: &'a Recording, waiter: Waiter, at: Nanos) -> BlameFinder<'a> {
        let Waiter { client, command } = waiter;
        BlameFinder { recording, client, command, at, family: RefCell::default() }
    }

    /// Returns the started command, or else the application that took the input.
    pub(crate) fn awaited(&self) -> Pid {
        self.command.unwrap_or(self.client)
    }

    /// Returns `true` for the application and for the command.
    fn is_awaited(&self, pid: Pid) -> bool {
        pid == self.client || Some(pid) == self.command
    }

    /// Returns `true` for the command and its descendants.
    pub(crate) fn is_of_command(&self, pid: Pid) -> bool {
        self.command.is_some_and(|command| self.recording.tasks.descends(pid, command, self.at))
    }

    fn is_command(&self, tid: Tid) -> bool {
        self.command.is_some_and(|command| self.recording.tasks.pid(tid, self.at) == command)
    }

    /// Returns `true` for the delayed application and its descendants.
    pub(crate) fn is_family(&self, pid: Pid) -> bool {
        *self
            .family
            .borrow_mut()
            .entry(pid)
            .or_insert_with(|| self.recording.tasks.descends(pid, self.client, self.at))
    }

    /// Returns the blame of a piece.
    pub(crate) fn blame(&self, chain: &Chain, piece: &ChainPiece) -> Blame {
        match piece.doing {
            Doing::Ran | Doing::Waited(Waited::Unknown | Waited::Disk, _)
                if self.freed_memory(piece) =>
            {
                Blame { kind: CauseKind::Reclaim, who: Who::Thread(piece.tid) }
            }
            Doing::Queued(by) => self.queued(chain, piece, by),
            Doing::Interrupted(source) => {
                Blame { kind: CauseKind::Interrupt, who: Who::Interrupt(source) }
            }
            Doing::Served(place) => self.served(chain, piece, place),
            Doing::Waited(waited, wait) => self.waited(chain, piece, waited, wait.as_ref()),
            Doing::Ran | Doing::Unknown => self.far_end(chain, piece),
        }
    }

    fn queued(&self, chain: &Chain, piece: &ChainPiece, by: Option<Tid>) -> Blame {
        if self.recording.throttled(piece.tid, piece.lo, piece.hi).is_some() {
            return Blame { kind: CauseKind::CpuThrottled, who: Who::Thread(piece.tid) };
        }
        match by {
            // A thread was runnable beside an idle CPU: the CPU itself was away.
            Some(Tid(0)) if piece.hi.since(piece.lo) >= HELD_BACK_MIN => {
                Blame { kind: CauseKind::Stall, who: Who::Thread(piece.tid) }
            }
            // Wakeup latency on an idle CPU belongs to the work around it.
            None | Some(Tid(0)) => self.far_end(chain, piece),
            // A thread of the same process had the CPU: the process did its work.
            Some(by) if self.is_same_process(piece, by) => self.far_end(chain, piece),
            Some(by) if self.is_same_job(piece, by) => {
                Blame { kind: CauseKind::OwnComputation, who: Who::Thread(by) }
            }
            Some(by) => match self.softirq(piece, by) {
                Some(source) => Blame { kind: CauseKind::Interrupt, who: Who::Interrupt(source) },
                None => Blame { kind: CauseKind::CpuCompetition, who: Who::Thread(by) },
            },
        }
    }

    fn is_same_process(&self, piece: &ChainPiece, by: Tid) -> bool {
        let pid = |tid| self.recording.tasks.life(tid, piece.lo).map(|life| life.pid);
        pid(by).is_some_and(|other| !self.is_kernel(by) && pid(piece.tid) == Some(other))
    }

    /// Returns `true` if two processes of the application belong to one job, such as a pipeline or
    /// a browser. They do not compete: the CPU time of either is work of the whole. The process
    /// group of a shell is excluded, since it contains several kinds of jobs.
    fn is_same_job(&self, piece: &ChainPiece, by: Tid) -> bool {
        let life = |tid| self.recording.tasks.life(tid, piece.lo);
        let (Some(own), Some(other)) = (life(piece.tid), life(by)) else { return false };
        let family = || self.is_family(own.pid) && self.is_family(other.pid);
        let of_shell =
            || own.group == own.session && self.recording.reads_terminal(Tid(own.group.0));
        own.group != Pid(0) && own.group == other.group && family() && !of_shell()
    }

    /// Returns the softirq that a ksoftirqd thread mainly handled while it ran.
    fn softirq(&self, piece: &ChainPiece, by: Tid) -> Option<Source> {
        let handles = self
            .recording
            .tasks
            .life(by, piece.lo)
            .is_some_and(|life| life.comm.starts_with("ksoftirqd/"));
        let place =
            self.recording.timeline.before(piece.tid, piece.hi).filter(|_| handles)?.segment.place;
        let ran = self.recording.timeline.at(by, piece.lo)?;
        self.recording.interrupts.main_softirq(Cpu(u32::from(place)), ran.start, ran.end)
    }

    /// Returns `true` if a thread was reclaiming memory for most of a piece.
    fn freed_memory(&self, piece: &ChainPiece) -> bool {
        let freed = self.recording.reclaiming.within(piece.tid, piece.lo, piece.hi);
        freed > Nanos(0) && freed.0 * 2 >= piece.hi.since(piece.lo).0
    }

    fn served(&self, chain: &Chain, piece: &ChainPiece, place: PartPlace) -> Blame {
        let stream = self.recording.messages.stream(place.stream);
        let other = stream
            .map(|stream| stream.client)
            .filter(|client| *client != Pid(0) && !self.is_family(*client));
        match other.filter(|_| !self.injects(place)) {
            Some(client) => Blame { kind: CauseKind::ServerBusy, who: Who::Thread(Tid(client.0)) },
            None => self.far_end(chain, piece),
        }
    }

    /// Returns `true` if a receive contained injected input, which counts as the user's own.
    fn injects(&self, place: PartPlace) -> bool {
        let Some(stream) = self.recording.messages.stream(place.stream) else { return false };
        let Some((_, sent)) = stream.sent(Side::RequestReceived, place.part) else { return false };
        let majors = self.recording.messages.majors(stream);
        self.recording.messages.words(sent).iter().any(|word| majors.injects(*word).is_some())
    }

    fn waited(
        &self,
        chain: &Chain,
        piece: &ChainPiece,
        waited: Waited,
        wait: Option<&Wait>,
    ) -> Blame {
        let device = || Who::Device(self.device(piece), piece.tid);
        match waited {
            // Terminal output is stopped by the user at that terminal.
            Waited::Stopped if wait.is_some_and(writes_to_terminal) => {
                Blame { kind: CauseKind::Stopped, who: Who::Thread(piece.tid) }
            }
            Waited::Stopped => Blame { kind: CauseKind::Stopped, who: self.stopper(piece, wait) },
            Waited::Thaw => Blame { kind: CauseKind::KernelLock, who: Who::Thread(piece.tid) },
            Waited::SwapIn => Blame { kind: CauseKind::SwapIn, who: device() },
            Waited::PageIn => Blame { kind: CauseKind::PageIn, who: device() },
            Waited::DirtyLimit => {
                let written = wait.map(|wait| wait.device).filter(|device| *device != Device(0));
                Blame { kind: CauseKind::DiskQueue, who: Who::Device(written, piece.tid) }
            }
            Waited::Disk => Blame { kind: CauseKind::DiskQueue, who: device() },
            Waited::Fsync => Blame { kind: CauseKind::Fsync, who: device() },
            Waited::Reclaim => Blame { kind: CauseKind::Reclaim, who: Who::Thread(piece.tid) },
            Waited::Network => Blame { kind: CauseKind::NetworkWait, who: self.remote(wait) },
            // The process merely keeps a pipe open.
            Waited::Peer if wait.is_none() => {
                Blame { kind: CauseKind::PeerWait, who: Who::Thread(piece.tid) }
            }
            Waited::Events
                if self
                    .recording
                    .messages
                    .is_server(self.recording.tasks.pid(piece.tid, piece.lo)) =>
            {
                self.grabbed(piece).unwrap_or_else(|| self.idle_server(chain, piece))
            }
            _ => self.grabbed(piece).unwrap_or_else(|| self.far_end(chain, piece)),
        }
    }

    fn remote(&self, wait: Option<&Wait>) -> Who {
        wait.map_or(Who::Nobody, |wait| {
            Who::Address(self.recording.far_ends.address(wait), wait.port)
        })
    }

    /// Returns the blame of an idle display server. It is no cause by itself, but a command that
    /// waits for it gets its answer from some client.
    fn idle_server(&self, chain: &Chain, piece: &ChainPiece) -> Blame {
        let waiter = |via: &Via| self.recording.tasks.pid(via.waiter, piece.lo);
        let of_command = chain.vias_of(piece).any(|via| self.is_of_command(waiter(via)));
        if of_command {
            Blame { kind: CauseKind::PeerWait, who: Who::Nobody }
        } else {
            UNATTRIBUTED
        }
    }

    /// Returns the device that completed a request and thereby ended the wait.
    fn device(&self, piece: &ChainPiece) -> Option<Device> {
        let end =
            self.recording.timeline.before(piece.tid, piece.hi).map_or(piece.hi, |span| span.end);
        self.recording.disk.completed(end, |tid| tid == piece.tid)
    }

    /// Returns the debugger that resumed a traced thread, or else the sender of the last stop
    /// signal before the thread stopped.
    fn stopper(&self, piece: &ChainPiece, wait: Option<&Wait>) -> Who {
        let tracer = wait.filter(|wait| is_traced(wait)).map(|wait| wait.waker);
        if let Some(tracer) = tracer.filter(|tracer| *tracer != Tid(0) && *tracer != piece.tid) {
            return Who::Thread(tracer);
        }
        let span = self.recording.timeline.before(piece.tid, piece.hi);
        let signal = span.and_then(|span| self.recording.stop_signal(&span));
        let sender = signal.filter(|signal| !self.recording.is_typed(signal));
        sender.map_or(Who::Thread(piece.tid), |signal| Who::Thread(signal.head.tid))
    }

    /// Returns the blame for a grab: a server that waits while requests of the application are
    /// queued is blocked by the grab of another client.
    fn grabbed(&self, piece: &ChainPiece) -> Option<Blame> {
        let pid = self.recording.tasks.pid(piece.tid, piece.lo);
        let grab = self
            .recording
            .messages
            .grab(piece.lo)
            .filter(|_| self.recording.messages.is_server(pid));
        let (grab, _) = grab?;
        let other = !self.is_family(grab);
        other.then_some(Blame { kind: CauseKind::ServerGrab, who: Who::Thread(Tid(grab.0)) })
    }

    /// Returns the blame of a far end that merely ran or slept: the way there names the cause, or
    /// else the thread itself.
    fn far_end(&self, chain: &Chain, piece: &ChainPiece) -> Blame {
        let deepest = |wanted: &dyn Fn(&Via) -> Option<CauseKind>| {
            chain.vias_of(piece).find_map(|via| {
                wanted(via).map(|kind| (kind, self.holder_then(via, piece), via.end(self.at)))
            })
        };
        let through =
            deepest(&lock).or_else(|| deepest(&|via| self.peer(via))).or_else(|| deepest(&child));
        let through = through
            .filter(|(kind, holder, _)| *kind != CauseKind::ChildWait || !self.is_command(*holder));
        // A process that waits for itself through a bus waits for its own work, but a command may
        // well wait for its terminal.
        let awaited = |holder: Tid| {
            self.command.is_none() && self.is_awaited(self.recording.tasks.pid(holder, piece.lo))
        };
        let through =
            through.filter(|(kind, holder, _)| *kind != CauseKind::PeerWait || !awaited(*holder));
        // The signaller of a condition provides work and need not be the obstacle, so conditions
        // only count if nothing else does.
        let condition = || if self.command.is_some() { None } else { deepest(&condition) };
        // The exit of a child interrupts the condition wait of its shell; a futex shared between
        // processes is a lock or a semaphore that the child held.
        let shared =
            || chain.vias_of(piece).any(|via| via.wait.as_ref().is_some_and(is_shared_futex));
        let ends_wait = |kind| {
            kind == CauseKind::PeerWait
                || through.is_none() && kind == CauseKind::LockWait && !shared()
        };
        match through.or_else(condition) {
            Some((kind, holder, end))
                if ends_wait(kind) && self.is_child_that_ended(holder, piece.lo, end) =>
            {
                Blame { kind: CauseKind::ChildWait, who: Who::Thread(holder) }
            }
            Some((kind, holder, _)) => Blame { kind, who: Who::Thread(holder) },
            None => {
                let other = self
                    .kept_from_disk(chain, piece)
                    .or_else(|| self.activated(piece))
                    .or_else(|| self.computing_fellow(piece));
                let itself = || self.ended_child(piece, self.itself(chain, piece));
                other.unwrap_or_else(|| self.unless_unknown(chain, piece, itself()))
            }
        }
    }

    /// Returns the thread that held up a wait at the time of a piece. If the process that ended the
    /// wait did not exist yet, this is its ancestor at that time.
    fn holder_then(&self, via: &Via, piece: &ChainPiece) -> Tid {
        let tasks = &self.recording.tasks;
        let waiter = tasks.pid(via.waiter, piece.lo);
        let first = tasks.life(via.holder, via.end(self.at)).filter(|life| life.from > piece.lo);
        let older =
            |life: &&Life| tasks.process(life.parent, piece.lo).filter(|above| above.pid != waiter);
        let line = std::iter::successors(first, |life| older(life)).take(ANCESTORS_MAX);
        line.last().map_or(via.holder, |life| life.tid)
    }

    /// Returns the blame for a service started on request: the thread waits for events together
    /// with the broker that started the service.
    fn activated(&self, piece: &ChainPiece) -> Option<Blame> {
        let waits = matches!(piece.doing, Doing::Waited(Waited::Events | Waited::Peer, _))
            && !self.is_kernel(piece.tid);
        let service =
            self.recording.started_on_request(piece.tid, piece.lo, piece.hi).filter(|_| waits);
        service.map(|service| Blame { kind: CauseKind::PeerWait, who: Who::Thread(service) })
    }

    /// Returns the blame for a computing thread of the same process while this thread polls with a
    /// timeout, as for the lock of an interpreter.
    fn computing_fellow(&self, piece: &ChainPiece) -> Option<Blame> {
        let Doing::Waited(Waited::Sleep, Some(wait)) = piece.doing else { return None };
        let ran = |tid: Tid| self.recording.timeline.run_time(tid, piece.lo, piece.hi);
        let threads = self
            .recording
            .descendants()
            .threads(wait.pid)
            .iter()
            .copied()
            .filter(|_| is_condition(&wait));
        let fellows = threads.filter(|tid| {
            *tid != piece.tid && self.recording.tasks.pid(*tid, piece.lo) == wait.pid
        });
        let (ran, fellow) = fellows.map(|tid| (ran(tid), tid)).max()?;
        let most = 2 * ran.0 >= piece.hi.since(piece.lo).0;
        most.then_some(Blame { kind: CauseKind::LockWait, who: Who::Thread(fellow) })
    }

    /// Names a kernel wait of unknown purpose if a kernel thread ended it and the activity of that
    /// thread explains nothing.
    fn unless_unknown(&self, chain: &Chain, piece: &ChainPiece, usual: Blame) -> Blame {
        let via = chain
            .vias_of(piece)
            .find(|via| via.waited.is_unnamed() && !self.is_kernel(via.waiter))
            .filter(|_| usual.kind == CauseKind::Unattributed);
        via.map_or(usual, |via| Blame { kind: CauseKind::KernelWait, who: Who::Thread(via.waiter) })
    }

    /// Returns the blame for a process that blocks a kernel thread from writing data to disk: it is
    /// in the middle of a change that the journal must keep atomic.
    fn kept_from_disk(&self, chain: &Chain, piece: &ChainPiece) -> Option<Blame> {
        let synced = |via: &&Via| via.waited == Waited::Fsync && self.is_kernel(via.holder);
        let changes = !self.is_kernel(piece.tid) && chain.vias_of(piece).any(|via| synced(&via));
        changes.then_some(Blame { kind: CauseKind::Fsync, who: Who::Thread(piece.tid) })
    }

    /// Blames a child that slept or ran until its exit: something waited for it in a way that the
    /// records do not show, such as a signal or a file.
    fn ended_child(&self, piece: &ChainPiece, usual: Blame) -> Blame {
        let pid = self.recording.tasks.pid(piece.tid, piece.lo);
        let life = self.recording.tasks.process(pid, piece.lo);
        let until_its_end = life.is_some_and(|life| life.until <= piece.hi.after(ENDED_SLACK));
        let ended = usual.kind != CauseKind::Unattributed && until_its_end;
        match ended && self.is_child_that_ended(piece.tid, piece.lo, self.at) {
            true => Blame { kind: CauseKind::ChildWait, who: Who::Thread(piece.tid) },
            false => usual,
        }
    }

    fn peer(&self, via: &Via) -> Option<CauseKind> {
        let process = |tid| self.recording.tasks.pid(tid, self.at);
        let other = process(via.waiter) != process(via.holder) && !self.is_kernel(via.holder);
        // An event loop on the way to the far end passes something on; at the near end it was
        // merely idle.
        let passes_on = via.waited == Waited::Events && via.parent.is_some();
        // A device operated by another process is a FUSE file system.
        let by_user = matches!(via.waited, Waited::Disk | Waited::PageIn | Waited::Fsync);
        // A kernel wait of unknown purpose that another process ends is a wait for that process.
        let unknown = via.waited.is_unnamed();
        let asks = via.waited == Waited::Peer
            || (passes_on || by_user || unknown) && !self.is_kernel(via.waiter);
        (asks && other).then_some(CauseKind::PeerWait)
    }

    fn is_kernel(&self, tid: Tid) -> bool {
        self.recording.tasks.life(tid, self.at).is_some_and(|life| life.is_kernel())
    }

    /// Returns `true` if a descendant of the client exited before a wait for it ended: its exit
    /// ended the wait, by whatever means. A process that lives on gave an answer.
    fn is_child_that_ended(&self, tid: Tid, at: Nanos, end: Nanos) -> bool {
        let pid = self.recording.tasks.pid(tid, at);
        !self.is_awaited(pid)
            && self.is_family(pid)
            && self
                .recording
                .tasks
                .process(pid, at)
                .is_some_and(|life| life.until <= end.after(ENDED_SLACK) && !self.is_killed(life))
    }

    /// Returns `true` if a process of the client's family ended this one by a signal.
    fn is_killed(&self, life: &Life) -> bool {
        let mut signals =
            self.recording.ending_signals(life.pid, life.until.before(KILLED), life.until);
        signals.any(|signal| self.is_family(signal.sender))
    }

    fn itself(&self, chain: &Chain, piece: &ChainPiece) -> Blame {
        let life = self.recording.tasks.life(piece.tid, piece.lo);
        let pid = life.map_or(Pid(piece.tid.0), |life| life.pid);
        let near = self.is_family(pid)
            || self.recording.messages.is_server(pid)
            || life.is_some_and(|life| life.is_kernel());
        let kind = match piece.doing {
            _ if self.is_injector(pid) => CauseKind::Unattributed,
            Doing::Unknown => CauseKind::Unattributed,
            _ if !near || !self.is_awaited(pid) && self.is_asked_by_others(chain, piece) => {
                CauseKind::PeerWait
            }
            Doing::Ran | Doing::Served(_) => CauseKind::OwnComputation,
            Doing::Waited(Waited::Events, Some(wait))
                if self.recording.waits_for_terminal(&wait)
                    && !self.recording.has_given_up(&wait) =>
            {
                CauseKind::Unattributed
            }
            Doing::Waited(Waited::Events, Some(wait))
                if self.is_of_command(pid) && wait.context != HARD_INTERRUPT =>
            {
                CauseKind::PeerWait
            }
            Doing::Waited(Waited::Peer, Some(wait)) if self.recording.polls_aside(&wait) => {
                CauseKind::PeerWait
            }
            Doing::Waited(_, Some(wait)) if self.awaits_events(piece.tid, &wait) => {
                CauseKind::Unattributed
            }
            Doing::Waited(Waited::Events, Some(wait)) if self.recording.is_time_up(&wait) => {
                CauseKind::TimerSleep
            }
            Doing::Waited(waited, Some(_)) if waited.is_unnamed() && !self.is_kernel(piece.tid) => {
                CauseKind::KernelWait
            }
            Doing::Waited(waited, wait) => idle_kind(waited, wait.as_ref()),
            Doing::Queued(_) => CauseKind::OwnComputation,
            Doing::Interrupted(_) => CauseKind::Unattributed,
        };
        // A waiter for a file lock without a known holder does not hold it, and a process does not
        // owe itself an answer.
        let nobody = match piece.doing {
            Doing::Waited(Waited::FileLock, _) => kind == CauseKind::LockWait,
            Doing::Waited(Waited::Peer, _) => kind == CauseKind::PeerWait && self.is_awaited(pid),
            Doing::Waited(Waited::Events, _) => {
                kind == CauseKind::PeerWait && self.is_of_command(pid)
            }
            _ => false,
        };
        Blame { kind, who: if nobody { Who::Nobody } else { Who::Thread(piece.tid) } }
    }

    /// Returns `true` if a process outside the client's family, such as a message bus, requested
    /// the work of a process. It then counts as a service, even if the client started it.
    fn is_asked_by_others(&self, chain: &Chain, piece: &ChainPiece) -> bool {
        let place = chain.pieces.partition_point(|other| other.lo < piece.lo);
        let pid = |piece: &ChainPiece| self.recording.tasks.pid(piece.tid, piece.lo);
        let other = |other: &&ChainPiece| other.tid != piece.tid && pid(other) != pid(piece);
        let before = chain.pieces[..place].iter().rev().take(BEFORE_MAX).find(other);
        before.is_some_and(|other| {
            let (asker, messages) = (pid(other), &self.recording.messages);
            let apart =
                self.is_kernel(other.tid) || messages.is_server(asker) || self.is_injector(asker);
            !apart && !self.is_family(asker)
        })
    }

    /// Returns `true` if a thread that takes input waits for its next event, which is no cause. A
    /// wait that timed out is a sleep if events do not usually find the thread in it.
    fn awaits_events(&self, tid: Tid, wait: &Wait) -> bool {
        let event_wait = self.recording.is_usual_event_wait(tid, self.recording.signature(wait));
        let time_up =
            is_over(wait) || is_lone(wait) && has_timeout(wait) && wait.context == HARD_INTERRUPT;
        let sleeps = event_wait == Some(false) && time_up;
        polls(wait) && self.recording.takes_display_input(tid) && !sleeps
            || self.recording.is_event_wait_condition(wait)
    }

    /// Returns `true` if a process injects input: it acts for the user.
    fn is_injector(&self, pid: Pid) -> bool {
        self.recording.messages.injectors().contains(&pid)
    }
}

/// Maximum time from a fatal signal to the exit of its target.
const KILLED: Nanos = Nanos::from_millis(100);

fn condition(via: &Via) -> Option<CauseKind> {
    (via.waited == Waited::Futex).then_some(CauseKind::LockWait)
}

fn lock(via: &Via) -> Option<CauseKind> {
    match via.waited {
        Waited::Futex if via.wait.as_ref().is_some_and(is_condition) => None,
        Waited::Futex | Waited::FileLock => Some(CauseKind::LockWait),
        Waited::KernelLock => Some(CauseKind::KernelLock),
        _ => None,
    }
}

fn child(via: &Via) -> Option<CauseKind> {
    (via.waited == Waited::Child).then_some(CauseKind::ChildWait)
}

fn idle_kind(waited: Waited, wait: Option<&Wait>) -> CauseKind {
    match waited {
        Waited::Sleep => CauseKind::TimerSleep,
        Waited::Child => CauseKind::ChildWait,
        Waited::Futex | Waited::FileLock => CauseKind::LockWait,
        Waited::KernelLock | Waited::Thaw => CauseKind::KernelLock,
        Waited::Peer => CauseKind::PeerWait,
        Waited::Events if wait.is_some_and(|wait| has_timeout(wait) || is_over(wait)) => {
            CauseKind::TimerSleep
        }
        _ => CauseKind::Unattributed,
    }
}
