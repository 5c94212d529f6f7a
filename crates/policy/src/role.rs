// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a set of processes is to the user, and why.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a set is to the user, the most favoured first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// S: the session needs it: display server, window manager, sound, input method, the manager.
    Core,
    /// F: it has the keyboard focus.
    Focused,
    /// V: it has the pointer, or one of its windows can be seen.
    Visible,
    /// R: it had the keyboard focus in the last [`RECENT`](crate::RECENT); the favour fades.
    Recent,
    /// N: nobody attends to it.
    Rest,
    /// H: memory is short, and it has more than its share.
    Hog,
}

impl Role {
    /// All roles, the most favoured first.
    pub const ALL: [Role; 6] = [Role::Core, Role::Focused, Role::Visible, Role::Recent, Role::Rest, Role::Hog];

    /// Whether it gets more than what nobody attends to.
    pub fn is_favoured(self) -> bool {
        !matches!(self, Role::Rest | Role::Hog)
    }

    /// The name in words and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Role::Core => "core",
            Role::Focused => "focused",
            Role::Visible => "visible",
            Role::Recent => "recent",
            Role::Rest => "rest",
            Role::Hog => "hog",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a set has its role. `Display` gives words for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It was told to belong to the session's core.
    Session,
    KeyboardFocus,
    PointerFocus,
    VisibleWindow,
    /// It lost the keyboard focus so many whole minutes ago, in seconds.
    RecentFocus {
        seconds: u32,
    },
    NoAttention,
    /// It belongs to no window, and computes without a pause.
    Busy,
    /// It had so many bytes when it was found to be a hog.
    MemoryHog {
        bytes: u64,
    },
    /// It has the keyboard focus, and nobody is at the desk.
    Away,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Session => f.write_str("the session needs it"),
            Reason::KeyboardFocus => f.write_str("it has the keyboard focus"),
            Reason::PointerFocus => f.write_str("the pointer is in its window"),
            Reason::VisibleWindow => f.write_str("one of its windows can be seen"),
            Reason::RecentFocus { seconds: 0 } => f.write_str("it lost the keyboard focus within the last minute"),
            Reason::RecentFocus { seconds } => write!(f, "it lost the keyboard focus {} min ago", seconds / 60),
            Reason::NoAttention => f.write_str("nobody attends to it"),
            Reason::Busy => f.write_str("it computes, and nobody attends to it"),
            Reason::MemoryHog { bytes } => write!(f, "memory is short and it has {} MiB", bytes >> 20),
            Reason::Away => f.write_str("it has the keyboard focus, but nobody is at the desk"),
        }
    }
}
