// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compositing managers: a client's drawing is shown only after another client, the manager, has
//! drawn the screen.

use crate::decode::messages::Side;
use crate::join::answer::{Interaction, Join, Milestone, Reached};
use crate::join::drawing_cause::Hop;
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Minimum number of damage requests and of drawings of a client that composes the screen.
const FRAMES_MIN: usize = 3;

/// Delay from a drawing to the composed screen from which on the screen was late.
const LATE_MIN: Nanos = Nanos::from_millis(200);

/// Maximum time until the manager receives the damage of a drawing.
const HEARD_MAX: Nanos = Nanos::from_millis(2);

/// Maximum time by which the manager may return to its event wait before its drawing is sent.
const SENT_MAX: Nanos = Nanos::from_millis(20);

/// Process, server and chronological drawings of a compositing manager.
pub(crate) struct CompositingManager {
    client: Pid,
    server: Pid,
    drawn: Vec<(Nanos, Tid)>,
}

/// Finds all compositing managers.
pub(crate) fn compositors(recording: &Recording) -> Vec<CompositingManager> {
    let streams = recording.messages.streams().iter();
    let found = streams.filter_map(|stream| {
        let majors = recording.messages.majors(stream);
        let sent = stream.side(Side::RequestSent);
        let requests = sent.iter().flat_map(|part| recording.messages.words(part));
        let damages = requests.filter(|word| majors.takes_damage(**word)).count();
        let drawings = sent.iter().filter(|part| recording.messages.draws(stream, part));
        let drawn: Vec<(Nanos, Tid)> = drawings.map(|part| (part.ts, part.tid)).collect();
        let composes = damages >= FRAMES_MIN && drawn.len() >= FRAMES_MIN;
        composes.then_some(CompositingManager {
            client: stream.client,
            server: stream.server,
            drawn,
        })
    });
    found.collect()
}

/// Returns the time at which a response was finally shown, if the manager was busy or stopped from
/// the drawing until then.
pub(crate) fn shown(
    recording: &Recording,
    compositors: &[CompositingManager],
    response: &Interaction,
) -> Option<Reached> {
    let drawing = response.drawing.filter(|_| {
        response.join == Join::Exact && response.delivery.class != InputClass::Motion
    })?;
    let server = recording.messages.stream(response.delivery.stream)?.server;
    let others = compositors
        .iter()
        .filter(|one| one.client != response.delivery.client && one.server == server);
    let shown = others.filter_map(|compositor| {
        let next = compositor.drawn.partition_point(|(sent, _)| *sent <= drawing.end);
        let last = compositor.drawn.last()?.1;
        let (sent, tid) = compositor.drawn.get(next).copied().unwrap_or((recording.mark, last));
        let heard = drawing.end.after(HEARD_MAX);
        let busy = !recording.is_paused_at(tid, heard.after(Nanos(1)), Pause::EventWait)
            && recording.pause_after(tid, heard, Pause::EventWait) >= sent.before(SENT_MAX);
        (busy && sent.since(drawing.end) >= LATE_MIN).then_some((sent, tid))
    });
    let (at, tid) = shown.min()?;
    let mut hops = vec![
        Hop::new(tid, drawing.end, at),
        Hop::new(response.delivery.server, drawing.sent, drawing.end),
        Hop::new(drawing.tid, response.delivery.input, drawing.sent),
    ];
    hops.extend(response.hops.iter().copied());
    let noticed = response.noticed;
    Some(Reached { milestone: Milestone::Response, noticed, ..Reached::completed(at, hops) })
}
