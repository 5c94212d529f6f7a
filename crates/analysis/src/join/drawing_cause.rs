// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cause of a drawing: the way back over wakeups, terminals and display messages to a burst in
//! which the client dequeued an input event.
//!
//! An idle wait leads to its waker only, since the earlier work of the thread is unrelated. So does
//! a wait for a condition in threads that dequeue no input themselves: they get their work in this
//! way. Inside a burst, the thread itself and the threads that ended its waits may lead to an
//! input; the latest one counts. A write to the terminal of a busy thread does not wake it, but is
//! read in the end, unless another program reads it: each such write is a way of its own. So is
//! work handed by input threads to a runnable thread of their process that got no CPU, and a
//! request that a stopped or runnable thread may have received: the reply of an input method
//! answers a key handed to it.
//!
//! A thread that draws in frames is woken for the next one by a timer or a Wayland compositor: over
//! a short wait of that kind, the way continues to the earlier work of the thread. A thread that
//! already drew frame after frame when the input was dequeued would have drawn anyway: then the
//! drawing may or may not answer the input.

use crate::decode::messages::Side;
use crate::join::server_drawings::missed;
use crate::timeline::bursts::{Burst, Wake};
use crate::timeline::recording::Recording;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use tipme_record::{Nanos, Pid, Tid};

/// Maximum number of threads visited in one walk.
const NODES_MAX: usize = 128;

/// Maximum number of writes to a busy thread's terminal that are followed, latest first.
const WRITES_MAX: usize = 16;

/// Maximum number of cached steps and the places they lead to; the cache is cleared beyond it.
const STEPS_MAX: usize = 262_144;

/// Maximum number of frame waits on one way: timers begin, draw and show a frame.
const FRAMES_MAX: usize = 3;

/// Time that the way spends in one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hop {
    pub tid: Tid,
    pub lo: Nanos,
    pub hi: Nanos,
    /// A network answer for which the thread waited ends the hop, whatever woke the thread before:
    /// inode of the connection, 0 if unknown.
    pub awaits: Option<u64>,
}

/// Burst that dequeued input: the thread, the time in which it could have dequeued it, and the way
/// there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct InputBurst {
    pub tid: Tid,
    pub from: Nanos,
    pub until: Nanos,
    pub hops: Vec<Hop>,
    /// The drawing would have come without the input, too.
    pub doubtful: bool,
}

/// End of a walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trace {
    /// In bursts that dequeued input, earliest first.
    Input(Vec<InputBurst>),
    /// At a timer, a device or an older event: no input caused the drawing.
    Elsewhere,
    /// Unknown: the way was lost.
    Lost,
}

/// Continuation of the way from a thread's work until a time: the same in each walk over a
/// connection.
enum WalkStep {
    /// Another thread wrote the data that it delivered to a terminal, at a time.
    Written(Tid, Nanos),
    /// The thread had dequeued input: start of the burst, and the latest receipt in it.
    Input {
        from: Nanos,
        latest: Nanos,
    },
    /// A client requested it, at a time.
    Requested(Tid, Nanos),
    Work(Origins),
}

/// Possible origins of a thread's work, each a thread and a time.
struct Origins {
    burst: Burst,
    /// Each is a separate way.
    apart: Vec<(Tid, Nanos)>,
    helpers: Vec<(Tid, Nanos)>,
    /// Starts of its wait for a frame, which each interrupting event splits.
    frame: Vec<Nanos>,
}

/// Cache of the steps of all walks over one connection: consecutive drawings have most of their way
/// in common.
pub(crate) struct Steps<'a> {
    recording: &'a Recording,
    receipts: &'a Receipts,
    stream: usize,
    client: Pid,
    known: HashMap<(Tid, Nanos), Rc<WalkStep>>,
    /// Number of known steps, plus the places that they lead to.
    kept: usize,
}

/// Receipts of input events on one stream, by thread of the client.
#[derive(Default)]
pub(crate) struct Receipts {
    by_tid: HashMap<Tid, Vec<Nanos>>,
    earliest: Option<Nanos>,
}

struct Node {
    tid: Tid,
    hi: Nanos,
    parent: usize,
    /// Index of its way in the walk's `best`.
    way: usize,
    /// Number of frame waits between it and the drawing.
    frames: usize,
    /// `true` if the last of these waits was in the same thread.
    before_frame: bool,
    /// `true` if an event interrupted that wait later.
    interrupted: bool,
}

