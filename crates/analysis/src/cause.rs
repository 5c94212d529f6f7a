// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an input caused a drawing: the way back from the drawing over wake-ups, terminals and
//! display messages until a burst in which the client took an input event.
//!
//! An idle wait leads to its waker only, since what the thread did before has nothing to do with what
//! it does now. Inside a burst both the thread and those who ended its waits may lead to an input; the
//! latest one counts. What was written to the terminal of a thread that was busy did not wake it, but
//! is read in the end: each such write is a way of its own.

use crate::bursts::Wake;
use crate::messages::Side;
use crate::recording::Recording;
use std::collections::HashMap;
use tipme_record::{Nanos, Pid, Tid};

/// Threads that one walk visits at most.
const NODES_MAX: usize = 64;

/// Writes to a busy thread's terminal that are followed, the latest ones.
const WRITES_MAX: usize = 16;

/// A stay of the way in one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    pub tid: Tid,
    pub lo: Nanos,
    pub hi: Nanos,
}

/// A burst that took input: the thread, from when until when it could have taken it, and the way there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    pub tid: Tid,
    pub from: Nanos,
    pub until: Nanos,
    pub hops: Vec<Hop>,
}

/// Where a walk ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trace {
    /// In bursts that took input, the earliest first.
    Taken(Vec<Taken>),
    /// At a timer, a device or something older: no input caused the drawing.
    Elsewhere,
    /// The way was lost.
    Lost,
}

/// When each thread of a client took input events on one stream.
#[derive(Default)]
pub struct Receipts {
    by_tid: HashMap<Tid, Vec<Nanos>>,
    earliest: Option<Nanos>,
}

struct Node {
    tid: Tid,
    hi: Nanos,
    parent: usize,
    /// Which way it belongs to, an index into the walk's `best`.
    way: usize,
}

/// One walk back.
pub struct Walk<'a> {
    recording: &'a Recording,
    receipts: &'a Receipts,
    stream: usize,
    client: Pid,
    nodes: Vec<Node>,
    /// Nodes still to visit.
    open: Vec<usize>,
    /// The best place of each way so far.
    best: Vec<Option<Best>>,
    lost: bool,
}

/// A place that took input.
#[derive(Clone, Copy)]
struct Best {
    node: usize,
    /// Begin of the burst.
    from: Nanos,
    /// The latest receipt in it.
    latest: Nanos,
}

impl Receipts {
    pub fn add(&mut self, tid: Tid, at: Nanos) {
        let times = self.by_tid.entry(tid).or_default();
        let index = times.partition_point(|time| *time <= at);
        times.insert(index, at);
        self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
    }

    /// The latest receipt of a thread in `lo..=hi`.
    fn latest(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        let times = self.by_tid.get(&tid)?;
        let index = times.partition_point(|time| *time <= hi).checked_sub(1)?;
        times.get(index).copied().filter(|time| *time >= lo)
    }
}

impl<'a> Walk<'a> {
    pub fn new(recording: &'a Recording, receipts: &'a Receipts, stream: usize) -> Walk<'a> {
        let client = recording.messages.stream(stream).map_or(Pid(0), |stream| stream.client);
        let (nodes, open, best) = (Vec::new(), Vec::new(), Vec::new());
        Walk { recording, receipts, stream, client, nodes, open, best, lost: false }
    }

    /// Walks back from what a thread did at a time.
    pub fn back(mut self, tid: Tid, at: Nanos) -> Trace {
        let Some(earliest) = self.receipts.earliest else { return Trace::Elsewhere };
        self.best.push(None);
        self.add(tid, at, usize::MAX, 0);
        while let Some(index) = self.open.pop() {
            let node = &self.nodes[index];
            let known = self.best[node.way].map_or(earliest, |best| best.latest);
            if node.hi >= known {
                self.visit(index);
            }
        }
        let mut found: Vec<Best> = self.best.iter().flatten().copied().collect();
        found.sort_by_key(|best| best.latest);
        match found.is_empty() {
            false => Trace::Taken(found.into_iter().map(|best| self.taken(best)).collect()),
            true if self.lost => Trace::Lost,
            true => Trace::Elsewhere,
        }
    }

    fn visit(&mut self, index: usize) {
        let (tid, hi, way) = (self.nodes[index].tid, self.nodes[index].hi, self.nodes[index].way);
        if let Some((writer, at)) = self.recording.terminals.writer(tid, hi) {
            return self.add(writer, at, index, way);
        }
        let burst = self.recording.burst(tid, hi);
        if let Some(latest) = self.receipts.latest(tid, burst.start, hi) {
            if self.best[way].is_none_or(|best| best.latest < latest) {
                self.best[way] = Some(Best { node: index, from: burst.start, latest });
            }
            return;
        }
        if let Some((client, at)) = self.request_before(tid, burst.start, hi) {
            return self.add(client, at, index, way);
        }
        self.add_writers(tid, burst.start, index);
        for (helper, at) in self.recording.helpers(tid, &burst, hi) {
            self.add(helper, at, index, way);
        }
        match burst.wake {
            Wake::Task(waker) => self.add(waker, burst.start, index, way),
            Wake::Interrupt => {}
            Wake::Unknown => self.lost = true,
        }
    }

    fn add(&mut self, tid: Tid, hi: Nanos, parent: usize, way: usize) {
        if self.nodes.len() >= NODES_MAX || tid == Tid(0) {
            self.lost = true;
            return;
        }
        let hi = self.nodes.get(parent).map_or(hi, |parent| hi.min(parent.hi));
        self.open.push(self.nodes.len());
        self.nodes.push(Node { tid, hi, parent, way });
    }

    /// Opens a way for each write to the terminal of a thread that was busy when it was made.
    fn add_writers(&mut self, tid: Tid, from: Nanos, index: usize) {
        let hi = self.nodes[index].hi;
        if self.recording.tasks.pid(tid, hi) == self.client {
            return;
        }
        let written: Vec<_> = self.recording.terminals.written_to(tid, from, hi).take(WRITES_MAX).collect();
        for (writer, at) in written {
            self.best.push(None);
            self.add(writer, at, index, self.best.len() - 1);
        }
    }

    /// A server answers the request on this stream that it took last: who sent it, and when.
    fn request_before(&self, server: Tid, lo: Nanos, hi: Nanos) -> Option<(Tid, Nanos)> {
        let (at, place) = self.recording.messages.taken_last(server, hi)?;
        let stream = self.recording.messages.stream(place.stream)?;
        let (_, sent) = stream.sent(Side::RequestTaken, place.part)?;
        (at >= lo && place.stream == self.stream).then(|| (sent.tid, sent.ts.min(at)))
    }

    fn taken(&self, best: Best) -> Taken {
        let (tid, until) = (self.nodes[best.node].tid, self.nodes[best.node].hi);
        let mut hops = Vec::new();
        let (mut at, mut lo) = (best.node, best.latest);
        while let Some(node) = self.nodes.get(at) {
            hops.push(Hop { tid: node.tid, lo: lo.min(node.hi), hi: node.hi });
            (lo, at) = (node.hi, node.parent);
        }
        hops.reverse();
        Taken { tid, from: best.from, until, hops }
    }
}
