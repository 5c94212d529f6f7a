// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a display server did with a drawing: when it dequeued it, and when it was done with it.

use crate::decode::messages::{PartPlace, Side, Stream};
use crate::timeline::bursts::FRAME;
use crate::timeline::recording::Recording;
use crate::timeline::threads::ThreadState;
use tipme_record::{Nanos, Tid};

/// A thread may go idle this long after something was sent to it without having seen it.
pub(crate) const IDLE_SLACK: Nanos = Nanos(50_000);

/// A compositor composes the screen within so many frames of 60 a second, somewhat late, unless it cannot: idle for
/// longer, it had a reason not to.
const FRAMES: Nanos = Nanos(3 * FRAME.0);

/// Grabs in a row that a server is followed through.
const GRABS_MAX: usize = 64;

/// Receives of a server that are looked at to see whether it went on to another client.
const DEQUEUED_MAX: usize = 4_096;

/// A drawing and what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Drawing {
    pub sent: Nanos,
    pub tid: Tid,
    pub place: PartPlace,
    /// When the server dequeued it, and the thread that did.
    pub dequeued: Option<(Nanos, Tid)>,
    /// When the server was done with it; the mark where it was not.
    pub end: Nanos,
}

/// What became of a drawing.
pub(crate) fn drawing(recording: &Recording, place: PartPlace) -> Option<Drawing> {
    let stream = recording.messages.stream(place.stream)?;
    let part = stream.side(Side::RequestSent).get(place.part)?;
    let dequeued = stream.received(Side::RequestSent, place.part).map(|(_, dequeued)| (dequeued.ts, dequeued.tid));
    let dequeued = dequeued
        .filter(|dequeued| !missed(recording, part.ts, *dequeued))
        .or_else(|| unrecorded(recording, stream, part.ts));
    let presented = stream.presented(place.part).filter(|at| *at >= part.ts && *at <= recording.mark);
    let end = presented.unwrap_or_else(|| {
        dequeued.map_or(recording.mark, |(at, server)| {
            let end = handled(recording, place.stream, at, server);
            shown(recording, server, stream.frame_done(place.part), end)
        })
    });
    let sent = dequeued.map_or(part.ts, |(at, _)| part.ts.min(at));
    Some(Drawing { sent, tid: part.tid, place, dequeued, end })
}

/// When a drawing was done with, where a compositor says so itself. It says so late where nobody sees the window, and then
/// idles meanwhile; one that was stopped, starved or busy shows late what somebody waits for.
fn shown(recording: &Recording, server: Tid, frame_done: Option<Nanos>, end: Nanos) -> Nanos {
    let soon = |done: &Nanos| recording.idle_time(server, end, *done) <= FRAMES;
    frame_done.filter(|done| *done >= end).filter(soon).unwrap_or(end)
}

/// Whether a server went idle before it dequeued something, which cannot be unless for a client's grab: the
/// receive belongs to something else, and the right one was not recorded.
pub(crate) fn missed(recording: &Recording, sent: Nanos, (at, server): (Nanos, Tid)) -> bool {
    open_idle_after(recording, server, sent.after(IDLE_SLACK)) < at
}

/// When a server is idle next without a client's grab that keeps it from the others.
fn open_idle_after(recording: &Recording, server: Tid, from: Nanos) -> Nanos {
    let mut idle = recording.idle_after(server, from);
    for _ in 0..GRABS_MAX {
        match recording.messages.grab(idle) {
            Some((_, until)) if until < recording.mark => {
                // Its end, too, has to wake the server first.
                let resting =
                    recording.timeline.at(server, until).filter(|span| span.segment.state == ThreadState::Blocked);
                idle = recording.idle_after(server, resting.map_or(until, |span| span.end));
            }
            Some(_) => return recording.mark,
            None => break,
        }
    }
    idle
}

/// When something was dequeued that no receive is known for: at once, where the server went idle after it.
fn unrecorded(recording: &Recording, stream: &Stream, sent: Nanos) -> Option<(Nanos, Tid)> {
    let server = stream.reader(Side::RequestReceived);
    let idle = open_idle_after(recording, server, sent.after(IDLE_SLACK));
    (idle < recording.mark).then_some((sent, server))
}

/// When a server is done with what it took: it waits again, takes what another client sent, or tells
/// this one of something, which it does after all that the client asked for before.
fn handled(recording: &Recording, stream: usize, at: Nanos, server: Tid) -> Nanos {
    let idle = recording.idle_after(server, at);
    let dequeued = recording.messages.received_within(server, at.after(Nanos(1)), idle);
    let other = dequeued.iter().take(DEQUEUED_MAX).find(|(_, _, place)| place.stream != stream).map(|(_, at, _)| *at);
    let told = recording.messages.stream(stream).and_then(|stream| {
        let sent = stream.side(Side::EventSent);
        sent.get(sent.partition_point(|part| part.ts <= at)).map(|part| part.ts)
    });
    other.into_iter().chain(told).fold(idle, Nanos::min)
}