/// One walk back.
struct CauseWalk<'s, 'a> {
    steps: &'s mut Steps<'a>,
    nodes: Vec<Node>,
    /// Nodes still to visit, by time.
    open: BTreeSet<(Nanos, usize)>,
    /// Node of each way, thread and time.
    known: HashMap<(usize, Tid, Nanos), usize>,
    /// WayEnd place of each way so far.
    best: Vec<Option<WayEnd>>,
    lost: bool,
}

/// A place that dequeued input.
#[derive(Clone, Copy)]
struct WayEnd {
    node: usize,
    /// Start of the burst.
    from: Nanos,
    /// Latest receipt in the burst.
    latest: Nanos,
    /// A thread on the way already drew frame after frame.
    doubtful: bool,
}

impl Hop {
    pub(crate) fn new(tid: Tid, lo: Nanos, hi: Nanos) -> Hop {
        Hop { tid, lo, hi, awaits: None }
    }
}

impl Receipts {
    pub(crate) fn add(&mut self, tid: Tid, at: Nanos) {
        let times = self.by_tid.entry(tid).or_default();
        let index = times.partition_point(|time| *time <= at);
        times.insert(index, at);
        self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
    }

    /// Returns `true` if any thread received an input in `lo..=hi`.
    pub(crate) fn any(&self, lo: Nanos, hi: Nanos) -> bool {
        self.by_tid.keys().any(|tid| self.latest(*tid, lo, hi).is_some())
    }

    /// Returns the latest receipt of a thread in `lo..=hi`.
    fn latest(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        let times = self.by_tid.get(&tid)?;
        let index = times.partition_point(|time| *time <= hi).checked_sub(1)?;
        times.get(index).copied().filter(|time| *time >= lo)
    }
}

impl WalkStep {
    /// Returns the size of the step: itself and the places that it leads to.
    fn places(&self) -> usize {
        match self {
            WalkStep::Written(..) | WalkStep::Input { .. } | WalkStep::Requested(..) => 1,
            WalkStep::Work(work) => 1 + work.apart.len() + work.helpers.len() + work.frame.len(),
        }
    }
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        receipts: &'a Receipts,
        stream: usize,
    ) -> Steps<'a> {
        let client = recording.messages.stream(stream).map_or(Pid(0), |stream| stream.client);
        Steps { recording, receipts, stream, client, known: HashMap::new(), kept: 0 }
    }

    /// Walks back from the work of a thread at a time.
    pub(crate) fn back(&mut self, tid: Tid, at: Nanos) -> Trace {
        let (nodes, open, known, best) = (Vec::new(), BTreeSet::new(), HashMap::new(), Vec::new());
        CauseWalk { steps: self, nodes, open, known, best, lost: false }.back(tid, at)
    }

    /// Returns the step back from the work of a thread until a time, from the cache if possible.
    fn leads_of(&mut self, tid: Tid, hi: Nanos) -> Rc<WalkStep> {
        if let Some(step) = self.known.get(&(tid, hi)) {
            return Rc::clone(step);
        }
        if self.kept >= STEPS_MAX {
            self.known.clear();
            self.kept = 0;
        }
        let step = Rc::new(self.find(tid, hi));
        self.kept += step.places();
        self.known.insert((tid, hi), Rc::clone(&step));
        step
    }

    fn find(&self, tid: Tid, hi: Nanos) -> WalkStep {
        if let Some((writer, at)) = self.recording.terminals.writer(tid, hi) {
            return WalkStep::Written(writer, at);
        }
        let burst = self.burst(tid, hi);
        if let Some(latest) = self.receipts.latest(tid, burst.start, hi) {
            return WalkStep::Input { from: burst.start, latest };
        }
        if let Some((client, at)) = self.request_before(tid, burst.start, hi) {
            return WalkStep::Requested(client, at);
        }
        let written = self.recording.terminals.written_to(tid, burst.start, hi).take(WRITES_MAX);
        let written = written.filter(|(_, at)| !self.recording.is_read_by_another(tid, *at, hi));
        let (readers, askers) = (self.readers(tid, &burst, hi), self.askers(tid, &burst, hi));
        let apart = written.chain(readers).chain(askers).collect();
        let helpers = self.recording.helpers(tid, &burst, hi);
        WalkStep::Work(Origins {
            burst,
            apart,
            helpers,
            frame: self.recording.frame_waits(tid, burst.start),
        })
    }

    /// Returns the burst of a thread; for one that receives no input, only the part since its last
    /// wait for a condition.
    fn burst(&self, tid: Tid, hi: Nanos) -> Burst {
        let burst = self.recording.burst(tid, hi);
        let takes_input =
            self.receipts.by_tid.contains_key(&tid) || self.recording.terminals.reads(tid);
        if takes_input { burst } else { self.recording.since_condition(tid, burst, hi) }
    }

    /// Returns the sender and time of the last request on this stream that a server dequeued, which
    /// it answers. The server cannot have been idle since: if it was, the right send is not
    /// recorded, and the request counts from its receipt.
    fn request_before(&self, server: Tid, lo: Nanos, hi: Nanos) -> Option<(Tid, Nanos)> {
        let (at, place) = self.recording.messages.last_received(server, hi)?;
        let stream = self.recording.messages.stream(place.stream)?;
        let (_, sent) = stream.sent(Side::RequestReceived, place.part)?;
        let since =
            if missed(self.recording, sent.ts, (at, server)) { at } else { sent.ts.min(at) };
        (at >= lo && place.stream == self.stream).then_some((sent.tid, since))
    }

    /// Returns the threads that dequeue input and ran while another one of their process waited
    /// long for a CPU: work handed to a runnable thread causes no wakeup.
    fn readers(&self, tid: Tid, burst: &Burst, hi: Nanos) -> Vec<(Tid, Nanos)> {
        let takes_input = self.receipts.by_tid.contains_key(&tid);
        if takes_input || self.recording.tasks.pid(tid, hi) != self.client {
            return Vec::new();
        }
        let Some(ready) = self.recording.last_delay(tid, burst, hi) else { return Vec::new() };
        let ran = self.receipts.by_tid.keys().filter_map(|reader| {
            Some((*reader, self.recording.timeline.last_ran(*reader, ready.start, ready.end)?))
        });
        let mut readers: Vec<(Tid, Nanos)> = ran.collect();
        readers.sort_unstable();
        readers
    }

    /// Returns the bursts in which a thread may have been sent a request while it was held up;
    /// requests to display servers are recorded.
    fn askers(&self, tid: Tid, burst: &Burst, hi: Nanos) -> Vec<(Tid, Nanos)> {
        if self.recording.messages.is_server(self.recording.tasks.pid(tid, hi)) {
            return Vec::new();
        }
        self.recording.askers(tid, burst, hi)
    }
}

