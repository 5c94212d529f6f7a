// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's strength setting, the backends, and the kernel knobs of a set.

use serde::{Deserialize, Serialize};
use tipme_record::named;

named! {
    /// The user's strength setting, from "no change" to "my focus above all else".
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Strength {
        /// Changes nothing.
        Off = "off",
        /// Favours a little.
        Gentle = "gentle",
        /// Favours by the default amount.
        Normal = "normal",
        /// Favours as strongly as is safe.
        Strong = "strong",
    }
}

#[allow(clippy::derivable_impls, reason = "the declaration has no place for the attribute")]
impl Default for Strength {
    fn default() -> Strength {
        Strength::Normal
    }
}

named! {
    /// Mechanism that sets the values, most capable first; it also selects columns of the table.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Backend {
        /// Weights of systemd units.
        Systemd = "systemd",
        /// Weights of cgroups (v2) below a delegated one.
        Cgroup = "cgroup",
        /// The scheduler's autogroups of sessions.
        Autogroup = "autogroup",
        /// Nice values, policies and I/O priorities.
        Nice = "nice",
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
