// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an input caused a drawing: the way back from the drawing over wake-ups, terminals and
//! display messages until a burst in which the client dequeued an input event.
//!
//! An idle wait leads to its waker only, since what the thread did before has nothing to do with what
//! it does now. So does a wait for a condition, of threads that dequeue no input themselves: they get their work so.
//! Inside a burst both the thread and those who ended its waits may lead to an input; the
//! latest one counts. What was written to the terminal of a thread that was busy did not wake it, but
//! is read in the end, unless another program takes it: each such write is a way of its own. So is what threads that
//! dequeue input gave to another one of their process while that one was ready and got no CPU, and what a thread may
//! have been asked while it was stopped or got none: a key that was handed over to an input method is answered by what
//! comes back from there.
//!
//! Who draws in frames has a timer, or a compositor of Wayland, wake it for the next one: over a short wait of that kind
//! the way goes on to what the thread did before. A thread that drew frame after frame already when the input was
//! dequeued would have drawn anyway: then the drawing may answer the input or not.

use crate::decode::messages::Side;
use crate::join::server_drawings::missed;
use crate::timeline::bursts::{Burst, Wake};
use crate::timeline::recording::Recording;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use tipme_record::{Nanos, Pid, Tid};

/// Threads that one walk visits at most.
const NODES_MAX: usize = 128;

/// Writes to a busy thread's terminal that are followed, the latest ones.
const WRITES_MAX: usize = 16;

/// Steps, and places that they lead to, that are kept at most; then they are looked for again.
const STEPS_MAX: usize = 262_144;

/// Waits for a frame on one way at most: a frame is begun, drawn and shown by a timer each.
const FRAMES_MAX: usize = 3;

/// A stay of the way in one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hop {
    pub tid: Tid,
    pub lo: Nanos,
    pub hi: Nanos,
    /// An answer over the network ends it, which the thread waited for, whatever else woke it before: the inode of the
    /// connection, 0 where that is not known.
    pub awaits: Option<u64>,
}

/// A burst that dequeued input: the thread, from when until when it could have dequeued it, and the way there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct InputBurst {
    pub tid: Tid,
    pub from: Nanos,
    pub until: Nanos,
    pub hops: Vec<Hop>,
    /// The drawing would have come without the input, too.
    pub doubtful: bool,
}

/// Where a walk ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trace {
    /// In bursts that dequeued input, the earliest first.
    Input(Vec<InputBurst>),
    /// At a timer, a device or something older: no input caused the drawing.
    Elsewhere,
    /// The way was lost.
    Lost,
}

/// Where the way goes on from what a thread did until a time: the same in each walk over a connection.
enum WalkStep {
    /// What it wrote to a terminal was written by another one, at a time.
    Written(Tid, Nanos),
    /// It had dequeued input: the begin of the burst, and the latest receipt in it.
    Input {
        from: Nanos,
        latest: Nanos,
    },
    /// A client asked for it, at a time.
    Requested(Tid, Nanos),
    Work(Origins),
}

/// What may have led to the work of a thread, each a thread and until when.
struct Origins {
    burst: Burst,
    /// Each a way of its own.
    apart: Vec<(Tid, Nanos)>,
    helpers: Vec<(Tid, Nanos)>,
    /// Begins of its wait for a frame, and after each event that interrupted it.
    frame: Vec<Nanos>,
}

/// The steps of all walks over one connection that were looked for: what is drawn in a row has most of its way in common.
pub(crate) struct Steps<'a> {
    recording: &'a Recording,
    receipts: &'a Receipts,
    stream: usize,
    client: Pid,
    known: HashMap<(Tid, Nanos), Rc<WalkStep>>,
    /// Of these, with the places that they lead to.
    kept: usize,
}

/// When each thread of a client dequeued input events on one stream.
#[derive(Default)]
pub(crate) struct Receipts {
    by_tid: HashMap<Tid, Vec<Nanos>>,
    earliest: Option<Nanos>,
}

