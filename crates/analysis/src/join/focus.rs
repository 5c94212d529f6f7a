// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who had the keyboard focus, as compositors told their clients.
//!
//! Whoever is told that a keyboard enters its surface has it from then on, and so has whoever is told of a key. A
//! compositor may tell the next client before it tells the last one that the keyboard leaves; what leaves somebody else
//! changes nothing. Before the first of these nobody is known to have it. An X server tells of the focus only who asks,
//! so there the last key alone says something, and that of its own moment only. The same holds while an X server has
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

/// A change of the keyboard focus on a compositor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FocusChange {
    /// CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The process of the compositor.
    pub server_pid: u32,
    /// The process that has it from then on; `None` where no client has.
    pub client_pid: Option<u32>,
}

/// Every change of the focus in an incident, in the order of time.
///
/// # Errors
/// Where the incident cannot be read.
pub fn focus_changes(incident: &Incident) -> Result<Vec<FocusChange>, crate::DiagnoseError> {
    let recording = Recording::read(incident)?;
    let change = |(at, server, client): (Nanos, Pid, Option<Pid>)| FocusChange {
        at_ns: at.0,
        server_pid: server.0,
        client_pid: client.map(|client| client.0),
    };
    Ok(changes(&recording).into_iter().map(change).collect())
}

/// The focus over the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct FocusHistory {
    /// From when on a client of a compositor had it, or none, by time; `None` where it is not known.
    told: Vec<(Nanos, Option<Option<Pid>>)>,
    /// Who was told of the last key, of whatever display, and when.
    typed: Option<(Nanos, Pid)>,
}

impl FocusHistory {
    pub(crate) fn new(recording: &Recording, found: &[Interaction]) -> FocusHistory {
        let is_known = |client: &Option<Pid>| client.is_none_or(|client| !recording.messages.is_server(client));
        let told = changes(recording).into_iter().map(|(at, _, client)| (at, Some(client).filter(is_known))).collect();
        let keys = found.iter().filter(|interaction| interaction.delivery.class == InputClass::Key);
        let last = keys.max_by_key(|interaction| interaction.delivery.sent);
        FocusHistory { told, typed: last.map(|interaction| (interaction.delivery.sent, interaction.delivery.client)) }
    }

    /// The client that had it last, whether or not it still has it.
    pub(crate) fn last(&self) -> Option<Pid> {
        let told = self.told.iter().rev().find_map(|(at, client)| Some((*at, client.flatten()?)));
        let (at, client) = told.or(self.typed)?;
        let typed = self.typed.filter(|(typed, _)| *typed > at);
        Some(typed.map_or(client, |(_, client)| client))
    }

    /// Who had it at a time, as a compositor told; `Some(None)`: no client had, `None`: not known.
    pub(crate) fn at(&self, at: Nanos) -> Option<Option<Pid>> {
        let after = self.told.partition_point(|(changed, _)| *changed <= at);
        self.told.get(after.checked_sub(1)?)?.1
    }
}

/// Changes on all compositors: time, compositor, and who has it from then on.
fn changes(recording: &Recording) -> Vec<(Nanos, Pid, Option<Pid>)> {
    let streams = recording.messages.streams().iter().enumerate();
    let mut told: Vec<_> = streams.flat_map(|(index, stream)| told(recording, index, stream)).collect();
    told.sort_by_key(|(at, ..)| *at);
    let mut holders: BTreeMap<Pid, Option<usize>> = BTreeMap::new();
    let mut changes = Vec::new();
    for (at, stream, has) in told {
        let Stream { server, client, .. } = &recording.messages.streams()[stream];
        let holder = holders.entry(*server).or_default();
        let next = if has { Some(stream) } else { holder.filter(|holder| *holder != stream) };
        if std::mem::replace(holder, next) != next {
            changes.push((at, *server, next.map(|_| *client)));
        }
    }
    changes
}

/// What the client of one connection was told: when, and whether it has the focus from then on.
fn told(recording: &Recording, index: usize, stream: &Stream) -> impl Iterator<Item = (Nanos, usize, bool)> {
    let parts = stream.side(Side::EventSent).iter();
    let words = parts.flat_map(|part| recording.messages.words(part).iter().map(|word| (part.ts, *word)));
    words.filter_map(move |(at, word)| match word.act()? {
        Act::Enter | Act::KeyPress => Some((at, index, true)),
        Act::Leave => Some((at, index, false)),
        _ => None,
    })
}
