// SPDX-License-Identifier: MIT OR Apache-2.0
//! Document of a measurement: the machine, every event, and the figures of its kind.
//!
//! All kinds share the header and the runs, so any two can be compared. Keys include their units;
//! `null` means not available, never 0.

use crate::threshold::ClassLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema version, increased if a key changes its meaning or is removed.
pub const SCHEMA: u32 = 1;

/// A result as it is written to a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Document<T> {
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// Which measurement: `idle`, `timer`, `memory`, `fork`, `measure`, `typing` and so on: the verb.
    pub kind: String,
    /// Version of the program that measured.
    pub version: String,
    pub machine: MeasuredMachine,
    /// The repeats, each with all its events.
    pub runs: Vec<Run>,
    /// What only this kind of measurement has.
    #[serde(flatten)]
    pub details: T,
}

/// Placeholder for details that the reader ignores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NoDetails {}

/// Where it was measured. The machine has no name here: results are given away.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Machine")]
pub struct MeasuredMachine {
    pub kernel: String,
    pub cpu: String,
    pub cpus: usize,
    pub memory_bytes: u64,
    /// Ticks a second that the kernel was built for.
    pub hz: Option<u32>,
    /// When a thread that wakes up takes the CPU from another: `lazy` waits for the next tick, `full` does not. Told to root where
    /// debugfs is mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// What the kernel reads its clock from.
    pub clock_source: Option<String>,
    /// Whether it is a virtual machine, and not known where that is not told.
    pub virtualised: Option<bool>,
    /// How the frequency of the CPU is chosen.
    pub governor: Option<String>,
    /// Over 1, 5 and 15 minutes, when the measurement began.
    pub load_average: Option<[f64; 3]>,
    /// Time that the hypervisor gave to others, as a share of all CPUs' time during the measurement.
    pub steal_percent: Option<f64>,
    /// Seconds since 1970.
    pub begun_unix_s: u64,
    pub duration_s: f64,
}

/// One repeat.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// What differs from the other runs: a mechanism, a load, a number.
    pub name: String,
    pub duration_ns: u64,
    /// Without think time over 30 s; `None` where nobody interacts.
    pub interactive_ns: Option<u64>,
    /// Events that happened and are missing here.
    pub lost: u64,
    pub classes: Vec<Events>,
}

/// The events of one class in columns, each in the order of their begin.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    /// `key`, `window`, `interval`, `lateness`.
    pub class: String,
    /// Longer is noticed; `None` where nobody can notice.
    pub threshold_ns: Option<u64>,
    /// Longer frustrates.
    pub frustrated_ns: Option<u64>,
    /// CLOCK_MONOTONIC.
    pub starts_ns: Vec<u64>,
    pub latencies_ns: Vec<u64>,
    /// How many had not ended at the end of the run: their latency is at least what stands here.
    pub censored: u64,
}

impl Events {
    /// Creates an empty set of events of a class with limits.
    pub fn of(class: &str, limits: Option<ClassLimits>) -> Events {
        Events {
            class: class.to_owned(),
            threshold_ns: limits.map(|limits| limits.threshold),
            frustrated_ns: limits.map(|limits| limits.frustrated),
            ..Events::default()
        }
    }

    /// Adds an event; times in nanoseconds.
    pub fn push(&mut self, start_ns: u64, latency_ns: u64) {
        self.starts_ns.push(start_ns);
        self.latencies_ns.push(latency_ns);
    }
}
