// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's strength setting, the backends, and the kernel knobs of a set.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The user's strength setting, from "no change" to "my focus above all else".
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Changes nothing.
    Off,
    Gentle,
    #[default]
    Normal,
    Strong,
}

impl Strength {
    /// All strengths, weakest first.
    pub const ALL: [Strength; 4] =
        [Strength::Off, Strength::Gentle, Strength::Normal, Strength::Strong];

    /// Returns the name that [`FromStr`] accepts.
    pub fn name(self) -> &'static str {
        match self {
            Strength::Off => "off",
            Strength::Gentle => "gentle",
            Strength::Normal => "normal",
            Strength::Strong => "strong",
        }
    }
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that names no strength.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownStrength(pub String);

impl fmt::Display for UnknownStrength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown strength {:?}; use off, gentle, normal or strong", self.0)
    }
}

impl std::error::Error for UnknownStrength {}

impl FromStr for Strength {
    type Err = UnknownStrength;

    fn from_str(word: &str) -> Result<Strength, UnknownStrength> {
        let found = Strength::ALL.into_iter().find(|strength| strength.name() == word);
        found.ok_or_else(|| UnknownStrength(word.to_owned()))
    }
}

/// Mechanism that sets the values; it also selects the rows of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// A systemd unit for each set.
    Systemd,
    /// A cgroup (version 2) for each set, inside a delegated group.
    Cgroup,
    /// The scheduler's autogroups, one for each session.
    Autogroup,
    /// Per-process values only.
    Nice,
}

impl Backend {
    /// All backends, most capable first.
    pub const ALL: [Backend; 4] =
        [Backend::Systemd, Backend::Cgroup, Backend::Autogroup, Backend::Nice];

    /// Returns the name used in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Systemd => "systemd",
            Backend::Cgroup => "cgroup",
            Backend::Autogroup => "autogroup",
            Backend::Nice => "nice",
        }
    }

    /// Returns a description of the knobs that the backend uses.
    pub fn about(self) -> &'static str {
        match self {
            Backend::Systemd => "Weights of systemd units",
            Backend::Cgroup => "Weights of cgroups (v2) below a delegated one",
            Backend::Autogroup => "The scheduler's autogroups of sessions",
            Backend::Nice => "Nice values, policies and I/O priorities",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Kernel settings for a set or its processes. `None` leaves a setting as found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Knobs {
    /// `cpu.weight` of the set's cgroup, 1 to 10000.
    pub cpu_weight: Option<u32>,
    /// `io.weight` of the set's cgroup, 1 to 10000.
    pub io_weight: Option<u32>,
    /// Nice value of the session's autogroup, -20 to 19. All processes of the session share it.
    pub autogroup: Option<i8>,
    /// Nice value of each thread, -20 to 19.
    pub nice: Option<i8>,
    /// Time slice of each thread in microseconds, 100 to 100000. A thread that wakes up with a
    /// shorter slice than the running thread's preempts it at once, unless it has used more than
    /// its share. Shares do not change. Kernels before 6.12 lack this setting.
    pub slice_us: Option<u32>,
    /// SCHED_IDLE for each thread: a weight of 3, where a nice value of 0 has 1024. Real-time
    /// policies are excluded: such a process could lock out everything else.
    pub is_idle: bool,
    /// Level of each thread in the I/O class "best effort", from 0 (first) to 7 (last); 4 is the
    /// kernel's default. A thread of the class "idle" could wait for ever.
    pub io_level: Option<u8>,
}
