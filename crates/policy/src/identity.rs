// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identities of processes and of sets of processes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A process for its whole lifetime. PIDs are reused, so the start time (field 22 of
/// `/proc/PID/stat`, clock ticks since boot) is part of the identity. No process has the id 0;
/// members with it are dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    pub start: u64,
}

/// The processes of one display client, named after the process that holds the connection. A
/// process without a connection that belongs to the session's core, or is a memory hog, forms a set
/// of its own name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SetId(pub Identity);

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.pid.fmt(f)
    }
}

/// Reason why a process belongs to a set, strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// Holds a connection to the display.
    Client,
    /// Belongs to the foreground process group of the client's terminal.
    Foreground,
    /// Works for a foreground process across a local socket, as the server of a terminal
    /// multiplexer does.
    Server,
    /// Listed by the client in a property of its window.
    Property,
    /// Descends from the client.
    Child,
    /// Sole process of a set without a client: part of the core, busy, or a memory hog.
    Alone,
}

/// A process in a set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Member {
    pub who: Identity,
    pub because: Membership,
}
