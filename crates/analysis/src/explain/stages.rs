// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stages of an interaction: the threads that it passed through, each until the next one took over.

use crate::decode::messages::Side;
use crate::join::answer::{Interaction, Join};
use crate::join::drawing_cause::Hop;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::Waited;
use tipme_record::{Nanos, Pid, Tid};

/// Part of the interval that is walked back in one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainStage {
    pub tid: Tid,
    pub lo: Nanos,
    pub hi: Nanos,
    /// `true` if the walk follows the waker of an idle wait.
    pub through_idle: bool,
    /// Connection that delivered the answer, if the thread waited for one.
    pub awaits: Option<u64>,
}

/// Returns the stages of an interaction in order of time, without gaps between input and end.
pub(crate) fn stages(recording: &Recording, interaction: &Interaction) -> Vec<ChainStage> {
    let delivery = &interaction.delivery;
    let mut stages = Stages { list: Vec::new(), at: delivery.input, end: interaction.end };
    if let Some((at, by)) = delivery.released {
        stages.push(by, at, true);
    }
    stages.push(delivery.server, delivery.sent, true);
    match delivery.dequeued {
        None => stages.push(main_reader(recording, interaction), interaction.end, true),
        Some((dequeued, client)) => {
            stages.push(client, dequeued, true);
            handling_stages(recording, interaction, client, &mut stages);
        }
    }
    stages.list
}

fn handling_stages(
    recording: &Recording,
    interaction: &Interaction,
    client: Tid,
    stages: &mut Stages,
) {
    let Some(drawing) = &interaction.drawing else {
        if !interaction.hops.is_empty() {
            return interaction.hops.iter().rev().for_each(|hop| stages.push_hop(hop));
        }
        let idle = recording.idle_after(client, stages.at);
        stages.push(client, idle, true);
        let busy = crate::join::interactions::busy_below(recording, interaction.delivery.client);
        return stages.push(busy.unwrap_or(client), interaction.end, true);
    };
    interaction.hops.iter().rev().for_each(|hop| stages.push_hop(hop));
    let stopped = stopped_below(recording, interaction.delivery.client, stages.at, drawing.sent);
    if let Some((tid, until)) = stopped.filter(|_| interaction.join == Join::Speculative) {
        stages.push(tid, until, true);
    }
    stages.push(drawing.tid, drawing.sent, true);
    let server = drawing.dequeued.map_or(interaction.delivery.server, |(_, server)| server);
    stages.push(server, drawing.dequeued.map_or(drawing.end, |(at, _)| at), false);
    stages.push(server, drawing.end, false);
}

/// Finds a thread of a client or its descendants that was stopped for most of `lo..hi`, and the end
/// of the stop. The drawing thread may well be idle meanwhile because it waits for the stopped one.
fn stopped_below(recording: &Recording, client: Pid, lo: Nanos, hi: Nanos) -> Option<(Tid, Nanos)> {
    let stop = |tid: &Tid| {
        let first = recording.timeline.at(*tid, lo)?.index;
        let spans = (first..)
            .map_while(|index| recording.timeline.span(*tid, index))
            .take_while(|span| span.start < hi);
        let mut stops = spans.filter(|span| span.segment.state == ThreadState::Blocked);
        let long = |span: &Span| span.end.min(hi).since(span.start.max(lo)).0 * 2 > hi.since(lo).0;
        stops
            .find(|span| long(span) && recording.waits.kind(span) == Waited::Stopped)
            .map(|span| (*tid, span.end))
    };
    recording.descendants().threads(client).iter().find_map(stop)
}

/// Returns the thread expected to dequeue an event: the one that dequeued earlier events of this
/// client.
fn main_reader(recording: &Recording, interaction: &Interaction) -> Tid {
    let stream = recording.messages.stream(interaction.delivery.stream);
    stream.map_or(Tid(interaction.delivery.client.0), |stream| stream.reader(Side::EventReceived))
}

struct Stages {
    list: Vec<ChainStage>,
    at: Nanos,
    end: Nanos,
}

impl Stages {
    /// Adds a stage up to `until`; ignores one that ends before it begins.
    fn push(&mut self, tid: Tid, until: Nanos, through_idle: bool) {
        self.add(tid, until, through_idle, None);
    }

    fn push_hop(&mut self, hop: &Hop) {
        self.add(hop.tid, hop.hi, true, hop.awaits);
    }

    fn add(&mut self, tid: Tid, until: Nanos, through_idle: bool, awaits: Option<u64>) {
        let hi = until.min(self.end);
        if hi > self.at {
            self.list.push(ChainStage { tid, lo: self.at, hi, through_idle, awaits });
            self.at = hi;
        }
    }
}
