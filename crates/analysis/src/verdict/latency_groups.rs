// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies of comparable interactions.

use crate::join::answer::{Interaction, Join, Milestone, Task};
use crate::timeline::recording::Recording;
use std::collections::BTreeMap;
use tipme_measure::{InputClass, Summary};
use tipme_record::Nanos;

/// Key of comparable latencies: milestone, kind of work, class of input, and application.
pub(crate) type Group = (Milestone, Task, InputClass, String);

pub(crate) type Groups = BTreeMap<Group, Summary>;

pub(crate) fn group(recording: &Recording, interaction: &Interaction) -> Group {
    let application = recording.tasks.comm(interaction.delivery.client, interaction.delivery.sent);
    (interaction.milestone, interaction.task, interaction.delivery.class, application)
}

/// Returns the latency of an interaction up to a milestone of the given work, if it has one.
pub(crate) fn latency_to(
    interaction: &Interaction,
    milestone: Milestone,
    task: Task,
) -> Option<Nanos> {
    let since = |at: Nanos| at.since(interaction.delivery.input);
    match milestone {
        _ if interaction.milestone == milestone => {
            (interaction.task == task).then(|| interaction.latency())
        }
        Milestone::Response => None,
        Milestone::Handled => interaction.handled.map(since),
        Milestone::Completed => completed(interaction, task).map(since),
    }
}

/// Returns the time at which the work of an input was completed: its late part if there is one, or
/// else the last drawing of the answer.
fn completed(interaction: &Interaction, task: Task) -> Option<Nanos> {
    match interaction.later.iter().find(|reached| reached.milestone == Milestone::Completed) {
        Some(late) => (late.task == task).then_some(late.at),
        None => {
            let answered =
                task == Task::Input && interaction.join == Join::Exact && !interaction.censored;
            answered.then(|| interaction.end.max(interaction.settled.unwrap_or_default()))
        }
    }
}

/// Milestones that are compared, with their kinds of work.
const COMPARED: [(Milestone, Task); 7] = [
    (Milestone::Response, Task::Input),
    (Milestone::Handled, Task::Input),
    (Milestone::Completed, Task::Input),
    (Milestone::Completed, Task::Command),
    (Milestone::Completed, Task::Typed),
    (Milestone::Completed, Task::Prompt),
    (Milestone::Completed, Task::Start),
];

pub(crate) fn groups(recording: &Recording, found: &[Interaction]) -> Groups {
    let mut latencies: BTreeMap<Group, Vec<u64>> = BTreeMap::new();
    for interaction in found {
        let (_, _, class, application) = group(recording, interaction);
        for (milestone, task) in COMPARED {
            if let Some(latency) = latency_to(interaction, milestone, task) {
                latencies
                    .entry((milestone, task, class, application.clone()))
                    .or_default()
                    .push(latency.0);
            }
        }
    }
    latencies.into_iter().map(|(key, list)| (key, Summary::new(list))).collect()
}
