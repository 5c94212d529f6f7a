// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that work for a client and were stopped when an input came.
//!
//! The main process of a browser receives a key, moves a caret and waits for the next event, while
//! the process of the page is stopped; or the input method of an editor is. No record shows that
//! the key was not handled, since a stopped thread is not woken. A process that took part in the
//! handling of most inputs before its stop is therefore assumed to be needed for those that came
//! meanwhile. If something was shown promptly all the same, the process must have answered after it
//! continued.

use crate::join::answer::{NOTICED, Reached};
use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::Waited;
use std::collections::HashMap;
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Maximum and minimum number of inputs before a stop that are considered, latest first.
const INPUTS_MAX: usize = 16;
const INPUTS_MIN: usize = 3;

/// Minimum percentage of these inputs in which a process ran within this time, to take part in the
/// handling.
const PART_PERCENT: usize = 60;
const PART_WITHIN: Nanos = Nanos::from_millis(100);

/// Maximum time after the receipt of an input within which a stop still precedes the answer.
const SOON: Nanos = Nanos::from_millis(20);

/// Maximum time from the end of a stop to the answer to requests made meanwhile.
const ANSWERED_WITHIN: Nanos = Nanos::from_millis(100);

/// Stops of processes that work for the clients that received input.
pub(crate) struct Stops<'a> {
    recording: &'a Recording,
    of: HashMap<Pid, Vec<Stop>>,
}

#[derive(Clone, Copy)]
struct Stop {
    tid: Tid,
    lo: Nanos,
    hi: Nanos,
}

impl<'a> Stops<'a> {
    pub(crate) fn find(recording: &'a Recording, deliveries: &[Delivery]) -> Stops<'a> {
        let spans = recording.timeline.threads().flat_map(|tid| recording.timeline.spans(tid));
        let stopped = spans.filter(|span| {
            span.is_blocked()
                && span.length() > NOTICED
                && recording.waits.kind(span) == Waited::Stopped
        });
        let stopped: Vec<Span> = stopped.collect();
        let mut dequeued: HashMap<Pid, Vec<Nanos>> = HashMap::new();
        for delivery in deliveries
            .iter()
            .filter(|delivery| delivery.class != InputClass::Motion && !stopped.is_empty())
        {
            dequeued
                .entry(delivery.client)
                .or_default()
                .extend(delivery.dequeued.map(|(at, _)| at));
        }
        dequeued.values_mut().for_each(|list| list.sort_unstable());
        let of = dequeued
            .into_iter()
            .map(|(client, dequeued)| (client, stops(recording, client, &dequeued, &stopped)));
        Stops { recording, of: of.filter(|(_, stops)| !stops.is_empty()).collect() }
    }

    /// Returns the time at which an input was handled that came while a process needed for it was
    /// stopped; `shown` if something was shown before.
    pub(crate) fn held_up(&self, delivery: &Delivery, shown: bool) -> Option<Reached> {
        let (at, tid) = delivery
            .dequeued
            .filter(|_| matches!(delivery.class, InputClass::Key | InputClass::Click))?;
        let stops = self.of.get(&delivery.client)?.iter();
        let during = stops.filter(|stop| stop.lo <= at.after(SOON) && stop.hi > at.after(NOTICED));
        let stop = during
            .max_by_key(|stop| stop.hi)
            .filter(|stop| !shown || self.answers(stop, delivery.client))?;
        let from = stop.lo.max(at);
        let hops = vec![Hop::new(stop.tid, from, stop.hi), Hop::new(tid, at, from)];
        Some(Reached::handled(stop.hi, hops))
    }

    /// Returns `true` if a process wakes a client as soon as it continues.
    fn answers(&self, stop: &Stop, client: Pid) -> bool {
        let pid = self.recording.tasks.pid(stop.tid, stop.lo);
        let until = stop.hi.after(ANSWERED_WITHIN);
        self.recording
            .descendants()
            .threads(pid)
            .iter()
            .any(|tid| wakes(self.recording, *tid, client, stop.hi, until))
    }
}

/// Returns the long stops of other processes that took part in the handling of a client's inputs.
fn stops(recording: &Recording, client: Pid, dequeued: &[Nanos], stopped: &[Span]) -> Vec<Stop> {
    let other = stopped.iter().filter(|span| recording.tasks.pid(span.tid, span.start) != client);
    other
        .filter(|span| takes_part(recording, span, client, dequeued))
        .map(|span| Stop { tid: span.tid, lo: span.start, hi: span.end })
        .collect()
}

/// Returns `true` if the process of a stopped thread took part in most of the inputs before: a
/// descendant of the client ran then, another process was woken by the client.
fn takes_part(recording: &Recording, stop: &Span, client: Pid, dequeued: &[Nanos]) -> bool {
    let before = &dequeued[..dequeued.partition_point(|at| at.after(PART_WITHIN) <= stop.start)];
    let last = &before[before.len().saturating_sub(INPUTS_MAX)..];
    let pid = recording.tasks.pid(stop.tid, stop.start);
    let threads = recording.descendants().threads(pid);
    let own = recording.descendants().threads(client);
    let is_own = own.contains(&stop.tid);
    let taking_part = last.iter().filter(|at| {
        let until = at.after(PART_WITHIN);
        match is_own {
            true => threads.iter().any(|tid| ran_within(recording, *tid, **at, until)),
            false => own.iter().any(|tid| wakes(recording, *tid, pid, **at, until)),
        }
    });
    last.len() >= INPUTS_MIN && taking_part.count() * 100 >= last.len() * PART_PERCENT
}

/// Returns `true` if a thread wakes a thread of the given process.
fn wakes(recording: &Recording, tid: Tid, pid: Pid, lo: Nanos, hi: Nanos) -> bool {
    recording.wakes.by(tid, lo, hi).any(|(at, wakee)| recording.tasks.pid(wakee, at) == pid)
}

fn ran_within(recording: &Recording, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
    let Some(first) = recording.timeline.at(tid, lo) else { return false };
    let spans = recording.timeline.spans_from(tid, first.index);
    spans.take_while(|span| span.start < hi).any(|span| span.segment.state == ThreadState::Running)
}
