// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copy and paste: a client asks for a selection, and its owner, another client, has to answer,
//! through the server or, under Wayland, into a pipe.

use crate::decode::messages::{Side, Stream};
use crate::decode::objects::Act;
use crate::decode::parts::Part;
use crate::decode::protocol::Word;
use crate::join::answer::Reached;
use crate::join::drawing_cause::Hop;
use crate::join::inputs::Delivery;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use crate::timeline::waits::Waited;
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid};

/// Maximum time from an input to the request for a selection, and from there to the event that the
/// owner receives.
const ASKED_MAX: Nanos = Nanos::from_millis(300);

/// Minimum duration of a transfer that is considered.
const ANSWER_MIN: Nanos = Nanos::from_millis(300);

/// Maximum number of parts of a connection searched for one request.
const PARTS_MAX: usize = 4_096;

/// Maximum number of wakeups by an owner searched for one of the requester.
const WAKES_MAX: usize = 4_096;

/// A requested selection: time of the request, and time of the server's event to its owner.
struct Asked<'a> {
    at: Nanos,
    heard: Nanos,
    owner: &'a Stream,
    /// The answer goes into a pipe, past the server, as under Wayland.
    piped: bool,
}

/// Returns the end of a long selection transfer that an input requested: the owner's answer, or the
/// time at which the requester no longer waited for it.
///
/// A request after the next key or click belongs to that one, if this one had an answer of its own,
/// which a modifier has not.
pub(crate) fn pasted(
    recording: &Recording,
    delivery: &Delivery,
    is_answered: bool,
    handled: &Reached,
) -> Option<Reached> {
    let (at, tid) = delivery.dequeued?;
    let stream = recording.messages.stream(delivery.stream)?;
    let asked = asked(recording, stream, at)
        .filter(|asked| !is_answered || !took_another(recording, stream, at, asked.at))?;
    let answered = answered(recording, stream, &asked);
    let waits = handled.at.since(asked.at) >= ANSWER_MIN && handled.at < answered;
    let end = if waits { handled.at } else { answered };
    let hops = vec![
        Hop::new(asked.owner.reader(Side::EventReceived), asked.heard, end),
        Hop::new(delivery.server, asked.at, asked.heard),
        Hop::new(tid, at, asked.at),
    ];
    let completed = Reached::completed(end, hops);
    let reached = if waits {
        Reached { milestone: handled.milestone, noticed: handled.noticed, ..completed }
    } else {
        completed
    };
    (end.since(asked.at) >= ANSWER_MIN).then_some(reached)
}

/// Returns the request for a selection that a client made soon after a time, and the owner to which
/// the display server passed it.
fn asked<'a>(recording: &'a Recording, asker: &Stream, at: Nanos) -> Option<Asked<'a>> {
    let soon = (at, at.after(ASKED_MAX));
    let at = first(recording, asker, Side::RequestSent, soon, Word::asks_for_selection)?.ts;
    let soon = (at, at.after(ASKED_MAX));
    let others = recording.messages.streams().iter();
    let others =
        others.filter(|other| other.server == asker.server && other.client != asker.client);
    let heard = others.filter_map(|owner| {
        let event = first(recording, owner, Side::EventSent, soon, Word::wants_selection)?;
        let piped = recording.messages.has_act(event, Act::WantsSelection);
        Some(Asked { at, heard: event.ts, owner, piped })
    });
    heard.min_by_key(|asked| asked.heard)
}

/// Returns `true` if a client received another key or click in a time.
fn took_another(recording: &Recording, asker: &Stream, lo: Nanos, hi: Nanos) -> bool {
    let majors = recording.messages.majors(asker);
    let sends = asker.side(Side::EventSent);
    let last = (0..sends.partition_point(|part| part.ts <= hi)).rev().take(PARTS_MAX);
    let mut presses = last.filter(|index| {
        let words = recording.messages.words(&sends[*index]).iter();
        let mut classes = words.filter_map(|word| majors.input_class(*word));
        classes.any(|class| class != InputClass::Motion)
    });
    presses.any(|index| {
        let receipt = asker.receipt(Side::EventSent, index);
        receipt.is_some_and(|part| lo < part.ts && part.ts <= hi)
    })
}

/// Returns the time of the owner's answer; the mark if there was none. For answers through the
/// server, the requester's event shows it.
fn answered(recording: &Recording, asker: &Stream, asked: &Asked<'_>) -> Nanos {
    if asked.piped {
        let taken = asked.owner.side(Side::EventReceived);
        let mut taken = taken[taken.partition_point(|part| part.ts < asked.heard)..].iter();
        let (first, next) = (taken.next(), taken.next().map_or(recording.mark, |part| part.ts));
        return first.map_or(recording.mark, |part| written(recording, asker.client, part, next));
    }
    let within = (asked.at, recording.mark);
    let notice = first(recording, asker, Side::EventSent, within, Word::notifies_of_selection);
    notice.map_or(recording.mark, |part| part.ts)
}

/// Returns the time at which the owner had written its answer into a pipe: its next event wait. If
/// its event wait is a blocking read, the answer is its last wakeup of the requester before its
/// next message.
fn written(recording: &Recording, asker: Pid, taken: &Part, next: Nanos) -> Nanos {
    let (owner, mark) = (taken.tid, recording.mark);
    let waits = recording.pause_after(owner, taken.ts, Pause::EventWait);
    let last = recording.timeline.before(owner, mark);
    let reads = last.is_some_and(|span| recording.waits.kind(&span) == Waited::Peer);
    if waits < next || next == mark && !reads {
        return waits;
    }
    let woken = recording.wakes.by(owner, taken.ts, next).take(WAKES_MAX);
    woken
        .filter(|(at, wakee)| recording.tasks.pid(*wakee, *at) == asker)
        .last()
        .map_or(next, |(at, _)| at)
}

/// Returns the first part of a side in a time that contains such a word.
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
