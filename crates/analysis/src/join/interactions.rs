// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interactions: an input, the drawing that answers it, and the times in between.

use crate::join::answer::{Interaction, Join};
use crate::join::input_methods;
use crate::join::input_work::Work;
use crate::join::inputs::{self, Delivery};
use crate::join::joiner::{JoinContext, Joiner};
use crate::join::milestones::{self, Handling};
use crate::join::repeats::repeats;
use crate::join::server_drawings::IDLE_SLACK;
use crate::join::starts::presses;
use crate::join::unresponsive::{self, UnresponsiveSpan};
use crate::timeline::pauses::Pause;
use crate::timeline::recording::Recording;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tipme_measure::InputClass;
use tipme_record::{Nanos, Pid, Tid};

/// Process name of the tool; events to such processes are the mark itself.
const OWN_NAME: &str = "tipme";

/// Inputs of a recording with their answers.
#[derive(Default)]
pub(crate) struct JoinedInputs {
    /// By the time of the input's event.
    pub interactions: Vec<Interaction>,
    /// Times in which a program was away from its event loop, even if no input was late because of
    /// it.
    pub unresponsive: Vec<UnresponsiveSpan>,
}

/// Finds all interactions, and the unresponsive spans besides them.
pub(crate) fn interactions(recording: &Recording) -> JoinedInputs {
    let mut deliveries = input_methods::passed_on(recording, inputs::deliveries(recording));
    let repeats = repeats(recording, &deliveries);
    deliveries.extend(repeats);
    deliveries.sort_by_key(|delivery| delivery.sent);
    let deliveries = deliveries.into_iter();
    let mut by_stream: BTreeMap<usize, Vec<Delivery>> = BTreeMap::new();
    for delivery in deliveries
        .filter(|delivery| !is_own(recording, delivery) && !contradicts(recording, delivery))
    {
        by_stream.entry(delivery.stream).or_default().push(delivery);
    }
    let all: Vec<Delivery> = by_stream.values().flatten().copied().collect();
    let listeners: BTreeSet<Pid> =
        by_stream.values().flatten().map(|delivery| delivery.client).collect();
    let releases =
        inputs::releases(recording).into_iter().filter(|delivery| !is_own(recording, delivery));
    let releases: Vec<Delivery> = releases.collect();
    let (presses, released) = (presses(&all), releases_by_stream(&releases));
    let all: Vec<Delivery> = all.into_iter().chain(releases).collect();
    let handling = Handling::new(recording, &all);
    let handled: Vec<_> =
        all.iter().filter_map(|delivery| Some((delivery, handling.handled(delivery)?))).collect();
    let work = Work::new(
        recording,
        &all,
        handled.iter().map(|(delivery, handled)| (*delivery, handled.at)),
    );
    let (listeners, handling, work, presses, releases) =
        (&listeners, &handling, &work, &presses, &released);
    let context = JoinContext { recording, listeners, handling, work, presses, releases };
    let mut found: Vec<Interaction> = by_stream
        .into_iter()
        .flat_map(|(stream, deliveries)| Joiner::new(context, stream, deliveries).join())
        .collect();
    found.retain(|one| !one.delivery.repeated || one.join == Join::Exact || one.censored);
    milestones::add(recording, handling, work, &all, handled, &mut found);
    found.sort_by_key(|interaction| interaction.delivery.input);
    let unreached = unreached(recording, &found);
    found.extend(unreached);
    let unresponsive = unresponsive::spans(recording, handling, &all, &found);
    JoinedInputs { interactions: found, unresponsive }
}

fn releases_by_stream(deliveries: &[Delivery]) -> HashMap<usize, BTreeMap<Nanos, Tid>> {
    let mut releases: HashMap<usize, BTreeMap<Nanos, Tid>> = HashMap::new();
    for delivery in deliveries {
        releases.entry(delivery.stream).or_default().extend(delivery.dequeued);
    }
    releases
}

fn is_own(recording: &Recording, delivery: &Delivery) -> bool {
    recording
        .tasks
        .process(delivery.client, delivery.sent)
        .is_some_and(|life| life.comm == OWN_NAME)
}

/// Returns a thread of a process or its descendants that was not idle at the mark, and is not new.
pub(crate) fn busy_below(recording: &Recording, pid: Pid) -> Option<Tid> {
    let mark = recording.mark;
    let below = recording
        .descendants()
        .threads(pid)
        .iter()
        .filter_map(|tid| recording.tasks.life(*tid, mark));
    let lives = below.filter(|life| life.until > mark);
    let mut busy = lives
        .filter(|life| !recording.timeline.segments(life.tid).is_empty())
        .filter(|life| !recording.is_paused_at(life.tid, mark, Pause::Rest));
    busy.next().map(|life| life.tid)
}

/// Returns `true` if a client waited for its server again before it dequeued an event, which is
/// impossible: a record was lost.
fn contradicts(recording: &Recording, delivery: &Delivery) -> bool {
    let Some((at, tid)) = delivery.dequeued else { return false };
    let first = recording
        .timeline
        .at(tid, delivery.sent.after(IDLE_SLACK))
        .map_or(0, |span| span.index + 1);
    let spans = recording.timeline.spans_from(tid, first).take_while(|span| span.end < at);
    let mut waits = spans.filter(|span| span.is_blocked() && recording.waits.is_idle(span));
    waits.any(|span| span.task_waker() == Some(delivery.server))
}

/// Returns the presses that the server had not sent to any client at the mark, because it was late.
///
/// Their receiver is unknown: the client of the last key counts.
fn unreached(recording: &Recording, found: &[Interaction]) -> Vec<Interaction> {
    let Some(last) = found.iter().max_by_key(|interaction| {
        (interaction.delivery.class == InputClass::Key, interaction.delivery.sent)
    }) else {
        return Vec::new();
    };
    let server = recording.messages.stream(last.delivery.stream).map(|stream| stream.server);
    let presses = inputs::injected(recording)
        .filter(|(of, press)| Some(*of) == server && press.reached.is_none());
    presses
        .map(|(_, press)| {
            Interaction::open(
                Delivery {
                    input: press.at,
                    sent: recording.mark,
                    dequeued: None,
                    class: press.class(),
                    repeated: false,
                    ..last.delivery
                },
                recording.mark,
            )
        })
        .collect()
}
