// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be turned: the user's one knob, the back ends, and the kernel's knobs of a set.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The user's one knob, from "just like today" to "what I attend to above all else".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Nothing is changed.
    Off,
    Gentle,
    #[default]
    Normal,
    Strong,
}

impl Strength {
    /// All strengths, the weakest first.
    pub const ALL: [Strength; 4] = [Strength::Off, Strength::Gentle, Strength::Normal, Strength::Strong];

    /// The word for it, which [`FromStr`] takes.
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

/// A word that is not a strength.
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

/// By which means values are set, and so which rows of the table hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// A unit of systemd for each set.
    Systemd,
    /// A cgroup for each set, version 2, in a group that was delegated.
    Cgroup,
    /// The scheduler groups by session.
    Autogroup,
    /// Processes only.
    Nice,
}

impl Backend {
    /// All back ends, the most able first.
    pub const ALL: [Backend; 4] = [Backend::Systemd, Backend::Cgroup, Backend::Autogroup, Backend::Nice];

    /// The name in words and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Systemd => "systemd",
            Backend::Cgroup => "cgroup",
            Backend::Autogroup => "autogroup",
            Backend::Nice => "nice",
        }
    }

    /// What it turns.
    pub fn about(self) -> &'static str {
        match self {
            Backend::Systemd => "Weights of systemd's units",
            Backend::Cgroup => "Weights of control groups, version 2, in a delegated one",
            Backend::Autogroup => "The scheduler's groups of sessions",
            Backend::Nice => "Nice values, policies and I/O priorities",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A scheduling policy. There is no real-time policy among them: such a process could lock everybody out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// SCHED_OTHER.
    Other,
    /// SCHED_IDLE: a weight of 3, where a nice value of 0 has 1024.
    Idle,
}

/// An I/O priority.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoPriority {
    /// 0 (first) to 7 (last); 4 is what a process has by itself.
    BestEffort(u8),
    /// Only when nobody else wants the disk.
    Idle,
}

/// What the kernel is to have for a set or its processes. `None`: left as it was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Knobs {
    /// cpu.weight of the set's cgroup, 1 to 10000.
    pub cpu_weight: Option<u32>,
    /// io.weight of the set's cgroup, 1 to 10000.
    pub io_weight: Option<u32>,
    /// Nice value of the session's scheduling group, -20 to 19. All of a session share it.
    pub autogroup: Option<i8>,
    /// Nice value of each thread, -20 to 19.
    pub nice: Option<i8>,
    /// Time slice of each thread in microseconds, 100 to 100000: who wakes up with a shorter slice than the running
    /// thread's, and has not had more than its share, takes the CPU at once. Shares do not change. Kernels before 6.12
    /// have none.
    pub slice_us: Option<u32>,
    /// Scheduling policy of each thread.
    pub scheduling: Option<Scheduling>,
    /// I/O priority of each thread.
    pub io: Option<IoPriority>,
}

impl fmt::Display for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = [
            self.cpu_weight.map(|weight| format!("cpu.weight {weight}")),
            self.io_weight.map(|weight| format!("io.weight {weight}")),
            self.autogroup.map(|nice| format!("autogroup {nice}")),
            self.nice.map(|nice| format!("nice {nice}")),
            self.slice_us.map(|slice| format!("slice {slice} us")),
            self.scheduling.map(|scheduling| format!("scheduling {scheduling}")),
            self.io.map(|io| format!("io {io}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        f.pad(&if words.is_empty() { "-".to_owned() } else { words.join(", ") })
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if *self == Scheduling::Idle { "idle" } else { "other" })
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoPriority::BestEffort(level) => write!(f, "best effort {level}"),
            IoPriority::Idle => f.write_str("idle"),
        }
    }
}