struct Node {
    tid: Tid,
    hi: Nanos,
    parent: usize,
    /// Which way it belongs to, an index into the walk's `best`.
    way: usize,
    /// Waits for a frame between it and the drawing.
    frames: usize,
    /// Whether the last of these waits was its own thread's.
    before_frame: bool,
    /// Whether an event interrupted that wait later.
    interrupted: bool,
}

/// One walk back.
struct CauseWalk<'s, 'a> {
    steps: &'s mut Steps<'a>,
    nodes: Vec<Node>,
    /// Nodes still to visit, by time.
    open: BTreeSet<(Nanos, usize)>,
    /// The node of each way, thread and time.
    known: HashMap<(usize, Tid, Nanos), usize>,
    /// The best place of each way so far.
    best: Vec<Option<Best>>,
    lost: bool,
}

/// A place that dequeued input.
#[derive(Clone, Copy)]
struct Best {
    node: usize,
    /// Begin of the burst.
    from: Nanos,
    /// The latest receipt in it.
    latest: Nanos,
    /// A thread on the way drew frame after frame already.
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

    /// Whether any thread took an input in `lo..=hi`.
    pub(crate) fn any(&self, lo: Nanos, hi: Nanos) -> bool {
        self.by_tid.keys().any(|tid| self.latest(*tid, lo, hi).is_some())
    }

    /// The latest receipt of a thread in `lo..=hi`.
    fn latest(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        let times = self.by_tid.get(&tid)?;
        let index = times.partition_point(|time| *time <= hi).checked_sub(1)?;
        times.get(index).copied().filter(|time| *time >= lo)
    }
}

impl WalkStep {
    /// It and the places that it leads to.
    fn places(&self) -> usize {
        match self {
            WalkStep::Written(..) | WalkStep::Input { .. } | WalkStep::Requested(..) => 1,
            WalkStep::Work(work) => 1 + work.apart.len() + work.helpers.len() + work.frame.len(),
        }
    }
}

