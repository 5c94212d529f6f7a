// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input methods of Wayland: programs that make text of keys, such as those for Chinese and Japanese.
//!
//! An input method grabs the keyboard. The compositor tells it of a key; it answers with text, which the compositor tells
//! the client, or it presses the key again as a virtual keyboard. Either way what the client is told of is the person's
//! key, and the input method had it until it answered. What it was told of and passed on is no input of its own.

use crate::decode::messages::{PartPlace, Side, Stream};
use crate::decode::objects::Act;
use crate::decode::parts::Part;
use crate::decode::protocol::InputDeviceKind;
use crate::join::inputs::{self, Delivery, SLACK};
use crate::timeline::bursts::Wake;
use crate::timeline::recording::Recording;
use std::collections::BTreeSet;
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// What an input method did with a key.
struct Reply {
    /// When it sent that, and its thread.
    at: Nanos,
    by: Tid,
    method: Pid,
    told: Told,
}

/// How the client was told of it.
enum Told {
    /// By an event of its keyboard: the delivery of that number.
    Key(usize),
    Text(Delivery),
}

/// The inputs of all clients, where those that an input method passed on are the keys that it was told of.
pub(crate) fn passed_on(recording: &Recording, mut deliveries: Vec<Delivery>) -> Vec<Delivery> {
    let streams = grabbing(recording);
    if streams.is_empty() {
        return deliveries;
    }
    let (grabbed, mut deliveries): (Vec<_>, Vec<_>) =
        deliveries.drain(..).partition(|one| streams.contains(&one.stream) && one.class == InputClass::Key);
    let mut replies = texts(recording, &streams);
    replies.extend(forwarded(recording, &streams, &deliveries));
    replies.sort_by_key(|reply| reply.at);
    let kept = answer(recording, grabbed, replies, &mut deliveries);
    deliveries.extend(kept);
    deliveries.sort_by_key(|delivery| delivery.sent);
    deliveries
}

/// Connections on which input methods are told of keys.
fn grabbing(recording: &Recording) -> BTreeSet<usize> {
    let streams = recording.messages.streams().iter().enumerate();
    let grabs = streams.filter(|(_, stream)| recording.messages.tells(stream, Act::GrabbedKey));
    grabs.map(|(index, _)| index).collect()
}

fn tells(recording: &Recording, part: &Part, act: Act) -> bool {
    recording.messages.words(part).iter().any(|word| word.act() == Some(act))
}

/// Gives each reply the latest key that its input method had taken and not answered; the keys that nothing answers.
fn answer(
    recording: &Recording,
    grabbed: Vec<Delivery>,
    replies: Vec<Reply>,
    deliveries: &mut Vec<Delivery>,
) -> Vec<Delivery> {
    let mut open = grabbed;
    for reply in replies {
        let Some(index) = open.iter().rposition(|key| reply.answers(recording, key)) else { continue };
        let key = open.remove(index);
        let of_key = |told: Delivery| Delivery { input: key.input, released: Some((reply.at, reply.by)), ..told };
        match reply.told {
            Told::Key(index) => deliveries[index] = of_key(deliveries[index]),
            Told::Text(delivery) => deliveries.push(of_key(delivery)),
        }
    }
    open
}

impl Reply {
    /// Whether it follows from a key: from the burst in which its input method took that, or because somebody whom the
    /// input method asked woke it. What the compositor or a timer had it do later is another matter.
    fn answers(&self, recording: &Recording, key: &Delivery) -> bool {
        let Some((taken, _)) = key.dequeued.filter(|(taken, _)| key.client == self.method && *taken <= self.at) else {
            return false;
        };
        let burst = recording.burst(self.by, self.at);
        let server = recording.tasks.pid(key.server, key.sent);
        let asked = |waker: Tid| recording.tasks.pid(waker, burst.start) != server;
        burst.start <= taken || matches!(burst.wake, Wake::Task(waker) if asked(waker))
    }
}

/// What clients were told of text, each after a request of an input method.
fn texts(recording: &Recording, streams: &BTreeSet<usize>) -> Vec<Reply> {
    let clients = recording.messages.streams().iter().enumerate();
    let parts = clients.flat_map(|(index, stream)| {
        let parts = stream.side(Side::EventSent).iter().enumerate();
        parts.map(move |(number, part)| (PartPlace { stream: index, part: number }, stream, part))
    });
    let told = parts.filter(|(_, _, part)| tells(recording, part, Act::Text));
    let reply = |(place, stream, part): (PartPlace, &Stream, &Part)| {
        let (at, by, method) = request(recording, streams, part)?;
        let delivery = inputs::tell(InputClass::Key, stream, place, part, part.ts);
        Some(Reply { at, by, method, told: Told::Text(Delivery { inferred: true, ..delivery }) })
    };
    told.filter_map(reply).collect()
}

/// The last request of an input method that the compositor took in the burst in which it sent something: when it was sent,
/// and by whom.
fn request(recording: &Recording, streams: &BTreeSet<usize>, sent: &Part) -> Option<(Nanos, Tid, Pid)> {
    let from = recording.burst(sent.tid, sent.ts).start.before(SLACK);
    let taken = recording.messages.received_within(sent.tid, from, sent.ts.after(Nanos(1))).iter();
    let (_, at, place) = taken.rev().find(|(_, _, place)| streams.contains(&place.stream))?;
    let stream = recording.messages.stream(place.stream)?;
    let (_, request) = stream.sent(Side::RequestReceived, place.part)?;
    Some((request.ts.min(*at), request.tid, stream.client))
}

/// Keys that an input method pressed again: the input of whoever was told of them.
fn forwarded(recording: &Recording, streams: &BTreeSet<usize>, deliveries: &[Delivery]) -> Vec<Reply> {
    let methods: BTreeSet<Pid> =
        streams.iter().filter_map(|index| Some(recording.messages.stream(*index)?.client)).collect();
    let keys = inputs::injected(recording).filter(|(_, press)| press.device == InputDeviceKind::Keyboard);
    let reply = |press: inputs::DevicePress| {
        let by = press.by?;
        let method = recording.tasks.pid(by, press.at);
        let is_it =
            |one: &Delivery| one.class == InputClass::Key && one.input <= press.at && press.at <= one.sent.after(SLACK);
        let index = deliveries.iter().rposition(is_it).filter(|_| methods.contains(&method))?;
        Some(Reply { at: press.at, by, method, told: Told::Key(index) })
    };
    keys.filter_map(|(_, press)| reply(press)).collect()
}
