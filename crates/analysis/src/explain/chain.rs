// SPDX-License-Identifier: MIT OR Apache-2.0
//! Critical path of an interval: the way back from its end to its start, as pieces that tile it.
//!
//! Each stage of an interaction is walked back in one thread. The times in which it ran or was
//! runnable become pieces. Where it waited for another thread, the past of that thread replaces the
//! wait, recursively. A wait that ended by itself, by a device or by an unknown waker is a piece of
//! its own. Depth and number of pieces are bounded; the rest is unknown.

use crate::decode::messages::PartPlace;
use crate::explain::blocked_waits::{BlockedWait, BlockedWaits};
use crate::explain::feeders::Feeder;
use crate::explain::stages::{ChainStage, stages};
use crate::join::answer::Interaction;
use crate::timeline::cpu_intervals::{CpuOccupancy, on_cpu};
use crate::timeline::interrupts::Source;
use crate::timeline::packets::in_softirq;
use crate::timeline::polls::{is_internet, is_loopback};
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{Waited, polls};
use tipme_record::records::Wait;
use tipme_record::{Cpu, Nanos, Pid, Tid};

/// Maximum depth to which waits are followed.
const DEPTH_MAX: usize = 64;

/// Maximum number of pieces. A program that waits for the disk 10,000 times in a second accounts
/// for 60,000 in that second.
const PIECES_MAX: usize = 1_000_000;

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
    waits: BlockedWaits<'a>,
    chain: Chain,
    /// Threads on the current path of the walk.
    active: Vec<Tid>,
    through_idle: bool,
    /// The first thread's wait for its answer, whatever else wakes it in between.
    awaited: Option<BlockedWait>,
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
        let mut walker = Walker {
            recording,
            chain: Chain::default(),
            active: Vec::new(),
            through_idle: true,
            awaited: None,
            waits: BlockedWaits {
                recording,
                begin: stages.first().map_or(Nanos(0), |stage| stage.lo),
                end: stages.last().map_or(Nanos(0), |stage| stage.hi),
                client,
                retries: None,
            },
        };
        for stage in stages {
            walker.through_idle = stage.through_idle;
            walker.awaited =
                stage.awaits.and_then(|file| walker.waits.answered(stage.tid, stage.hi, file));
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
        let Some(Feeder { tid, since }) =
            feeder.filter(|feeder| feeder.since < hi && !self.active.contains(&feeder.tid))
        else {
            return hi;
        };
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
            && self.waits.is_server(span.tid, lo)
            && self.waits.recorded(span).waited == Waited::Events
            && !self.waits.is_grabbed(span.tid, lo)
    }

    fn segment(&mut self, span: &Span, lo: Nanos, hi: Nanos, via: Option<usize>) {
        let cpu = Cpu(u32::from(span.segment.place));
        match span.segment.state {
            ThreadState::Running => self.ran(span.tid, cpu, lo, hi, via),
            ThreadState::Runnable => self.queued(span.tid, cpu, lo, hi, via),
            ThreadState::Blocked => self.blocked(span, lo, hi, via),
            ThreadState::Absent => match span.task_waker() {
                Some(creator) => self.explain(creator, lo, hi, via),
                None => {
                    let (tid, doing) = self.after_exit(span.tid, via);
                    self.piece(tid, lo, hi, doing, via, None)
                }
            },
        }
    }

    /// Returns the waiter and its wait for a file lock that lasts beyond the exit of the holder,
    /// until the waiter tries again.
    fn after_exit(&self, tid: Tid, via: Option<usize>) -> (Tid, Doing) {
        let lock = via.and_then(|index| self.chain.vias.get(index));
        lock.filter(|via| via.waited == Waited::FileLock)
            .map_or((tid, Doing::Unknown), |via| (via.waiter, Doing::Waited(via.waited, via.wait)))
    }

    fn ran(&mut self, tid: Tid, cpu: Cpu, lo: Nanos, hi: Nanos, via: Option<usize>) {
        if !self.waits.is_server(tid, lo) {
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
        let recorded = self.waits.recorded(span);
        let awaited = self
            .awaited
            .filter(|_| self.active.len() == 1 && self.waits.may_go_on(span, recorded.waited));
        let idle = awaited.is_none() && self.is_idle(span, lo, recorded.waited);
        let waiting = awaited
            .unwrap_or_else(|| if idle { recorded } else { self.waits.with_peer(span, recorded) });
        let holder = self.waits.whose_past(span, &waiting, idle);
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

    /// Returns `true` for a wait that depended on no thread: at the near end of the chain, in an
    /// idle display server, or behind a grab.
    fn is_idle(&self, span: &Span, lo: Nanos, waited: Waited) -> bool {
        let near_end =
            !self.through_idle && self.active.len() == 1 && self.recording.waits.is_idle(span);
        near_end || self.waits.is_idle_server(span, waited) || self.waits.is_grabbed(span.tid, lo)
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
        let via = std::iter::successors(via, |index| {
            self.chain.vias.get(*index).and_then(|via| via.parent)
        })
        .find(|index| self.chain.vias.get(*index).is_some_and(|via| via.holder == by));
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
