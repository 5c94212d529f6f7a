// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interpretation of each message of Wayland connections, for comparison with the protocol.

use crate::decode::messages::{Side, Stream};
use crate::decode::objects::Act;
use crate::decode::protocol::Word;
use crate::timeline::recording::Recording;
use tipme_record::Nanos;
use tipme_record::incident::Incident;

/// Message of a keyboard, of a pointer's button, or of a surface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageLabel {
    /// CLOCK_MONOTONIC; time of the send, or of the presentation.
    pub at_ns: u64,
    pub client_pid: u32,
    pub name: &'static str,
    /// Only behavior identifies its object.
    pub inferred: bool,
}

/// Returns all labels in chronological order.
///
/// # Errors
///
/// Fails if the incident cannot be read.
pub fn message_labels(incident: &Incident) -> Result<Vec<MessageLabel>, crate::DiagnoseError> {
    let recording = Recording::read(incident)?;
    let mut labels: Vec<_> = recording
        .messages
        .streams()
        .iter()
        .flat_map(|stream| of_stream(&recording, stream))
        .collect();
    labels.sort_by_key(|label| label.at_ns);
    Ok(labels)
}

fn of_stream(recording: &Recording, stream: &Stream) -> Vec<MessageLabel> {
    let label = |at: Nanos, name, inferred| MessageLabel {
        at_ns: at.0,
        client_pid: stream.client.0,
        name,
        inferred,
    };
    let requests = stream.side(Side::RequestSent);
    let shown = (0..requests.len())
        .filter_map(|send| stream.presented(send))
        .map(|at| label(at, "presented", false));
    let mut labels: Vec<MessageLabel> = shown.collect();
    for part in requests.iter().chain(stream.side(Side::EventSent)) {
        let named = |word: &Word| Some(label(part.ts, name(word.act()?)?, word.is_inferred()));
        labels.extend(recording.messages.words(part).iter().filter_map(named));
    }
    labels
}

/// Returns the name of a message that is compared with the protocol.
fn name(act: Act) -> Option<&'static str> {
    Some(match act {
        Act::KeyPress => "key pressed",
        Act::KeyRelease => "key released",
        Act::ButtonPress => "button pressed",
        Act::ButtonRelease => "button released",
        Act::Commit => "commit",
        Act::FrameDone => "done",
        Act::Enter => "enter",
        Act::Leave => "leave",
        _ => return None,
    })
}
