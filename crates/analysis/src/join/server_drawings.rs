// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handling of a drawing by the display server: its receipt and its end.

use crate::decode::messages::{PartPlace, Side, Stream};
use crate::timeline::bursts::FRAME;
use crate::timeline::recording::Recording;
use tipme_record::{Nanos, Tid};

/// Maximum time by which a thread may go idle after a send to it without having seen it.
pub(crate) const IDLE_SLACK: Nanos = Nanos(50_000);

/// Maximum idle time of a compositor before it composes the screen: a few frames at 60 per second,
/// somewhat late. If it is idle for longer, the delay is deliberate.
const FRAMES: Nanos = Nanos(3 * FRAME.0);

/// Maximum number of consecutive grabs followed.
const GRABS_MAX: usize = 64;

/// Maximum number of receives of a server searched for another client.
const DEQUEUED_MAX: usize = 4_096;

/// Drawing, with its handling by the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Drawing {
    pub sent: Nanos,
    pub tid: Tid,
    pub place: PartPlace,
    /// Time of the receipt, and the server thread that dequeued it.
    pub dequeued: Option<(Nanos, Tid)>,
    /// Time at which the server was done with it; the mark if it was not.
    pub end: Nanos,
}

/// Returns a drawing with its handling by the server.
pub(crate) fn drawing(recording: &Recording, place: PartPlace) -> Option<Drawing> {
    let stream = recording.messages.stream(place.stream)?;
    let part = stream.side(Side::RequestSent).get(place.part)?;
    let receipt = stream.receipt(Side::RequestSent, place.part);
    let dequeued = receipt
        .map(|dequeued| (dequeued.ts, dequeued.tid))
        .filter(|dequeued| !missed(recording, part.ts, *dequeued))
        .or_else(|| unrecorded(recording, stream, part.ts));
    let presented =
        stream.presented(place.part).filter(|at| *at >= part.ts && *at <= recording.mark);
    let end = presented.unwrap_or_else(|| {
        dequeued.map_or(recording.mark, |(at, server)| {
            let end = handled(recording, place.stream, at, server);
            shown(recording, server, stream.frame_done(place.part), end)
        })
    });
    let sent = dequeued.map_or(part.ts, |(at, _)| part.ts.min(at));
    Some(Drawing { sent, tid: part.tid, place, dequeued, end })
}

/// Returns the end of a drawing as a compositor reports it by a frame callback. For an invisible
/// window the callback is late while the compositor idles; a stopped, starved or busy compositor
/// delays a visible result.
fn shown(recording: &Recording, server: Tid, frame_done: Option<Nanos>, end: Nanos) -> Nanos {
    frame_done
        .filter(|done| *done >= end && recording.idle_time(server, end, *done) <= FRAMES)
        .unwrap_or(end)
}

/// Returns `true` if a server went idle before it dequeued something, which is impossible except
/// for a client's grab: the receive belongs to something else, and the right one was not recorded.
pub(crate) fn missed(recording: &Recording, sent: Nanos, (at, server): (Nanos, Tid)) -> bool {
    open_idle_after(recording, server, sent.after(IDLE_SLACK)) < at
}

/// Returns the next idle time of a server without a client's grab that locks the other clients out.
fn open_idle_after(recording: &Recording, server: Tid, from: Nanos) -> Nanos {
    let mut idle = recording.idle_after(server, from);
    for _ in 0..GRABS_MAX {
        match recording.messages.grab(idle) {
            Some((_, until)) if until < recording.mark => {
                // The end of the grab has to wake the server as well.
                let resting = recording.timeline.at(server, until).filter(|span| span.is_blocked());
                idle = recording.idle_after(server, resting.map_or(until, |span| span.end));
            }
            Some(_) => return recording.mark,
            None => break,
        }
    }
    idle
}

/// Returns the receipt of a send without a known receive: at once, if the server went idle after
/// it.
fn unrecorded(recording: &Recording, stream: &Stream, sent: Nanos) -> Option<(Nanos, Tid)> {
    let server = stream.reader(Side::RequestReceived);
    let idle = open_idle_after(recording, server, sent.after(IDLE_SLACK));
    (idle < recording.mark).then_some((sent, server))
}

/// Returns the time at which a server is done with a request: it waits again, receives a request of
/// another client, or sends an event to this one, which it does after all earlier requests of the
/// client.
fn handled(recording: &Recording, stream: usize, at: Nanos, server: Tid) -> Nanos {
    let idle = recording.idle_after(server, at);
    let dequeued = recording.messages.received_within(server, at.after(Nanos(1)), idle);
    let other = dequeued
        .iter()
        .take(DEQUEUED_MAX)
        .find(|(_, _, place)| place.stream != stream)
        .map(|(_, at, _)| *at);
    let event = recording.messages.stream(stream).and_then(|stream| {
        let sent = stream.side(Side::EventSent);
        sent.get(sent.partition_point(|part| part.ts <= at)).map(|part| part.ts)
    });
    other.into_iter().chain(event).fold(idle, Nanos::min)
}
