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

/// Result as written to a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Document<T> {
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// Verb of the measurement, such as `idle`, `timer`, `memory`, `fork`, `measure` or `typing`.
    pub kind: String,
    /// Version of the program that measured.
    pub version: String,
    pub machine: MeasuredMachine,
    /// The repeats, each with all its events.
    pub runs: Vec<Run>,
    /// Figures specific to this kind of measurement.
    #[serde(flatten)]
    pub details: T,
}

/// Placeholder for details that the reader ignores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NoDetails {}

/// Machine that was measured, without its name, since results are given away.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Machine")]
pub struct MeasuredMachine {
    pub kernel: String,
    pub cpu: String,
    pub cpus: usize,
    pub memory_bytes: u64,
    /// Tick rate that the kernel was built for.
    pub hz: Option<u32>,
    /// Preemption by a thread that wakes up: `lazy` waits for the next tick, `full` does not.
    /// Visible only to root with debugfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// `true` for a virtual machine; `null` if not known.
    pub virtualised: Option<bool>,
    /// CPU frequency governor.
    pub governor: Option<String>,
    /// Load average over 1, 5 and 15 minutes at the begin of the measurement.
    pub load_average: Option<[f64; 3]>,
    /// Steal time during the measurement, in percent of the time of all CPUs.
    pub steal_percent: Option<f64>,
    /// Seconds since 1970.
    pub begun_unix_s: u64,
    pub duration_s: f64,
}

/// One repeat.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Distinction from the other runs: a mechanism, a load or a number.
    pub name: String,
    pub duration_ns: u64,
    /// Time of interaction, without think times over 30 s; `None` without interaction.
    pub interactive_ns: Option<u64>,
    /// Number of events that happened and are missing here.
    pub lost: u64,
    pub classes: Vec<Events>,
}

/// Events of one class in columns, in the order of their begin.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    /// `key`, `window`, `interval`, `lateness`.
    pub class: String,
    /// Latency above which an event is noticed; `None` if it cannot be noticed.
    pub threshold_ns: Option<u64>,
    /// Latency above which an event frustrates.
    pub frustrated_ns: Option<u64>,
    /// Begin of each event, CLOCK_MONOTONIC.
    pub starts_ns: Vec<u64>,
    pub latencies_ns: Vec<u64>,
    /// Number of events unfinished at the end of the run; their latencies are lower bounds.
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