impl CauseWalk<'_, '_> {
    fn back(mut self, tid: Tid, at: Nanos) -> Trace {
        let Some(earliest) = self.steps.receipts.earliest else { return Trace::Elsewhere };
        self.best.push(None);
        self.add(tid, at, usize::MAX, 0);
        // Latest first: the latest receipt counts, and the nodes are bounded.
        while let Some((_, index)) = self.open.pop_last() {
            let node = &self.nodes[index];
            let known = self.best[node.way].map_or(earliest, |best| best.latest);
            if node.hi >= known {
                self.visit(index);
            }
        }
        let mut found: Vec<WayEnd> = self.best.iter().flatten().copied().collect();
        found.sort_by_key(|best| best.latest);
        match found.is_empty() {
            false => Trace::Input(found.into_iter().map(|best| self.input_burst(best)).collect()),
            true if self.lost => Trace::Lost,
            true => Trace::Elsewhere,
        }
    }

    fn visit(&mut self, index: usize) {
        let (tid, hi, way) = (self.nodes[index].tid, self.nodes[index].hi, self.nodes[index].way);
        match &*self.steps.leads_of(tid, hi) {
            WalkStep::Written(writer, at) => self.add(*writer, *at, index, way),
            WalkStep::Input { from, latest } => self.end(index, *from, *latest),
            _ if self.nodes.len() >= NODES_MAX => self.lost = true,
            WalkStep::Requested(client, at) => self.add(*client, *at, index, way),
            WalkStep::Work(work) => self.go_on(index, work),
        }
    }

    /// Ends a way at a node that dequeued input.
    fn end(&mut self, index: usize, from: Nanos, latest: Nanos) {
        let way = self.nodes[index].way;
        if self.best[way]
            .is_none_or(|best| best.latest < latest || self.is_shorter(best, (index, latest)))
        {
            let doubtful = self.would_come_anyway(index, latest);
            self.best[way] = Some(WayEnd { node: index, from, latest, doubtful });
        }
    }

