// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completions by the end of a child: previewers, checkers and other helpers that a program starts
//! for an input. Once they have ended, it shows their result, or ends with it.
//!
//! No wakeup needs to lead from the child to the drawing: a program may look for its end at
//! intervals. Therefore the order in time counts: no drawing just before the end of the child, one
//! just after it, and no other input in between.

use crate::decode::messages::Side;
use crate::join::answer::{COMPLETED, Reached};
use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::timeline::recording::Recording;
use crate::timeline::tasks::Life;
use tipme_measure::InputClass;
use tipme_record::Nanos;

/// Maximum time from an input to the start of the child.
const STARTED_MAX: Nanos = Nanos::from_millis(500);

/// Maximum time from the end of the child to the drawing, and minimum time without one before it.
const SHOWN_MAX: Nanos = Nanos::from_millis(100);

/// Returns when an input was completed by the end of a child that it had started, if that took
/// long.
pub(crate) fn completed(
    recording: &Recording,
    delivery: &Delivery,
    deliveries: &[Delivery],
) -> Option<Reached> {
    let (taken, tid) = delivery.dequeued.filter(|_| delivery.class != InputClass::Motion)?;
    let mut helpers = recording.tasks.lives().iter().filter(|life| {
        life.tid.0 == life.pid.0
            && life.from > delivery.input
            && life.from <= taken.after(STARTED_MAX)
            && life.until < recording.mark
            && life.until.since(life.from) > COMPLETED
            && recording.tasks.descends(life.pid, delivery.client, life.from.after(Nanos(1)))
    });
    helpers.find_map(|child| {
        let at = shown_after(recording, delivery, child)?;
        let own = deliveries
            .iter()
            .filter(|one| one.client == delivery.client && one.class != InputClass::Motion);
        if own.filter_map(|one| one.dequeued).any(|(next, _)| next > taken && next <= at) {
            return None;
        }
        let hops = vec![
            Hop::new(tid, child.until, at),
            Hop::new(child.tid, child.from, child.until),
            Hop::new(tid, taken, child.from),
        ];
        Some(Reached::completed(at, hops))
    })
}

/// Returns the time at which the client drew or exited, if that was just after a child exited.
fn shown_after(recording: &Recording, delivery: &Delivery, child: &Life) -> Option<Nanos> {
    let end = child.until;
    let (lo, hi) = (end.before(SHOWN_MAX), end.after(SHOWN_MAX).min(recording.mark));
    let drawn = recording.messages.streams_of(delivery.client).flat_map(|stream| {
        let sent = stream.side(Side::RequestSent);
        let first = sent.partition_point(|part| part.ts < lo);
        let near = sent[first..].iter().take_while(|part| part.ts <= hi);
        near.filter(|part| recording.messages.draws(stream, part)).map(|part| part.ts)
    });
    let left = recording.tasks.process(delivery.client, end).map(|life| life.until);
    match drawn.min() {
        Some(at) => (at > end).then_some(at),
        None => left.filter(|left| (end..=hi).contains(left)),
    }
}
