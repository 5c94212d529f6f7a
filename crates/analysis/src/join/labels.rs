// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interpretation of each message of Wayland connections, for comparison with the protocol.

use crate::decode::messages::{Side, Stream};
use crate::decode::objects::Act;
use crate::timeline::recording::Recording;
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
        .flat_map(|stream| stream_labels(&recording, stream))
        .collect();
    labels.sort_by_key(|label| label.at_ns);
    Ok(labels)
}

fn stream_labels(recording: &Recording, stream: &Stream) -> Vec<MessageLabel> {
    let sends = 0..stream.side(Side::RequestSent).len();
    let presented = sends.filter_map(|send| Some((stream.presented(send)?, "presented", false)));
    let requests = recording.messages.timed_words(stream, Side::RequestSent);
    let words = requests.chain(recording.messages.timed_words(stream, Side::EventSent));
    let named = words.filter_map(|(at, word)| Some((at, name(word.act()?)?, word.is_inferred())));
    let labels = presented.chain(named).map(|(at, name, inferred)| MessageLabel {
        at_ns: at.0,
        client_pid: stream.client.0,
        name,
        inferred,
    });
    labels.collect()
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