impl<'a> Steps<'a> {
    pub(crate) fn new(recording: &'a Recording, receipts: &'a Receipts, stream: usize) -> Steps<'a> {
        let client = recording.messages.stream(stream).map_or(Pid(0), |stream| stream.client);
        Steps { recording, receipts, stream, client, known: HashMap::new(), kept: 0 }
    }

    /// Walks back from what a thread did at a time.
    pub(crate) fn back(&mut self, tid: Tid, at: Nanos) -> Trace {
        let (nodes, open, known, best) = (Vec::new(), BTreeSet::new(), HashMap::new(), Vec::new());
        CauseWalk { steps: self, nodes, open, known, best, lost: false }.back(tid, at)
    }

    /// The step from what a thread did until a time.
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
        WalkStep::Work(Origins { burst, apart, helpers, frame: self.recording.frame_waits(tid, burst.start) })
    }

    /// The burst of a thread; where it takes no input, only what it does since it last waited for a condition.
    fn burst(&self, tid: Tid, hi: Nanos) -> Burst {
        let burst = self.recording.burst(tid, hi);
        let takes_input = self.receipts.by_tid.contains_key(&tid) || self.recording.terminals.reads(tid);
        if takes_input { burst } else { self.recording.since_condition(tid, burst, hi) }
    }

    /// A server answers the request on this stream that it dequeued last: who sent it, and when. It cannot have been
    /// idle since then: where it was, the right send is not recorded, and the request is as old as its receipt.
    fn request_before(&self, server: Tid, lo: Nanos, hi: Nanos) -> Option<(Tid, Nanos)> {
        let (at, place) = self.recording.messages.last_received(server, hi)?;
        let stream = self.recording.messages.stream(place.stream)?;
        let (_, sent) = stream.sent(Side::RequestReceived, place.part)?;
        let since = if missed(self.recording, sent.ts, (at, server)) { at } else { sent.ts.min(at) };
        (at >= lo && place.stream == self.stream).then_some((sent.tid, since))
    }

    /// Threads that dequeue input and ran while another one of their process waited for a CPU for long: what is given to a
    /// thread that is ready wakes nobody.
    fn readers(&self, tid: Tid, burst: &Burst, hi: Nanos) -> Vec<(Tid, Nanos)> {
        let takes_input = self.receipts.by_tid.contains_key(&tid);
        if takes_input || self.recording.tasks.pid(tid, hi) != self.client {
            return Vec::new();
        }
        let Some(ready) = self.recording.last_delay(tid, burst, hi) else { return Vec::new() };
        let ran = |reader: &Tid| Some((*reader, self.recording.timeline.last_ran(*reader, ready.start, ready.end)?));
        let mut readers: Vec<(Tid, Nanos)> = self.receipts.by_tid.keys().filter_map(ran).collect();
        readers.sort_unstable();
        readers
    }

    /// Bursts in which somebody may have asked a thread for something while it was held up. What display servers are asked is
    /// recorded.
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
        // The latest first: the latest receipt counts, and the nodes are bounded.
        while let Some((_, index)) = self.open.pop_last() {
            let node = &self.nodes[index];
            let known = self.best[node.way].map_or(earliest, |best| best.latest);
            if node.hi >= known {
                self.visit(index);
            }
        }
        let mut found: Vec<Best> = self.best.iter().flatten().copied().collect();
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

    /// A node dequeued input: its way ends there.
    fn end(&mut self, index: usize, from: Nanos, latest: Nanos) {
        let way = self.nodes[index].way;
        if self.best[way].is_none_or(|best| best.latest < latest || self.is_shorter(best, (index, latest))) {
            let doubtful = self.would_come_anyway(index, latest);
            self.best[way] = Some(Best { node: index, from, latest, doubtful });
        }
    }

    /// Opens what may have led to a node's work.
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

    /// Whether a node leads to the same receipt over fewer threads: who was waited for on the way explains a wait, and
    /// is no part of the way.
    fn is_shorter(&self, best: Best, (index, latest): (usize, Nanos)) -> bool {
        best.latest == latest && self.length(index) < self.length(best.node)
    }

    /// Number of interrupted waits between a node and the drawing, which count most, and of threads, with both.
    fn length(&self, index: usize) -> (usize, usize) {
        let way = std::iter::successors(self.nodes.get(index), |node| self.nodes.get(node.parent));
        way.fold((0, 0), |(waits, threads), node| (waits + usize::from(node.interrupted), threads + 1))
    }

    fn add(&mut self, tid: Tid, hi: Nanos, parent: usize, way: usize) {
        let (most, frames) = self.nodes.get(parent).map_or((hi, 0), |parent| (parent.hi, parent.frames));
        self.push(Node { tid, hi: hi.min(most), parent, way, frames, before_frame: false, interrupted: false });
    }

    /// Who injects input, and is not the client itself, stands for the person: what that one does is another input's
    /// matter.
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

    /// Two threads that wait for each other in turn lead to the same place again and again: it is visited once, by the way
    /// over the fewest threads.
    fn shorten(&mut self, index: usize, node: Node) {
        let (known, new) = (self.length(self.nodes[index].parent), self.length(node.parent));
        if new < known || (new == known && self.open.contains(&(node.hi, index))) {
            self.nodes[index] = node;
        }
    }

    /// What a thread did before it waited for a frame.
    fn add_before_frame(&mut self, parent: usize, waits: &[Nanos]) {
        let Node { tid, way, frames, .. } = self.nodes[parent];
        for (events, hi) in waits.iter().enumerate().filter(|_| frames < FRAMES_MAX) {
            let (frames, interrupted) = (frames + 1, events > 0);
            self.push(Node { tid, hi: *hi, parent, way, frames, before_frame: true, interrupted });
        }
    }

    /// Whether a thread that waited for a frame on the way drew in frames already when an input was dequeued.
    fn would_come_anyway(&self, index: usize, dequeued: Nanos) -> bool {
        let mut way = std::iter::successors(self.nodes.get(index), |node| self.nodes.get(node.parent));
        way.any(|node| node.before_frame && self.steps.recording.is_paced(node.tid, dequeued))
    }

    fn input_burst(&self, best: Best) -> InputBurst {
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
