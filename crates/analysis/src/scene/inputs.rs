// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of the user: a bar from each input to its answer.

use crate::explain::describe::{process_text, span_text};
use crate::join::answer::{Interaction, Join};
use crate::scene::lanes::Stretch;
use crate::scene::look::Look;
use crate::scene::picture::{Track, TrackGroup};
use crate::scene::stage::SceneStage;
use crate::timeline::recording::Recording;

/// Returns the track of the inputs that were open in the time of the page.
pub(super) fn track(stage: &mut SceneStage<'_>, all: &[Interaction]) -> Track {
    let open = all.iter().filter(|one| one.overlaps(stage.from, stage.to));
    let mut open: Vec<&Interaction> = open.collect();
    open.sort_by_key(|one| one.delivery.input);
    let stretches: Vec<Stretch> =
        open.iter().enumerate().map(|(of, one)| stretch(stage, one, of)).collect();
    let recording = stage.recording;
    let bars = stage
        .sparse(&stretches, |of| open.get(of).map(|one| text(recording, one)).unwrap_or_default());
    Track { group: TrackGroup::Input, name: "From input to answer".to_owned(), look: None, bars }
}

fn stretch(stage: &SceneStage<'_>, one: &Interaction, of: usize) -> Stretch {
    let problem = stage.problem;
    let this = one.delivery.input == problem.start && one.delivery.client == problem.client;
    let look = if this { Look::ThisInput } else { Look::Input };
    let hi = if this { problem.end } else { one.end };
    Stretch { lo: one.delivery.input, hi, look, of }
}

/// Formats `key to xterm (pid 7), dequeued after 3.0 ms, answered after 938 ms`.
fn text(recording: &Recording, one: &Interaction) -> String {
    let delivery = &one.delivery;
    let client = process_text(recording, delivery.client, delivery.sent);
    let dequeued = delivery
        .dequeued
        .map(|(at, _)| format!(", dequeued after {}", span_text(at.since(delivery.input))));
    let answer = match (one.censored, one.join) {
        (true, _) => "not answered before the mark".to_owned(),
        (false, Join::Speculative) => {
            format!("answered after {} (by time only)", span_text(one.latency()))
        }
        (false, _) => format!("answered after {}", span_text(one.latency())),
    };
    format!("{} to {client}{}, {answer}", delivery.class.name(), dequeued.unwrap_or_default())
}
