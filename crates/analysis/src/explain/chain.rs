// SPDX-License-Identifier: MIT OR Apache-2.0
//! Critical path of an interval: the way back from its end to its start, as pieces that tile it.
//!
//! Each stage of an interaction is walked back in one thread. The times in which it ran or was
//! runnable become pieces. Where it waited for another thread, the past of that thread replaces the
//! wait, recursively. A wait that ended by itself, by a device or by an unknown waker is a piece of
//! its own. Depth and number of pieces are bounded; the rest is unknown.

use crate::decode::messages::PartPlace;
use crate::explain::feeders::Feeder;
use crate::explain::stages::{ChainStage, stages};
use crate::join::answer::Interaction;
use crate::timeline::cpu_intervals::{CpuOccupancy, on_cpu};
use crate::timeline::interrupts::Source;
use crate::timeline::packets::in_softirq;
use crate::timeline::polls::{is_internet, is_loopback};
use crate::timeline::recording::Recording;
use crate::timeline::retries::Retries;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{Waited, is_private_futex, polls, writes_to_terminal};
use tipme_record::records::Wait;
use tipme_record::{Cpu, Nanos, Pid, Tid};

/// Maximum depth to which waits are followed.
const DEPTH_MAX: usize = 64;

/// Maximum number of pieces. A program that waits for the disk 10,000 times in a second accounts
/// for 60,000 in that second.
const PIECES_MAX: usize = 1_000_000;

/// Signal that continues a stopped process, and maximum distance of its record from the wakeup.
const SIGCONT: u32 = 18;
const CONTINUED: Nanos = Nanos::from_millis(1);

/// Activity of a thread in a piece.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doing {
    Ran,
    /// A display server ran on behalf of the client of this stream.
    Served(PartPlace),
    /// Runnable while another thread ran on the CPU; tid 0 is an idle CPU, `None` is unknown.
    Queued(Option<Tid>),
    Interrupted(Source),
    Waited(Waited, Option<Wait>),
    Unknown,
}

/// Part of the interval in one thread and one state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainPiece {
    pub lo: Nanos,
    pub hi: Nanos,
    pub tid: Tid,
    pub doing: Doing,
    /// Wait through which the walk reached this piece, an index into [`Chain::vias`].
    pub via: Option<usize>,
    /// Thread that ended a wait.
    pub waker: Option<Tid>,
}

/// Wait that the past of another thread explains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Via {
    pub waiter: Tid,
    pub holder: Tid,
    pub waited: Waited,
    pub wait: Option<Wait>,
    /// Next wait up the chain.
    pub parent: Option<usize>,
}

impl Via {
    /// Returns the end of the wait, or the end of the interval if that is not recorded.
    pub(crate) fn end(&self, interval: Nanos) -> Nanos {
        self.wait.as_ref().map_or(interval, |wait| wait.head.ts.min(interval))
    }
}

/// Object of a wait, and the thread to follow if a record names it.
#[derive(Clone, Copy)]
struct BlockedWait {
    waited: Waited,
    wait: Option<Wait>,
    holder: Option<Tid>,
}

/// Pieces in order of time, and the waits through which the walk reached them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    pub pieces: Vec<ChainPiece>,
    pub vias: Vec<Via>,
    /// Time that was not walked because the maximum number of pieces was reached.
    pub left: Nanos,
}

struct Walker<'a> {
    recording: &'a Recording,
    chain: Chain,
    /// Threads on the current path of the walk.
    active: Vec<Tid>,
    through_idle: bool,
    /// Wait of the first thread for its answer, whatever else wakes the thread meanwhile.
    awaited: Option<BlockedWait>,
    /// End of the interval.
    end: Nanos,
    /// Application that dequeued the input, if any.
    client: Option<Pid>,
    /// Last retries found. Consecutive tries belong to the same ones.
    retries: Option<Retries>,
}

impl Chain {
    /// Explains an interaction from its input to its end.
    pub(crate) fn of(recording: &Recording, interaction: &Interaction) -> Chain {
        Chain::walk(recording, &stages(recording, interaction), Some(interaction.delivery.client))
    }

    /// Explains an interval of one thread.
    pub(crate) fn of_thread(recording: &Recording, tid: Tid, lo: Nanos, hi: Nanos) -> Chain {
        Chain::walk(
            recording,
            &[ChainStage { tid, lo, hi, through_idle: true, awaits: None }],
            None,
        )
    }

