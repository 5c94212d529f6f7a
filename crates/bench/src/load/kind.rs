// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of load, and how they use memory.

use serde::{Deserialize, Serialize};

/// Processes of a load, at most.
pub const LEVEL_MAX: u32 = 64;

/// The types of background load of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Small and bound by the CPU: low demand, high reuse.
    Cpu,
    /// Many short-lived children, as of a shell script: low demand, low reuse.
    Forks,
    /// Large and bound by the CPU: high demand, high reuse.
    Big,
    /// A stream through memory or a file: high demand, no reuse.
    Stream,
}

/// What a process does to memory while it works.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pages {
    /// Different pages touched in a millisecond of CPU time.
    pub demand: u32,
    /// The share of them that the millisecond before had touched too, 0 to 1.
    pub reuse: f64,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Cpu, Kind::Forks, Kind::Big, Kind::Stream];
    /// Those that use much memory.
    pub const LARGE: [Kind; 2] = [Kind::Big, Kind::Stream];

    /// For people, one line.
    pub fn about(self) -> &'static str {
        match self {
            Kind::Cpu => "Small and bound by the CPU",
            Kind::Forks => "Many short-lived children",
            Kind::Big => "Large and bound by the CPU",
            Kind::Stream => "A stream through memory or files",
        }
    }

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Forks => "forks",
            Kind::Big => "big",
            Kind::Stream => "stream",
        }
    }

    /// What is usual for the type.
    pub fn pages(self) -> Pages {
        let (demand, reuse) = match self {
            Kind::Cpu => (2, 0.95),
            Kind::Forks => (4, 0.1),
            Kind::Big => (200, 0.95),
            Kind::Stream => (200, 0.0),
        };
        Pages { demand, reuse }
    }

    /// Whether its processes use all the memory that they may.
    pub(super) fn is_large(self) -> bool {
        Kind::LARGE.contains(&self)
    }
}
