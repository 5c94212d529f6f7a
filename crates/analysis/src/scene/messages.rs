// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages between the application and its display server, and what other clients had the server do.

use crate::decode::messages::{Side, Stream};
use crate::decode::parts::Part;
use crate::explain::describe::{bytes_text, process_text, span_text};
use crate::scene::lanes::Stretch;
use crate::scene::look::Look;
use crate::scene::picture::{Group, Track};
use crate::scene::stage::Stage;
use crate::timeline::recording::Recording;
use tipme_record::Nanos;

/// Events to the client, its requests, and those of others.
pub fn tracks(stage: &mut Stage<'_>) -> Vec<Track> {
    let streams = stage.recording.messages.streams();
    let client = stage.problem.client;
    let (own, others): (Vec<&Stream>, Vec<&Stream>) = streams.iter().partition(|stream| stream.client == client);
    let servers: Vec<_> = own.iter().map(|stream| stream.server).collect();
    let others: Vec<&Stream> = others.into_iter().filter(|stream| servers.contains(&stream.server)).collect();
    let lines = [
        ("Display server to application", &own, Side::EventSent, Look::ToClient),
        ("Application to display server", &own, Side::RequestSent, Look::FromClient),
        ("Others to display server", &others, Side::RequestSent, Look::Other),
    ];
    let tracks = lines.map(|(name, streams, side, look)| track(stage, name, streams, (side, look)));
    tracks.into_iter().filter(|track| !track.bars.is_empty()).collect()
}

fn track(stage: &mut Stage<'_>, name: &str, streams: &[&Stream], what: (Side, Look)) -> Track {
    let (side, look) = what;
    let mut found: Vec<(Stretch, String)> = Vec::new();
    for stream in streams {
        let parts = stream.side(side);
        let first = parts.partition_point(|part| part.ts < stage.from);
        for (index, part) in parts.iter().enumerate().skip(first).take_while(|(_, part)| part.ts <= stage.to) {
            let taken = stream.taken(side, index).map(|(_, taken)| taken.ts);
            let hi = taken.unwrap_or(part.ts).max(part.ts);
            let text = text(stage.recording, stream, part, (side, taken));
            found.push((Stretch { lo: part.ts, hi, look, of: 0 }, text));
        }
    }
    found.sort_by_key(|(stretch, _)| stretch.lo);
    Track { group: Group::Messages, name: name.to_owned(), look: None, bars: stage.sparse(found) }
}

/// `drawing by xterm (pid 7), 132 B, taken after 0.10 ms`
fn text(recording: &Recording, stream: &Stream, part: &Part, what: (Side, Option<Nanos>)) -> String {
    let (side, taken) = what;
    let who = process_text(recording, stream.client, part.ts);
    let deed = match side {
        Side::EventSent | Side::EventTaken => "events or replies to",
        _ if recording.messages.draws(stream, part) => "drawing by",
        _ => "requests of",
    };
    let taken = taken.map_or_else(
        || "not seen taken".to_owned(),
        |taken| format!("taken after {}", span_text(taken.since(part.ts))),
    );
    format!("{deed} {who}, {}, {taken}", bytes_text(part.bytes))
}
