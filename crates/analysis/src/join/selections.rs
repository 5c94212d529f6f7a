// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copy and paste: a client asks for a selection, and its owner, another client, has to answer through the server.

use crate::decode::messages::{Side, Stream};
use crate::decode::parts::Part;
use crate::decode::protocol::Word;
use crate::join::answer::{COMPLETED, Milestone, Reached};
use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::timeline::recording::Recording;
use tipme_record::{Nanos, Tid};

/// A client asks for a selection so soon after the input that wants it, and its owner hears of it so soon.
const ASKED_MAX: Nanos = Nanos::from_millis(300);

/// Quicker answers are not looked at.
const ANSWER_MIN: Nanos = Nanos::from_millis(300);

/// Parts of a connection that are searched for one request.
const PARTS_MAX: usize = 4_096;

/// The end of a selection's transfer that an input asked for, where it took long: the owner's answer.
pub(crate) fn pasted(recording: &Recording, delivery: &Delivery) -> Option<Reached> {
    let (at, tid) = delivery.dequeued?;
    let stream = recording.messages.stream(delivery.stream)?;
    let asked = first(recording, stream, Side::RequestSent, (at, at.after(ASKED_MAX)), Word::asks_for_selection)?;
    let (heard, owner) = owner(recording, stream, asked.ts)?;
    let told_of = first(recording, stream, Side::EventSent, (asked.ts, recording.mark), Word::tells_of_selection);
    let at_end = told_of.map_or(recording.mark, |part| part.ts);
    let hops = vec![
        Hop { tid: owner, lo: heard, hi: at_end },
        Hop { tid: delivery.server, lo: asked.ts, hi: heard },
        Hop { tid, lo: at, hi: asked.ts },
    ];
    let reached = Reached {
        milestone: Milestone::Completed,
        at: at_end,
        drawing: None,
        hops,
        noticed: COMPLETED,
        command: false,
    };
    (at_end.since(asked.ts) >= ANSWER_MIN).then_some(reached)
}

/// The thread of the client that was asked for a selection, and when the server told it.
fn owner(recording: &Recording, asker: &Stream, asked: Nanos) -> Option<(Nanos, Tid)> {
    let others = recording.messages.streams().iter().filter(|other| other.server == asker.server);
    let asked = others.filter_map(|other| {
        let span = (asked, asked.after(ASKED_MAX));
        let part = first(recording, other, Side::EventSent, span, Word::wants_selection)?;
        Some((part.ts, other.reader(Side::EventReceived)))
    });
    asked.min()
}

/// The first part of a side in a span of time that has such a word.
fn first<'a>(
    recording: &Recording,
    stream: &'a Stream,
    side: Side,
    (lo, hi): (Nanos, Nanos),
    wanted: fn(Word) -> bool,
) -> Option<&'a Part> {
    let parts = stream.side(side);
    let from = parts.partition_point(|part| part.ts < lo);
    let mut within = parts[from..].iter().take(PARTS_MAX).take_while(|part| part.ts <= hi);
    within.find(|part| recording.messages.words(part).iter().any(|word| wanted(*word)))
}
