// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who it is about: processes, and sets of processes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A process for as long as it lives: ids are reused, so its start (field 22 of /proc/PID/stat, clock ticks since
/// boot) belongs to it. No process has the id 0; members with it are left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    pub start: u64,
}

/// The processes of one client of the display, named by the process that is connected to it. A process that is no
/// client, but belongs to the session's core or is a memory hog, is the one member of a set of its own name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SetId(pub Identity);

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.pid.fmt(f)
    }
}

/// How a process came into a set; the strongest reason first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// It is connected to the display itself.
    Client,
    /// It belongs to the foreground process group of the client's terminal.
    Foreground,
    /// It does the work of such a process on the far side of a local socket, as the server of a terminal multiplexer.
    Server,
    /// The client named it in its window's property.
    Property,
    /// It descends from the client.
    Child,
    /// It is the one process of its set, which no client has: it belongs to the core, is busy or is a memory hog.
    Alone,
}

/// A process in a set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Member {
    pub who: Identity,
    pub because: Membership,
}
