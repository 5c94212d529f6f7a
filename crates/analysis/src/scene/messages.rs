// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages between the application and its display server, and requests by other clients.

use crate::decode::messages::{Side, Stream};
use crate::decode::parts::Part;
use crate::explain::describe::{bytes_text, process_text, span_text};
use crate::scene::lanes::Stretch;
use crate::scene::look::Look;
use crate::scene::picture::{Track, TrackGroup};
use crate::scene::stage::SceneStage;
use crate::timeline::recording::Recording;
use std::collections::BTreeSet;
use tipme_record::Nanos;

/// Stream and message, with the time at which it was dequeued.
type Found<'a> = (&'a Stream, &'a Part, Option<Nanos>);

/// Returns the tracks of events to the client, its requests, and requests of other clients.
pub(super) fn tracks(stage: &mut SceneStage<'_>) -> Vec<Track> {
    let streams = stage.recording.messages.streams();
    let client = stage.problem.client;
    let (own, others): (Vec<&Stream>, Vec<&Stream>) =
        streams.iter().partition(|stream| stream.client == client);
    let servers: BTreeSet<_> = own.iter().map(|stream| stream.server).collect();
    let others: Vec<&Stream> =
        others.into_iter().filter(|stream| servers.contains(&stream.server)).collect();
    let lines = [
        ("Display server to application", &own, Side::EventSent, Look::ToClient),
        ("Application to display server", &own, Side::RequestSent, Look::FromClient),
        ("Others to display server", &others, Side::RequestSent, Look::Other),
    ];
    let tracks = lines.map(|(name, streams, side, look)| track(stage, name, streams, (side, look)));
    tracks.into_iter().filter(|track| !track.bars.is_empty()).collect()
}

fn track(stage: &mut SceneStage<'_>, name: &str, streams: &[&Stream], what: (Side, Look)) -> Track {
    let (side, look) = what;
    let mut found: Vec<Found<'_>> = Vec::new();
    for stream in streams {
        let parts = stream.side(side);
        let first = parts.partition_point(|part| part.ts < stage.from);
        for (index, part) in
            parts.iter().enumerate().skip(first).take_while(|(_, part)| part.ts <= stage.to)
        {
            found.push((stream, part, stream.receipt(side, index).map(|dequeued| dequeued.ts)));
        }
    }
    found.sort_by_key(|(_, part, _)| part.ts);
    let stretches = found.iter().enumerate().map(|(of, (_, part, dequeued))| Stretch {
        lo: part.ts,
        hi: dequeued.unwrap_or(part.ts).max(part.ts),
        look,
        of,
    });
    let stretches: Vec<Stretch> = stretches.collect();
    let recording = stage.recording;
    let bars = stage.sparse(&stretches, |of| {
        found.get(of).map(|one| text(recording, side, one)).unwrap_or_default()
    });
    Track { group: TrackGroup::Messages, name: name.to_owned(), look: None, bars }
}

/// Formats `drawing by xterm (pid 7), 132 B, dequeued after 0.10 ms`.
fn text(recording: &Recording, side: Side, (stream, part, dequeued): &Found<'_>) -> String {
    let client = process_text(recording, stream.client, part.ts);
    let action = match side {
        Side::EventSent | Side::EventReceived => "events or replies to",
        _ if recording.messages.draws(stream, part) => "drawing by",
        _ => "requests of",
    };
    let dequeued = dequeued.map_or_else(
        || "not seen dequeued".to_owned(),
        |dequeued| format!("dequeued after {}", span_text(dequeued.since(part.ts))),
    );
    format!("{action} {client}, {}, {dequeued}", bytes_text(part.bytes))
}
