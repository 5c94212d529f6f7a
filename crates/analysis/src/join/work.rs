// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work that an input leads to, forward over wake-ups, until its last drawing.
//!
//! A thread works from its wake-up until its first wait that is neither for a device nor for a lock nor for a frame: then
//! it waits for somebody, and what it does afterwards is that one's matter. Only threads of the client and of
//! its descendants are followed; depth and number are bounded.

use crate::decode::messages::{Place, Side};
use crate::join::answer::{COMPLETED, Milestone, Reached};
use crate::join::cause::Hop;
use crate::join::inputs::Told;
use crate::join::served::drawing;
use crate::timeline::bursts::FRAME;
use crate::timeline::recording::Recording;
use crate::timeline::threads::{Span, State};
use crate::timeline::waits::Waited;
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

/// Who draws what, by thread.
pub struct Drawings(HashMap<Tid, Vec<(Nanos, Place)>>);

/// A stretch of work.
struct Step {
    tid: Tid,
    lo: Nanos,
    hi: Nanos,
    parent: usize,
    depth: usize,
    frames: usize,
}

impl Drawings {
    pub fn new(recording: &Recording) -> Drawings {
        let mut drawings: HashMap<Tid, Vec<(Nanos, Place)>> = HashMap::new();
        for (index, stream) in recording.messages.streams().iter().enumerate() {
            let sent = stream.side(Side::RequestSent).iter().enumerate();
            for (part, sent) in sent.filter(|(_, sent)| recording.messages.draws(stream, sent)) {
                drawings.entry(sent.tid).or_default().push((sent.ts, Place { stream: index, part }));
            }
        }
        drawings.values_mut().for_each(|list| list.sort_unstable());
        Drawings(drawings)
    }

    /// The last drawing of a thread in `lo..=hi`.
    fn last(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<(Nanos, Place)> {
        let list = self.0.get(&tid)?;
        let last = list.partition_point(|(sent, _)| *sent <= hi).checked_sub(1)?;
        list.get(last).copied().filter(|(sent, _)| *sent >= lo)
    }
}

/// The last drawing in the work that an input led to, and the way there.
pub fn completed(recording: &Recording, drawings: &Drawings, told: &Told, handled: Nanos) -> Option<Reached> {
    let (at, tid) = told.taken?;
    let steps = steps(recording, told.client, at, tid, handled.min(at.after(WORK_MAX)));
    let last = steps.iter().enumerate().filter_map(|(index, step)| {
        drawings.last(step.tid, step.lo, step.hi).map(|(sent, place)| (sent, place, index))
    });
    let (sent, place, mut index) = last.max()?;
    let drawing = drawing(recording, place)?;
    let (mut hops, mut until) = (Vec::new(), sent);
    while let Some(step) = steps.get(index) {
        hops.push(Hop { tid: step.tid, lo: step.lo, hi: until });
        (until, index) = (step.lo, step.parent);
    }
    let (at, drawing) = (drawing.end, Some(drawing));
    Some(Reached { milestone: Milestone::Completed, at, drawing, hops, noticed: COMPLETED, command: false })
}

/// All stretches of work from a receipt on, each after the one that led to it.
fn steps(recording: &Recording, client: Pid, at: Nanos, tid: Tid, handled: Nanos) -> Vec<Step> {
    let mut frames = 0;
    let hi = works_until(recording, tid, at, &mut frames).max(handled);
    let mut steps = vec![Step { tid, lo: at, hi, parent: usize::MAX, depth: 0, frames }];
    let (mut seen, mut next) = (HashSet::new(), 0);
    while next < steps.len() && steps.len() < STEPS_MAX {
        let Step { tid, lo, hi, depth, frames: before, .. } = steps[next];
        let wakes = recording.wakes.by(tid, lo, hi).take(if depth < DEPTH_MAX { WAKES_MAX } else { 0 });
        for (at, wakee) in wakes.filter(|(at, wakee)| is_near(recording, client, *wakee, *at)) {
            if seen.insert((wakee, at)) {
                let mut frames = before;
                let hi = works_until(recording, wakee, at, &mut frames);
                steps.push(Step { tid: wakee, lo: at, hi, parent: next, depth: depth + 1, frames });
            }
        }
        next += 1;
    }
    steps
}

fn is_near(recording: &Recording, client: Pid, tid: Tid, at: Nanos) -> bool {
    let life = recording.tasks.life(tid, at.after(Nanos(1)));
    life.is_some_and(|life| !life.is_kernel() && recording.tasks.descends(life.pid, client, at))
}

/// Until when a thread works without waiting for anybody but a device, a lock or the next frame.
fn works_until(recording: &Recording, tid: Tid, at: Nanos, frames: &mut usize) -> Nanos {
    let Some(first) = recording.timeline.at(tid, at) else { return at };
    for span in (first.index..).map_while(|index| recording.timeline.span(tid, index)) {
        match span.segment.state {
            State::Absent => return span.start.max(at),
            State::Blocked if span.start >= at && !is_part_of_work(recording, &span, frames) => return span.start,
            _ => {}
        }
    }
    recording.mark
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
