// SPDX-License-Identifier: MIT OR Apache-2.0
//! Role of each process set for the user, with the reason.

use serde::{Deserialize, Serialize};
use std::fmt;
use tipme_record::named;

named! {
    /// Role of a set for the user, most favoured first.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Role {
        /// S: required by the session: display server, window manager, sound, input method, the
        /// manager.
        Core = "core",
        /// F: has the keyboard focus.
        Focused = "focused",
        /// V: has the pointer, or a visible window.
        Visible = "visible",
        /// R: had the keyboard focus within the last [`RECENT`](crate::RECENT); its favour fades.
        Recent = "recent",
        /// N: has no attention.
        Rest = "rest",
        /// H: memory is short, and it has more than its share.
        Hog = "hog",
    }
}

impl Role {
    /// Returns `true` if the role gets more than a set without attention.
    pub fn is_favoured(self) -> bool {
        !matches!(self, Role::Rest | Role::Hog)
    }
}

/// Reason for a set's role. `Display` formats it for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Listed as part of the session's core.
    Session,
    KeyboardFocus,
    PointerFocus,
    VisibleWindow,
    /// Time since the loss of the keyboard focus in seconds, rounded down to whole minutes.
    RecentFocus {
        seconds: u32,
    },
    NoAttention,
    /// Belongs to no window and computes without a pause.
    Busy,
    /// Size in bytes at the time when it became a hog.
    MemoryHog {
        bytes: u64,
    },
    /// Has the keyboard focus, but the user is away.
    Away,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Session => f.write_str("the session needs it"),
            Reason::KeyboardFocus => f.write_str("it has the keyboard focus"),
            Reason::PointerFocus => f.write_str("the pointer is in its window"),
            Reason::VisibleWindow => f.write_str("one of its windows can be seen"),
            Reason::RecentFocus { seconds: 0 } => {
                f.write_str("it lost the keyboard focus within the last minute")
            }
            Reason::RecentFocus { seconds } => {
                write!(f, "it lost the keyboard focus {} min ago", seconds / 60)
            }
            Reason::NoAttention => f.write_str("nobody attends to it"),
            Reason::Busy => f.write_str("it computes, and nobody attends to it"),
            Reason::MemoryHog { bytes } => {
                write!(f, "memory is short and it has {} MiB", bytes >> 20)
            }
            Reason::Away => f.write_str("it has the keyboard focus, but nobody is at the desk"),
        }
    }
}
