// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that work for a client and were stopped while an input came.
//!
//! A browser's own process takes a key, moves a caret and waits for the next event, while the process that has the page
//! is stopped, or the input method of an editor is: nothing tells that the key was not handled, since nobody wakes a
//! stopped thread. Who took part in the handling of most inputs before it was stopped is taken to be needed for those
//! that came meanwhile. Where something was shown at once all the same, it has to have answered when it went on.

use crate::join::answer::{Milestone, NOTICED, Reached, Task};
use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::Waited;
use std::collections::HashMap;
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Inputs before a stop that are looked at, the latest; at least so many must be known.
const INPUTS_MAX: usize = 16;
const INPUTS_MIN: usize = 3;

/// A process that ran in so many percent of them, within this time, takes part in the handling.
const PART_PERCENT: usize = 60;
const PART_WITHIN: Nanos = Nanos::from_millis(100);

/// A stop that begins this long after an input was dequeued still came before the answer.
const SOON: Nanos = Nanos::from_millis(20);

/// Whoever goes on after a stop answers what it was asked meanwhile within this time.
const ANSWERED_WITHIN: Nanos = Nanos::from_millis(100);

/// The stops of processes that work for the clients that were told of input.
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
        let long = |span: &Span| span.segment.state == ThreadState::Blocked && span.end.since(span.start) > NOTICED;
        let spans = recording.timeline.threads().flat_map(|tid| recording.timeline.spans(tid)).filter(long);
        let stopped: Vec<Span> = spans.filter(|span| recording.waits.kind(span) == Waited::Stopped).collect();
        let mut dequeued: HashMap<Pid, Vec<Nanos>> = HashMap::new();
        for delivery in deliveries.iter().filter(|delivery| delivery.class != InputClass::Motion && !stopped.is_empty())
        {
            dequeued.entry(delivery.client).or_default().extend(delivery.dequeued.map(|(at, _)| at));
        }
        dequeued.values_mut().for_each(|list| list.sort_unstable());
        let of = dequeued.into_iter().map(|(client, dequeued)| (client, stops(recording, client, &dequeued, &stopped)));
        Stops { recording, of: of.filter(|(_, stops)| !stops.is_empty()).collect() }
    }

    /// When an input was handled that came while somebody who takes part in that was stopped; `shown` where something
    /// was shown before.
    pub(crate) fn held_up(&self, delivery: &Delivery, shown: bool) -> Option<Reached> {
        let (at, tid) = delivery.dequeued.filter(|_| matches!(delivery.class, InputClass::Key | InputClass::Click))?;
        let stops = self.of.get(&delivery.client)?.iter();
        let during = stops.filter(|stop| stop.lo <= at.after(SOON) && stop.hi > at.after(NOTICED));
        let stop = during.max_by_key(|stop| stop.hi).filter(|stop| !shown || self.answers(stop, delivery.client))?;
        let from = stop.lo.max(at);
        let hops = vec![Hop::new(stop.tid, from, stop.hi), Hop::new(tid, at, from)];
        let (milestone, noticed) = (Milestone::Handled, NOTICED);
        Some(Reached { milestone, at: stop.hi, drawing: None, hops, noticed, task: Task::Input })
    }

    /// Whether a process wakes a client as soon as it goes on.
    fn answers(&self, stop: &Stop, client: Pid) -> bool {
        let pid = self.recording.tasks.pid(stop.tid, stop.lo);
        let until = stop.hi.after(ANSWERED_WITHIN);
        self.recording.descendants().threads(pid).iter().any(|tid| wakes(self.recording, *tid, client, stop.hi, until))
    }
}

/// The long stops of others who took part in the handling of a client's inputs.
fn stops(recording: &Recording, client: Pid, dequeued: &[Nanos], stopped: &[Span]) -> Vec<Stop> {
    let other = stopped.iter().filter(|span| recording.tasks.pid(span.tid, span.start) != client);
    other
        .filter(|span| takes_part(recording, span, client, dequeued))
        .map(|span| Stop { tid: span.tid, lo: span.start, hi: span.end })
        .collect()
}

/// Whether the process of a stopped thread ran after most of the inputs before, being one of the client's own; or was
/// woken by it then.
fn takes_part(recording: &Recording, stop: &Span, client: Pid, dequeued: &[Nanos]) -> bool {
    let before = &dequeued[..dequeued.partition_point(|at| at.after(PART_WITHIN) <= stop.start)];
    let last = &before[before.len().saturating_sub(INPUTS_MAX)..];
    let pid = recording.tasks.pid(stop.tid, stop.start);
    let threads = recording.descendants().threads(pid);
    let own = recording.descendants().threads(client);
    let is_own = own.contains(&stop.tid);
    let ran = |at: Nanos| threads.iter().any(|tid| ran_within(recording, *tid, at, at.after(PART_WITHIN)));
    let woken = |at: Nanos| own.iter().any(|tid| wakes(recording, *tid, pid, at, at.after(PART_WITHIN)));
    let part = |at: &&Nanos| if is_own { ran(**at) } else { woken(**at) };
    last.len() >= INPUTS_MIN && last.iter().filter(part).count() * 100 >= last.len() * PART_PERCENT
}

/// Whether a thread wakes one of a process.
fn wakes(recording: &Recording, tid: Tid, pid: Pid, lo: Nanos, hi: Nanos) -> bool {
    recording.wakes.by(tid, lo, hi).any(|(at, wakee)| recording.tasks.pid(wakee, at) == pid)
}

fn ran_within(recording: &Recording, tid: Tid, lo: Nanos, hi: Nanos) -> bool {
    let Some(first) = recording.timeline.at(tid, lo) else { return false };
    let spans = (first.index..).map_while(|index| recording.timeline.span(tid, index));
    spans.take_while(|span| span.start < hi).any(|span| span.segment.state == ThreadState::Running)
}