    /// Adds the possible origins of a node's work.
    fn go_on(&mut self, index: usize, work: &Origins) {
        let way = self.nodes[index].way;
        for (tid, at) in &work.apart {
            self.best.push(None);
            self.add(*tid, *at, index, self.best.len() - 1);
        }
        for (helper, at) in &work.helpers {
            self.add(*helper, *at, index, way);
        }
        match work.burst.wake {
            Wake::Task(waker) => {
                self.add_before_frame(index, &work.frame);
                self.add(waker, work.burst.start, index, way);
            }
            Wake::Interrupt => self.add_before_frame(index, &work.frame),
            Wake::Unknown => self.lost = true,
        }
    }

    /// Returns `true` if a node leads to the same receipt over fewer threads: a thread that was
    /// waited for on the way explains a wait, and is no part of the way.
    fn is_shorter(&self, best: WayEnd, (index, latest): (usize, Nanos)) -> bool {
        best.latest == latest && self.length(index) < self.length(best.node)
    }

    /// Returns the number of interrupted waits between a node and the drawing, which count most,
    /// and the number of threads, including both ends.
    fn length(&self, index: usize) -> (usize, usize) {
        let way = std::iter::successors(self.nodes.get(index), |node| self.nodes.get(node.parent));
        way.fold((0, 0), |(waits, threads), node| {
            (waits + usize::from(node.interrupted), threads + 1)
        })
    }

    fn add(&mut self, tid: Tid, hi: Nanos, parent: usize, way: usize) {
        let (most, frames) =
            self.nodes.get(parent).map_or((hi, 0), |parent| (parent.hi, parent.frames));
        self.push(Node {
            tid,
            hi: hi.min(most),
            parent,
            way,
            frames,
            before_frame: false,
            interrupted: false,
        });
    }

    /// Adds a node, unless its process is an input injector other than the client: it stands for
    /// the user, and its actions belong to another input.
    fn push(&mut self, node: Node) {
        let place = (node.way, node.tid, node.hi);
        if let Some(index) = self.known.get(&place).copied() {
            return self.shorten(index, node);
        }
        if self.nodes.len() >= NODES_MAX || node.tid == Tid(0) {
            self.lost = true;
            return;
        }
        let Steps { recording, client, .. } = self.steps;
        let pid = recording.tasks.pid(node.tid, node.hi);
        if pid == *client || !recording.messages.injectors().contains(&pid) {
            self.known.insert(place, self.nodes.len());
            self.open.insert((node.hi, self.nodes.len()));
            self.nodes.push(node);
        }
    }

    /// Keeps the shorter way to a known node: two threads that wait for each other in turn lead to
    /// the same place again and again, which is visited once.
    fn shorten(&mut self, index: usize, node: Node) {
        let (known, new) = (self.length(self.nodes[index].parent), self.length(node.parent));
        if new < known || (new == known && self.open.contains(&(node.hi, index))) {
            self.nodes[index] = node;
        }
    }

    /// Adds the work of a thread before its frame waits.
    fn add_before_frame(&mut self, parent: usize, waits: &[Nanos]) {
        let Node { tid, way, frames, .. } = self.nodes[parent];
        for (events, hi) in waits.iter().enumerate().filter(|_| frames < FRAMES_MAX) {
            let (frames, interrupted) = (frames + 1, events > 0);
            self.push(Node { tid, hi: *hi, parent, way, frames, before_frame: true, interrupted });
        }
    }

    /// Returns `true` if a thread with a frame wait on the way already drew in frames when an input
    /// was dequeued.
    fn would_come_anyway(&self, index: usize, dequeued: Nanos) -> bool {
        let mut way =
            std::iter::successors(self.nodes.get(index), |node| self.nodes.get(node.parent));
        way.any(|node| node.before_frame && self.steps.recording.is_paced(node.tid, dequeued))
    }

    fn input_burst(&self, best: WayEnd) -> InputBurst {
        let (tid, until) = (self.nodes[best.node].tid, self.nodes[best.node].hi);
        let mut hops = Vec::new();
        let (mut at, mut lo) = (best.node, best.latest);
        while let Some(node) = self.nodes.get(at) {
            hops.push(Hop::new(node.tid, lo.min(node.hi), node.hi));
            (lo, at) = (node.hi, node.parent);
        }
        hops.reverse();
        InputBurst { tid, from: best.from, until, hops, doubtful: best.doubtful }
    }
}
