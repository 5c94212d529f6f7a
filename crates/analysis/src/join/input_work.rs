// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work that an input leads to, forward over wake-ups, until its last drawing.
//!
//! A thread works from its wake-up until its first wait that is neither for a device nor for a lock nor for a frame: then
//! it waits for somebody, and what it does afterwards is that one's matter. A thread that inputs find at one place again
//! and again is not done while it waits for an answer at another. Only threads of the client and of its descendants are
//! followed; depth and number are bounded.

use crate::join::answer::{COMPLETED, Milestone, Reached};
use crate::join::drawing_cause::{CauseWalk, Hop, Receipts, Trace};
use crate::join::inputs::Delivery;
use crate::join::server_drawings::drawing;
use crate::timeline::bursts::FRAME;
use crate::timeline::event_waits::frequent;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, ThreadState};
use crate::timeline::waits::{Signature, Waited, is_condition};
use std::collections::{HashMap, HashSet};
use tipme_record::{Nanos, Pid, Tid};

/// Wake-ups are followed this deep, and so many of them.
const DEPTH_MAX: usize = 12;
const STEPS_MAX: usize = 2_000;

/// Wake-ups by one stretch of work that are followed.
const WAKES_MAX: usize = 64;

/// Waits for a frame on one way: a frame is begun, drawn and shown by a timer each.
const FRAMES_MAX: usize = 3;

/// A thread that took an input works on it no longer than this before the next event.
const WORK_MAX: Nanos = Nanos::from_secs(10);

/// What the inputs of a recording lead to.
pub(crate) struct Work<'a> {
    recording: &'a Recording,
    places: WaitPlaces,
    /// When the threads of each client took inputs.
    receipts: HashMap<Pid, Receipts>,
}

/// Where the work of inputs finds threads waiting again and again.
#[derive(Default)]
struct WaitPlaces(HashMap<Tid, HashSet<Signature>>);

/// A stretch of work.
struct WorkStep {
    tid: Tid,
    lo: Nanos,
    hi: Nanos,
    parent: usize,
    depth: usize,
    frames: usize,
}

impl WaitPlaces {
    fn new(stretches: &[WorkStep], recording: &Recording) -> WaitPlaces {
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

    /// Whether a thread that has places of its own waits for somebody's answer where the work of inputs hardly ever
    /// finds it.
    fn is_elsewhere(&self, recording: &Recording, span: &Span) -> bool {
        let Some(places) = self.0.get(&span.tid) else { return false };
        let answered = span.task_waker().is_some() || span.end >= recording.mark;
        let wait = recording.waits.find(span).filter(|wait| answered && is_condition(wait));
        wait.is_some_and(|wait| !places.contains(&recording.signature(wait)))
    }
}

impl<'a> Work<'a> {
    /// Learns from all inputs, and from those of which it is known when they were handled.
    pub(crate) fn new(
        recording: &'a Recording,
        deliveries: &[Delivery],
        handled: impl Iterator<Item = (&'a Delivery, Nanos)>,
    ) -> Work<'a> {
        let mut receipts: HashMap<Pid, Receipts> = HashMap::new();
        for (client, (at, tid)) in deliveries.iter().filter_map(|one| Some((one.client, one.dequeued?))) {
            receipts.entry(client).or_default().add(tid, at);
        }
        let mut work = Work { recording, places: WaitPlaces::default(), receipts };
        let all: Vec<WorkStep> = handled.flat_map(|(delivery, handled)| work.steps(delivery, handled)).collect();
        work.places = WaitPlaces::new(&all, recording);
        work
    }

    /// The last drawing in the work that an input led to, and the way there.
    pub(crate) fn completed(&self, delivery: &Delivery, handled: Nanos) -> Option<Reached> {
        let steps = self.steps(delivery, handled);
        let last = steps.iter().enumerate().filter_map(|(index, step)| {
            let drawn = self.recording.drawings().within(step.tid, step.lo, step.hi).last();
            drawn.map(|(sent, place)| (*sent, *place, index))
        });
        let (sent, place, mut index) = last.max()?;
        let drawing = drawing(self.recording, place)?;
        let (mut hops, mut until) = (Vec::new(), sent);
        while let Some(step) = steps.get(index) {
            hops.push(Hop { tid: step.tid, lo: step.lo, hi: until });
            (until, index) = (step.lo, step.parent);
        }
        let (at, drawing) = (drawing.end, Some(drawing));
        Some(Reached { milestone: Milestone::Completed, at, drawing, hops, noticed: COMPLETED, command: false })
    }

