// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wayland input methods: programs that convert keys to text, such as those for Chinese and
//! Japanese.
//!
//! An input method grabs the keyboard. The compositor sends it a key; it answers with text, which
//! the compositor passes to the client, or presses the key again on a virtual keyboard. Either way
//! the client receives the user's key, and the input method held it until it answered. A key that
//! the input method received and passed on is no input of its own.

use crate::decode::messages::{PartPlace, Side};
use crate::decode::objects::Act;
use crate::decode::parts::Part;
use crate::decode::protocol::InputDeviceKind;
use crate::join::inputs::{self, Delivery, SLACK};
use crate::timeline::bursts::Wake;
use crate::timeline::recording::Recording;
use std::collections::BTreeSet;
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Reaction of an input method to a key.
struct Reply {
    /// Time and thread of the send.
    at: Nanos,
    by: Tid,
    method: Pid,
    event: ReplyEvent,
}

/// Event in which the client received a reply.
enum ReplyEvent {
    /// An event of its keyboard: the delivery with that index.
    Key(usize),
    Text(Delivery),
}

/// Replaces inputs that an input method passed on by the keys that it received; returns the inputs
/// of all clients.
pub(crate) fn passed_on(recording: &Recording, mut deliveries: Vec<Delivery>) -> Vec<Delivery> {
    let streams = grabbing(recording);
    if streams.is_empty() {
        return deliveries;
    }
    let (grabbed, mut deliveries): (Vec<_>, Vec<_>) = deliveries
        .drain(..)
        .partition(|one| streams.contains(&one.stream) && one.class == InputClass::Key);
    let mut replies = texts(recording, &streams);
    replies.extend(forwarded(recording, &streams, &deliveries));
    replies.sort_by_key(|reply| reply.at);
    let kept = answer(recording, grabbed, replies, &mut deliveries);
    deliveries.extend(kept);
    deliveries.sort_by_key(|delivery| delivery.sent);
    deliveries
}

/// Returns the connections on which input methods receive keys.
fn grabbing(recording: &Recording) -> BTreeSet<usize> {
    let streams = recording.messages.streams().iter().enumerate();
    let grabs = streams.filter(|(_, stream)| recording.messages.has_event(stream, Act::GrabbedKey));
    grabs.map(|(index, _)| index).collect()
}

/// Assigns to each reply the latest unanswered key that its input method received; returns the keys
/// without a reply.
fn answer(
    recording: &Recording,
    grabbed: Vec<Delivery>,
    replies: Vec<Reply>,
    deliveries: &mut Vec<Delivery>,
) -> Vec<Delivery> {
    let mut open = grabbed;
    for reply in replies {
        let Some(index) = open.iter().rposition(|key| reply.answers(recording, key)) else {
            continue;
        };
        let key = open.remove(index);
        let received = match reply.event {
            ReplyEvent::Key(index) => index,
            ReplyEvent::Text(delivery) => {
                deliveries.push(delivery);
                deliveries.len() - 1
            }
        };
        let delivery = &mut deliveries[received];
        (delivery.input, delivery.released) = (key.input, Some((reply.at, reply.by)));
    }
    open
}

impl Reply {
    /// Returns `true` if the reply follows from a key: from the burst in which its input method
    /// received it, or because a thread that the input method asked woke it. Later work for the
    /// compositor or a timer is unrelated.
    fn answers(&self, recording: &Recording, key: &Delivery) -> bool {
        let Some((taken, _)) =
            key.dequeued.filter(|(taken, _)| key.client == self.method && *taken <= self.at)
        else {
            return false;
        };
        let burst = recording.burst(self.by, self.at);
        let server = recording.tasks.pid(key.server, key.sent);
        burst.start <= taken
            || matches!(burst.wake, Wake::Task(by) if recording.tasks.pid(by, burst.start) != server)
    }
}

/// Returns the text events of clients that follow a request of an input method.
fn texts(recording: &Recording, streams: &BTreeSet<usize>) -> Vec<Reply> {
    let clients = recording.messages.streams().iter().enumerate();
    let parts = clients.flat_map(|(index, stream)| {
        let parts = stream.side(Side::EventSent).iter().enumerate();
        parts.map(move |(number, part)| (PartPlace { stream: index, part: number }, stream, part))
    });
    let texts = parts.filter(|(_, _, part)| recording.messages.has_act(part, Act::Text));
    let replies = texts.filter_map(|(place, stream, part)| {
        let (at, by, method) = request(recording, streams, part)?;
        let delivery = inputs::delivery(InputClass::Key, stream, place, part, part.ts);
        let event = ReplyEvent::Text(Delivery { inferred: true, ..delivery });
        Some(Reply { at, by, method, event })
    });
    replies.collect()
}

/// Returns the last request of an input method that the compositor received in the burst in which
/// it sent `sent`: time, thread and process.
fn request(
    recording: &Recording,
    streams: &BTreeSet<usize>,
    sent: &Part,
) -> Option<(Nanos, Tid, Pid)> {
    let from = recording.burst(sent.tid, sent.ts).start.before(SLACK);
    let taken = recording.messages.received_within(sent.tid, from, sent.ts.after(Nanos(1))).iter();
    let (_, at, place) = taken.rev().find(|(_, _, place)| streams.contains(&place.stream))?;
    let stream = recording.messages.stream(place.stream)?;
    let (_, request) = stream.sent(Side::RequestReceived, place.part)?;
    Some((request.ts.min(*at), request.tid, stream.client))
}

/// Returns the keys that an input method pressed again, as inputs of the clients that received
/// them.
fn forwarded(
    recording: &Recording,
    streams: &BTreeSet<usize>,
    deliveries: &[Delivery],
) -> Vec<Reply> {
    let methods: BTreeSet<Pid> = streams
        .iter()
        .filter_map(|index| Some(recording.messages.stream(*index)?.client))
        .collect();
    let keys =
        inputs::injected(recording).filter(|(_, press)| press.device == InputDeviceKind::Keyboard);
    let replies = keys.filter_map(|(_, inputs::DevicePress { at, by, .. })| {
        let method = recording.tasks.pid(by?, at);
        let received = deliveries.iter().rposition(|one| {
            one.class == InputClass::Key && one.input <= at && at <= one.sent.after(SLACK)
        });
        let index = received.filter(|_| methods.contains(&method))?;
        Some(Reply { at, by: by?, method, event: ReplyEvent::Key(index) })
    });
    replies.collect()
}
