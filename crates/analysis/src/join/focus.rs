// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyboard focus over time, as compositors report it to their clients.
//!
//! A client that receives an enter event of a keyboard has the focus from then on, and so has a
//! client that receives a key. A compositor may notify the new client before it sends the old one
//! the leave event, so a leave event of any other client changes nothing. Before the first of these
//! events, the focus is unknown. An X server reports the focus only to clients that select it, so
//! there only the last key is evidence, for its own moment. The same holds while an X server has
//! the focus of a compositor.

use crate::decode::messages::{Side, Stream};
use crate::decode::objects::Act;
use crate::join::answer::Interaction;
use crate::timeline::recording::Recording;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tipme_measure::InputClass;
use tipme_record::incident::Incident;
use tipme_record::{Nanos, Pid};

/// Change of the keyboard focus on a compositor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FocusChange {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Process of the compositor.
    pub server_pid: u32,
    /// Process with the focus from then on; `None` if no client has it.
    pub client_pid: Option<u32>,
}

/// Returns all focus changes in an incident in chronological order.
///
/// # Errors
///
/// Fails if the incident cannot be read.
pub fn focus_changes(incident: &Incident) -> Result<Vec<FocusChange>, crate::DiagnoseError> {
    let recording = Recording::read(incident)?;
    let changes = changes(&recording).into_iter().map(|(at, server, client)| FocusChange {
        at_ns: at.0,
        server_pid: server.0,
        client_pid: client.map(|client| client.0),
    });
    Ok(changes.collect())
}

/// Focus over the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct FocusHistory {
    /// Focus changes on compositors by time: the client or none; `None` if unknown.
    reported: Vec<(Nanos, Option<Option<Pid>>)>,
    /// Time and receiver of the last key on any display.
    typed: Option<(Nanos, Pid)>,
}

impl FocusHistory {
    pub(crate) fn new(recording: &Recording, found: &[Interaction]) -> FocusHistory {
        let reported = changes(recording).into_iter().map(|(at, _, client)| {
            let is_server = client.is_some_and(|client| recording.messages.is_server(client));
            (at, (!is_server).then_some(client))
        });
        let keys = found.iter().filter(|interaction| interaction.delivery.class == InputClass::Key);
        let last = keys.max_by_key(|interaction| interaction.delivery.sent);
        FocusHistory {
            reported: reported.collect(),
            typed: last.map(|interaction| (interaction.delivery.sent, interaction.delivery.client)),
        }
    }

    /// Returns the client that had the focus last, even if it has lost it since.
    pub(crate) fn last(&self) -> Option<Pid> {
        let mut latest_first = self.reported.iter().rev();
        let reported = latest_first.find_map(|(at, client)| Some((*at, client.flatten()?)));
        let (at, client) = reported.or(self.typed)?;
        let typed = self.typed.filter(|(typed, _)| *typed > at);
        Some(typed.map_or(client, |(_, client)| client))
    }

    /// Returns the client with the focus at a time, as reported by a compositor; `Some(None)`: no
    /// client, `None`: unknown.
    pub(crate) fn at(&self, at: Nanos) -> Option<Option<Pid>> {
        let after = self.reported.partition_point(|(changed, _)| *changed <= at);
        self.reported.get(after.checked_sub(1)?)?.1
    }
}

/// Returns the changes on all compositors: time, compositor, and the client with the focus from
/// then on.
fn changes(recording: &Recording) -> Vec<(Nanos, Pid, Option<Pid>)> {
    let streams = recording.messages.streams().iter().enumerate();
    let mut events: Vec<_> =
        streams.flat_map(|(index, stream)| focus_events(recording, index, stream)).collect();
    events.sort_by_key(|(at, ..)| *at);
    let mut holders: BTreeMap<Pid, Option<usize>> = BTreeMap::new();
    let mut changes = Vec::new();
    for (at, stream, has) in events {
        let Stream { server, client, .. } = &recording.messages.streams()[stream];
        let holder = holders.entry(*server).or_default();
        let next = if has { Some(stream) } else { holder.filter(|holder| *holder != stream) };
        if std::mem::replace(holder, next) != next {
            changes.push((at, *server, next.map(|_| *client)));
        }
    }
    changes
}

/// Returns the focus events of one connection: time, connection, and `true` if its client has the
/// focus from then on.
fn focus_events(
    recording: &Recording,
    index: usize,
    stream: &Stream,
) -> impl Iterator<Item = (Nanos, usize, bool)> {
    let words = recording.messages.timed_words(stream, Side::EventSent);
    words.filter_map(move |(at, word)| match word.act()? {
        Act::Enter | Act::KeyPress => Some((at, index, true)),
        Act::Leave => Some((at, index, false)),
        _ => None,
    })
}