    fn walk(recording: &Recording, stages: &[ChainStage], client: Option<Pid>) -> Chain {
        let end = stages.last().map_or(Nanos(0), |stage| stage.hi);
        let chain = Chain::default();
        let (active, through_idle, awaited, retries) = (Vec::new(), true, None, None);
        let mut walker =
            Walker { recording, chain, active, through_idle, awaited, end, client, retries };
        for stage in stages {
            walker.through_idle = stage.through_idle;
            walker.awaited =
                stage.awaits.and_then(|file| walker.answered(stage.tid, stage.hi, file));
            walker.explain(stage.tid, stage.lo, stage.hi, None);
        }
        walker.chain.pieces.sort_by_key(|piece| piece.lo);
        walker.chain
    }

    /// Returns the waits through which the walk reached a piece, the nearest first.
    pub(crate) fn vias_of(&self, piece: &ChainPiece) -> impl Iterator<Item = &Via> + use<'_> {
        let via = |index: Option<usize>| index.and_then(|index| self.vias.get(index));
        std::iter::successors(via(piece.via), move |above| via(above.parent))
    }
}

impl Walker<'_> {
    /// Tiles `lo..hi` with the activity of a thread, from the end back.
    fn explain(&mut self, tid: Tid, lo: Nanos, hi: Nanos, via: Option<usize>) {
        if self.active.len() >= DEPTH_MAX || self.active.contains(&tid) {
            return self.piece(tid, lo, hi, Doing::Unknown, via, None);
        }
        self.active.push(tid);
        match self
            .recording
            .terminals
            .writer(tid, hi)
            .filter(|(writer, at)| *at > lo && *writer != tid)
        {
            Some((writer, at)) => {
                self.explain_own(tid, at, hi, via);
                self.explain(writer, lo, at, via);
            }
            None => self.explain_own(tid, lo, hi, via),
        }
        self.active.pop();
    }

    fn explain_own(&mut self, tid: Tid, lo: Nanos, mut hi: Nanos, via: Option<usize>) {
        let mut feeder = None;
        while hi > lo {
            if self.chain.pieces.len() >= PIECES_MAX {
                self.chain.left = self.chain.left.after(hi.since(lo));
                return self.piece(tid, lo, hi, Doing::Unknown, via, None);
            }
            let Some(span) = self.recording.timeline.before(tid, hi) else {
                return self.piece(tid, lo, hi, Doing::Unknown, via, None);
            };
            let from = span.start.max(lo);
            let fed = self.fed(&span, (from, hi), &mut feeder, via);
            self.segment(&span, from, fed, via);
            hi = from;
        }
    }

    /// Explains a wait of an idle display server by the past of the thread that was about to
    /// deliver its next event. Returns the start of the explained part, or the end of the wait if
    /// there is no such thread.
    ///
    /// Other threads may wake the server meanwhile, but the event that was late is in that thread.
    fn fed(
        &mut self,
        span: &Span,
        (lo, hi): (Nanos, Nanos),
        feeder: &mut Option<Feeder>,
        via: Option<usize>,
    ) -> Nanos {
        if !self.has_nothing_to_do(span, lo) {
            return hi;
        }
        let next =
            self.recording.feeder(span).or_else(|| via.and_then(|_| self.recording.debtor(span)));
        *feeder = next.or(*feeder);
        let late = |feeder: &Feeder| feeder.since < hi && !self.active.contains(&feeder.tid);
        let Some(Feeder { tid, since }) = feeder.filter(late) else { return hi };
        let wait = self.recording.waits.find(span).copied();
        self.chain.vias.push(Via {
            waiter: span.tid,
            holder: tid,
            waited: Waited::Events,
            wait,
            parent: via,
        });
        let from = since.max(lo);
        self.explain(tid, from, hi, Some(self.chain.vias.len() - 1));
        from
    }

    /// Returns `true` if a display server waits for its next event, and not for the end of a grab.
    fn has_nothing_to_do(&mut self, span: &Span, lo: Nanos) -> bool {
        span.segment.state == ThreadState::Blocked
            && self.is_server(span.tid, lo)
            && self.recorded(span).waited == Waited::Events
            && !self.is_grabbed(span.tid, lo)
    }

    fn segment(&mut self, span: &Span, lo: Nanos, hi: Nanos, via: Option<usize>) {
        let cpu = Cpu(u32::from(span.segment.place));
        match span.segment.state {
            ThreadState::Running => self.ran(span.tid, cpu, lo, hi, via),
            ThreadState::Runnable => self.queued(span.tid, cpu, lo, hi, via),
            ThreadState::Blocked => self.blocked(span, lo, hi, via),
            ThreadState::Absent => match span.task_waker() {
                Some(creator) => self.explain(creator, lo, hi, via),
                None => self.piece(span.tid, lo, hi, Doing::Unknown, via, None),
            },
        }
    }

    fn ran(&mut self, tid: Tid, cpu: Cpu, lo: Nanos, hi: Nanos, via: Option<usize>) {
        if !self.is_server(tid, lo) {
            return self.with_interrupts(tid, cpu, lo, hi, Doing::Ran, via);
        }
        for (doing, lo, hi) in self.served(tid, lo, hi) {
            self.with_interrupts(tid, cpu, lo, hi, doing, via);
        }
    }

    /// Splits the running time of a display server by client. The server runs for the client of the
    /// requests that it dequeued last in this burst.
    fn served(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Vec<(Doing, Nanos, Nanos)> {
        let burst = self.recording.burst(tid, lo.after(Nanos(1)));
        let before =
            self.recording.messages.last_received(tid, lo).filter(|(at, _)| *at >= burst.start);
        let mut doing = before.map_or(Doing::Ran, |(_, place)| Doing::Served(place));
        let (mut at, mut pieces) = (lo, Vec::new());
        for (_, dequeued, place) in self.recording.messages.received_within(tid, lo, hi) {
            pieces.push((doing, at, *dequeued));
            (doing, at) = (Doing::Served(*place), *dequeued);
        }
        pieces.push((doing, at, hi));
        pieces
    }

    fn queued(&mut self, tid: Tid, cpu: Cpu, lo: Nanos, hi: Nanos, via: Option<usize>) {
        for (on, lo, hi) in on_cpu(self.recording, cpu, lo, hi) {
            let doing = match on {
                CpuOccupancy::Thread(by) => Doing::Queued(by.filter(|by| *by != tid)),
                CpuOccupancy::Interrupt(source) => Doing::Interrupted(source),
            };
            self.piece(tid, lo, hi, doing, via, None);
        }
    }

    /// Separates the time of long interrupts from the running time of a thread.
    fn with_interrupts(
        &mut self,
        tid: Tid,
        cpu: Cpu,
        lo: Nanos,
        hi: Nanos,
        doing: Doing,
        via: Option<usize>,
    ) {
        for (source, lo, hi) in self.recording.interrupts.tiles(cpu, lo, hi) {
            self.piece(tid, lo, hi, source.map_or(doing, Doing::Interrupted), via, None);
        }
    }

    /// Explains a wait by the past of the thread that it depended on, or records the wait itself as
    /// a piece if that thread is unknown.
    fn blocked(&mut self, span: &Span, lo: Nanos, hi: Nanos, via: Option<usize>) {
        let recorded = self.recorded(span);
        let awaited = self
            .awaited
            .filter(|_| self.active.len() == 1 && self.may_go_on(span, recorded.waited));
        let idle = awaited.is_none() && self.is_idle(span, lo, recorded.waited);
        let own = || if idle { recorded } else { self.with_peer(span, recorded) };
        let waiting = awaited.unwrap_or_else(own);
        let holder = self.whose_past(span, &waiting, idle);
        let (waited, wait) = (waiting.waited, waiting.wait);
        if let Some(by) = self.requester(span, waited) {
            return self.asked_late(by, lo, hi, via);
        }
        if waited == Waited::Events && in_softirq(span) && self.is_late(span.tid) {
            return self.piece(span.tid, lo, hi, Doing::Waited(Waited::Network, wait), via, None);
        }
        match holder.filter(|holder| !self.active.contains(holder)) {
            Some(holder) => self.owed(span, waiting, holder, (lo, hi), via),
            None => {
                self.piece(span.tid, lo, hi, Doing::Waited(waited, wait), via, span.task_waker())
            }
        }
    }

    /// Returns the thread up the chain whose packet ended the wait of a server.
    fn requester(&self, span: &Span, waited: Waited) -> Option<Tid> {
        let asked =
            matches!(waited, Waited::Events | Waited::Network) && self.active.len() < DEPTH_MAX;
        let by = self.recording.sender(span).filter(|_| asked)?;
        self.active.split_last().filter(|(_, above)| above.contains(&by)).map(|_| by)
    }

    /// Returns `true` while the walk explains the time before a late request of this thread. An
    /// event wait in that time is part of the wait for the answer.
    fn is_late(&self, tid: Tid) -> bool {
        self.active.split_last().is_some_and(|(last, above)| *last == tid && above.contains(last))
    }

    /// Explains the time before a request by the past of the thread that sent it: the server had
    /// nothing to do until then.
    fn asked_late(&mut self, by: Tid, lo: Nanos, hi: Nanos, via: Option<usize>) {
        let above = |index: &usize| self.chain.vias.get(*index).and_then(|via| via.parent);
        let holds = |index: &usize| self.chain.vias.get(*index).is_some_and(|via| via.holder == by);
        let via = std::iter::successors(via, above).find(holds);
        self.active.push(by);
        self.explain_own(by, lo, hi, via);
        self.active.pop();
    }

    /// Returns the time at which the request of a waiter reached the other process, if that was late:
    /// it had been waiting since before the request was sent, until a packet came.
    fn in_flight(
        &self,
        span: &Span,
        waiting: BlockedWait,
        holder: Tid,
        hi: Nanos,
    ) -> Option<Nanos> {
        let asked = |wait: &Wait| (is_internet(wait) || polls(wait)) && !is_loopback(wait);
        waiting.wait.as_ref().filter(|wait| waiting.waited == Waited::Peer && asked(wait))?;
        let first = self.recording.timeline.at(holder, span.start)?;
        (in_softirq(span) && in_softirq(&first) && first.end <= hi).then_some(first.end)
    }

    /// Explains a wait by the past of another thread, unless that thread merely kept the other end
    /// of a pipe open.
    fn owed(
        &mut self,
        span: &Span,
        waiting: BlockedWait,
        holder: Tid,
        (lo, hi): (Nanos, Nanos),
        via: Option<usize>,
    ) {
        let BlockedWait { waited, wait, .. } = waiting;
        let reached = self.in_flight(span, waiting, holder, hi).map_or(lo, |at| at.clamp(lo, hi));
        self.piece(span.tid, lo, reached, Doing::Waited(Waited::Network, wait), via, None);
        let lo = reached;
        self.chain.vias.push(Via { waiter: span.tid, holder, waited, wait, parent: via });
        let via = Some(self.chain.vias.len() - 1);
        match wait.is_some_and(|wait| self.recording.keeps_open(holder, span, &wait)) {
            true => self.piece(holder, lo, hi, Doing::Waited(Waited::Peer, None), via, None),
            false => self.explain(holder, lo, hi, via),
        }
    }

    /// Returns the wait of a thread for an answer that arrived over a connection at a time: a wait
    /// for the process that sent it, or for the network.
    fn answered(&mut self, tid: Tid, at: Nanos, file: u64) -> Option<BlockedWait> {
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
    fn recorded(&mut self, span: &Span) -> BlockedWait {
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
        match wait.and_then(|wait| self.retried(span, waited, &wait)) {
            Some(retries) => {
                let waited = if waited == Waited::Sleep { Waited::Futex } else { waited };
                BlockedWait { waited, wait, holder: retries.holder }
            }
            None => BlockedWait { waited, wait, holder: None },
        }
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
    fn with_peer(&self, span: &Span, waiting: BlockedWait) -> BlockedWait {
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

    /// Returns `true` for a wait that depended on no thread: at the near end of the chain, in an
    /// idle display server, or behind a grab.
    fn is_idle(&self, span: &Span, lo: Nanos, waited: Waited) -> bool {
        let near_end =
            !self.through_idle && self.active.len() == 1 && self.recording.waits.is_idle(span);
        near_end || self.is_idle_server(span, waited) || self.is_grabbed(span.tid, lo)
    }

    /// Returns `true` if a thread in such a wait may still be waiting for its answer.
    fn may_go_on(&self, span: &Span, waited: Waited) -> bool {
        match waited {
            Waited::Events | Waited::Network | Waited::Peer => true,
            Waited::Sleep => self.recording.waits.find(span).is_some_and(polls),
            _ => self.recording.waits.is_idle(span),
        }
    }

    /// Returns the thread to follow from a wait, or `None` if the walk ends here.
    fn whose_past(&self, span: &Span, waiting: &BlockedWait, idle: bool) -> Option<Tid> {
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
        let other = |(writer, at): (Tid, Nanos)| {
            let pid = self.recording.tasks.pid(writer, at);
            let shows = self.recording.messages.streams().iter().any(|stream| stream.client == pid);
            shows && self.client.is_some_and(|client| client != pid)
        };
        writer.is_some_and(other)
    }

    /// Returns `true` for an event wait of a display server, which depends on no particular waker.
    fn is_idle_server(&self, span: &Span, waited: Waited) -> bool {
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

    fn is_server(&self, tid: Tid, at: Nanos) -> bool {
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
    fn is_grabbed(&self, tid: Tid, at: Nanos) -> bool {
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

    fn piece(
        &mut self,
        tid: Tid,
        lo: Nanos,
        hi: Nanos,
        doing: Doing,
        via: Option<usize>,
        waker: Option<Tid>,
    ) {
        if hi > lo {
            self.chain.pieces.push(ChainPiece { lo, hi, tid, doing, via, waker });
        }
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
