// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stretches of work that an input led to: the way to each, the places at which it ends, and the
//! time that other processes spent on requests before it.

use crate::join::drawing_cause::Hop;
use crate::join::network_answers::NetworkAnswer;
use crate::timeline::event_waits::frequent;
use crate::timeline::recording::Recording;
use crate::timeline::threads::Span;
use crate::timeline::waits::{Signature, is_condition};
use std::collections::{HashMap, HashSet};
use tipme_record::{Nanos, Tid};

/// Maximum time from a packet to the frame that shows its content.
pub(super) const COMPOSED_MAX: Nanos = Nanos::from_millis(200);

/// A stretch of work.
#[derive(Clone, Copy)]
pub(super) struct WorkStep {
    pub tid: Tid,
    pub lo: Nanos,
    pub hi: Nanos,
    pub parent: usize,
    pub depth: usize,
    pub frames: usize,
    /// Packet at its start.
    pub packet: Option<NetworkAnswer>,
    /// Work of another process on a request.
    pub asked: bool,
    /// Work on data written to a terminal: by its reader, or by a process to which the reader
    /// relayed it.
    pub behind_terminal: bool,
}

/// Returns the way to a stretch of work up to a time, latest hop first.
pub(super) fn way(steps: &[WorkStep], mut index: usize, mut until: Nanos) -> Vec<Hop> {
    let mut hops = Vec::new();
    while let Some(step) = steps.get(index) {
        hops.push(Hop::new(step.tid, step.lo, until));
        until = step.lo;
        if let (Some(packet), Some(asker)) = (step.packet, steps.get(step.parent)) {
            hops.push(Hop { awaits: Some(packet.file), ..Hop::new(step.tid, asker.hi, until) });
            until = asker.hi;
        }
        index = step.parent;
    }
    hops
}

/// Returns the packets on the way to a stretch of work.
pub(super) fn packets(steps: &[WorkStep], index: usize) -> impl Iterator<Item = NetworkAnswer> {
    let way = std::iter::successors(steps.get(index), |step| steps.get(step.parent));
    way.filter_map(|step| step.packet)
}

/// Places at which the work of inputs usually finds threads waiting.
#[derive(Default)]
pub(super) struct WaitPlaces(HashMap<Tid, HashSet<Signature>>);

impl WaitPlaces {
    pub(super) fn new(stretches: &[WorkStep], recording: &Recording) -> WaitPlaces {
        let mut found: HashMap<Tid, HashMap<Signature, usize>> = HashMap::new();
        for step in stretches {
            let span = recording.timeline.before(step.tid, step.lo);
            if let Some(signature) = span.and_then(|span| recording.waits_in(&span)) {
                *found.entry(step.tid).or_default().entry(signature).or_default() += 1;
            }
        }
        let places = found.into_iter().map(|(tid, counts)| (tid, frequent(&counts)));
        WaitPlaces(places.filter(|(_, places)| !places.is_empty()).collect())
    }

    /// Returns `true` if a thread with known places waits for an answer at a place where the work
    /// of inputs hardly ever finds it.
    pub(super) fn is_elsewhere(&self, recording: &Recording, span: &Span) -> bool {
        let Some(places) = self.0.get(&span.tid) else { return false };
        let answered = span.task_waker().is_some() || span.end >= recording.mark;
        let wait = recording.waits.find(span).filter(|wait| answered && is_condition(wait));
        wait.is_some_and(|wait| !places.contains(&recording.signature(wait)))
    }
}

/// Time that other processes worked on requests on the way to each stretch of work, and the
/// stretches that follow.
pub(super) struct Replies {
    /// Up to the start of each stretch.
    waited: Vec<Nanos>,
    by_tid: HashMap<Tid, Vec<usize>>,
    /// Stretches of other processes, by their ends.
    ended: Vec<(Nanos, usize)>,
}

impl Replies {
    pub(super) fn new(steps: &[WorkStep]) -> Replies {
        let (mut waited, mut by_tid, mut ended) =
            (Vec::<Nanos>::new(), HashMap::<Tid, Vec<usize>>::new(), Vec::new());
        for (index, step) in steps.iter().enumerate() {
            let before = steps.get(step.parent).map(|parent| {
                let own = if parent.asked { step.lo.since(parent.lo) } else { Nanos(0) };
                waited.get(step.parent).copied().unwrap_or_default().after(own)
            });
            waited.push(before.unwrap_or_default());
            if step.asked {
                ended.push((step.hi, index));
            } else if waited[index] > Nanos(0) {
                by_tid.entry(step.tid).or_default().push(index);
            }
        }
        ended.sort_unstable();
        Replies { waited, by_tid, ended }
    }

    /// Returns the same up to a time within a stretch.
    pub(super) fn waited(&self, steps: &[WorkStep], index: usize, until: Nanos) -> Nanos {
        let own = if steps[index].asked { until.since(steps[index].lo) } else { Nanos(0) };
        self.waited[index].after(own)
    }

    /// Returns the stretches of a thread at `at` that follow a reply.
    pub(super) fn woken<'s>(
        &'s self,
        steps: &'s [WorkStep],
        tid: Tid,
        at: Nanos,
    ) -> impl Iterator<Item = usize> + 's {
        let of = self.by_tid.get(&tid).into_iter().flatten().copied();
        of.filter(move |index| (steps[*index].lo..=steps[*index].hi).contains(&at))
    }

    /// Returns the other processes' stretches of work that ended shortly before `at`.
    pub(super) fn before<'s>(
        &'s self,
        steps: &'s [WorkStep],
        at: Nanos,
    ) -> impl Iterator<Item = usize> + 's {
        let first = self.ended.partition_point(|(end, _)| *end < at.before(COMPOSED_MAX));
        let last = self.ended.partition_point(|(end, _)| *end <= at);
        self.ended[first..last].iter().map(|(_, index)| *index).filter(|index| steps[*index].asked)
    }
}
