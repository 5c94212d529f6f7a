// SPDX-License-Identifier: MIT OR Apache-2.0
//! All interactions of an incident with their times, for statistics and for comparison with other
//! clocks.

use crate::error::DiagnoseError;
use crate::join::answer::Interaction;
use crate::join::interactions::interactions;
use crate::timeline::recording::Recording;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tipme_record::incident::Incident;

/// One input and its answer. Times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Timed {
    /// `key`, `click`, `scroll` or `motion`.
    pub class: String,
    pub client_pid: u32,
    pub client_comm: String,
    pub input_ns: u64,
    /// The application took the event.
    pub taken_ns: Option<u64>,
    /// The first drawing that answers it was sent.
    pub drawn_ns: Option<u64>,
    /// The server was done with that drawing; the mark where `censored`.
    pub end_ns: u64,
    /// The server was done with the last drawing that the input caused.
    pub settled_ns: Option<u64>,
    /// `exact`, `speculative`, or `none`.
    pub join: String,
    /// Milestone at `end_ns`: `response`, `handled`, `completed`, or `hanging` where it is the
    /// mark.
    pub milestone: String,
    /// The program waited for the next event again; the mark where it did not.
    pub handled_ns: Option<u64>,
    /// The last drawing in the work that the input led to was shown, or the command that it started
    /// was done; where that was long after the response.
    pub completed_ns: Option<u64>,
    pub censored: bool,
    /// The kind of event is known only from the shape of a Wayland message; left out where it is
    /// known exactly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
    /// The client repeated a held key by its own timer; left out where the input came as an event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// Returns all interactions of an incident, by the time of the input, without presses that no
/// program answers.
pub fn timed(incident: &Incident) -> Result<Vec<Timed>, DiagnoseError> {
    let recording = Recording::read(incident)?;
    Ok(interactions(&recording)
        .interactions
        .iter()
        .map(|interaction| describe(&recording, interaction))
        .collect())
}

fn describe(recording: &Recording, interaction: &Interaction) -> Timed {
    let delivery = &interaction.delivery;
    Timed {
        class: delivery.class.name().to_owned(),
        client_pid: delivery.client.0,
        client_comm: recording.tasks.comm(delivery.client, delivery.sent),
        input_ns: delivery.input.0,
        taken_ns: delivery.dequeued.map(|(at, _)| at.0),
        drawn_ns: interaction.drawing.map(|drawing| drawing.sent.0),
        end_ns: interaction.end.0,
        settled_ns: interaction.settled.map(|at| at.0),
        join: interaction.join.name().to_owned(),
        milestone: if interaction.censored { "hanging" } else { interaction.milestone.name() }
            .to_owned(),
        handled_ns: interaction.handled.map(|at| at.0),
        completed_ns: interaction.completed().map(|at| at.0),
        censored: interaction.censored,
        inferred: delivery.inferred,
        repeated: delivery.repeated,
    }
}
