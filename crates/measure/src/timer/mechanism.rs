// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleep mechanisms of periodic threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sleep mechanism of a periodic thread.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Mechanism")]
pub enum TimerMechanism {
    /// `clock_nanosleep` until the next deadline.
    Absolute,
    /// `nanosleep` for the rest of the time until the next deadline.
    Nanosleep,
    /// `nanosleep` for a whole period after each wakeup; deadlines are ignored.
    Relative,
    /// A periodic `timerfd`.
    Timerfd,
    /// A periodic POSIX timer that sends a signal.
    Itimer,
    /// `poll` for the rest of the time until the next deadline, rounded up to whole milliseconds.
    Poll,
}

impl TimerMechanism {
    /// All mechanisms.
    pub const ALL: [TimerMechanism; 6] = [
        TimerMechanism::Absolute,
        TimerMechanism::Nanosleep,
        TimerMechanism::Relative,
        TimerMechanism::Timerfd,
        TimerMechanism::Itimer,
        TimerMechanism::Poll,
    ];

    /// Returns the name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TimerMechanism::Absolute => "absolute",
            TimerMechanism::Nanosleep => "nanosleep",
            TimerMechanism::Relative => "relative",
            TimerMechanism::Timerfd => "timerfd",
            TimerMechanism::Itimer => "itimer",
            TimerMechanism::Poll => "poll",
        }
    }

    /// Returns the description for help.
    pub fn about(self) -> &'static str {
        match self {
            TimerMechanism::Absolute => "clock_nanosleep until the next deadline",
            TimerMechanism::Nanosleep => {
                "nanosleep for the rest of the time until the next deadline"
            }
            TimerMechanism::Relative => {
                "nanosleep for a period after each wake-up, whatever the deadline (the naive way)"
            }
            TimerMechanism::Timerfd => "A periodic timerfd",
            TimerMechanism::Itimer => "A periodic POSIX timer with a signal",
            TimerMechanism::Poll => "poll with a timeout, in whole milliseconds",
        }
    }
}