    /// All stretches of work from the receipt of an input on, each after the one that led to it.
    fn steps(&self, delivery: &Delivery, handled: Nanos) -> Vec<WorkStep> {
        let Some((at, tid)) = delivery.dequeued else { return Vec::new() };
        let (recording, mut frames) = (self.recording, 0);
        let hi = self.works_until(delivery, tid, at, &mut frames).max(handled.min(at.after(WORK_MAX)));
        let mut steps = vec![WorkStep { tid, lo: at, hi, parent: usize::MAX, depth: 0, frames }];
        let (mut seen, mut next) = (HashSet::new(), 0);
        while next < steps.len() && steps.len() < STEPS_MAX {
            let WorkStep { tid, lo, hi, depth, frames: before, .. } = steps[next];
            let wakes = recording.wakes.by(tid, lo, hi).take(if depth < DEPTH_MAX { WAKES_MAX } else { 0 });
            for (at, wakee) in wakes.filter(|(at, wakee)| is_near(recording, delivery.client, *wakee, *at)) {
                if seen.insert((wakee, at)) {
                    let mut frames = before;
                    let hi = self.works_until(delivery, wakee, at, &mut frames);
                    steps.push(WorkStep { tid: wakee, lo: at, hi, parent: next, depth: depth + 1, frames });
                }
            }
            next += 1;
        }
        steps
    }

    /// Until when a thread works without waiting for anybody but a device, a lock, the next frame, or, in the middle of
    /// its work, an answer. One that computes all the time does until its next drawing.
    fn works_until(&self, delivery: &Delivery, tid: Tid, at: Nanos, frames: &mut usize) -> Nanos {
        let recording = self.recording;
        if recording.is_restless(tid, Pause::EventWait, at) {
            let drawn = recording.drawings().next(tid, at);
            return drawn.filter(|drawn| !recording.may_answer_nobody(tid, at, *drawn)).unwrap_or(at);
        }
        let Some(first) = recording.timeline.at(tid, at) else { return at };
        for span in (first.index..).map_while(|index| recording.timeline.span(tid, index)) {
            let waits = span.segment.state == ThreadState::Blocked && span.start >= at;
            match span.segment.state {
                ThreadState::Absent => return span.start.max(at),
                _ if waits && !self.is_part(delivery, &span, frames) => return span.start,
                _ => {}
            }
        }
        recording.mark
    }

    fn is_part(&self, delivery: &Delivery, span: &Span, frames: &mut usize) -> bool {
        let elsewhere = || self.places.is_elsewhere(self.recording, span) && !self.is_next_job(delivery, span);
        is_part_of_work(self.recording, span, frames) || elsewhere()
    }

    /// Whether a wait ended with the work on a later input, which nobody had begun when the thread that took this one
    /// was at it.
    fn is_next_job(&self, delivery: &Delivery, span: &Span) -> bool {
        let receipts = self.receipts.get(&delivery.client);
        let (Some((taken, _)), Some(waker), Some(receipts)) = (delivery.dequeued, span.task_waker(), receipts) else {
            return false;
        };
        let later = receipts.any(taken.after(Nanos(1)), span.end);
        let cause = later.then(|| CauseWalk::new(self.recording, receipts, delivery.stream).back(waker, span.end));
        matches!(cause, Some(Trace::Input(bursts)) if bursts.iter().all(|burst| burst.from > taken))
    }
}

fn is_near(recording: &Recording, client: Pid, tid: Tid, at: Nanos) -> bool {
    let life = recording.tasks.life(tid, at.after(Nanos(1)));
    life.is_some_and(|life| !life.is_kernel() && recording.tasks.descends(life.pid, client, at))
}

fn is_part_of_work(recording: &Recording, span: &Span, frames: &mut usize) -> bool {
    let kind = recording.waits.kind(span);
    let recorded = recording.waits.find(span).is_some();
    let lock = kind == Waited::Futex && recorded && !recording.waits.is_for_condition(span);
    if recording.is_handover(span) || kind < Waited::Futex || lock {
        return true;
    }
    let ended = span.end < recording.mark && span.task_waker().is_none();
    let frame = ended && span.end.since(span.start) <= FRAME && *frames < FRAMES_MAX;
    *frames += usize::from(frame);
    frame
}
