// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nominal and measured properties of the kernel's clocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the kernel's clocks offer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// Ticks a second, from the step of CLOCK_MONOTONIC_COARSE.
    pub hz: Option<u64>,
    /// Name and resolution in nanoseconds.
    pub resolutions_ns: Vec<(String, u64)>,
    /// Whether timers fire between ticks.
    pub high_resolution: bool,
    /// Of threads with an ordinary policy, unless they ask for another.
    pub slack_ns: Option<u64>,
    /// What the kernel takes the time from; `null` where it does not tell.
    #[serde(default)]
    pub source: Option<String>,
    /// What else it could take it from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// What interrupts each CPU at a given time: the kernel's name for the place, and the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_devices: Vec<(String, String)>,
    /// Every clock that has a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<OfferedClock>,
}

/// One clock: what it offers, and what it delivers. All are `null` where this kernel has no such clock.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Clock")]
pub struct OfferedClock {
    pub name: String,
    /// As the kernel tells it.
    pub resolution_ns: Option<u64>,
    /// The smallest step that was seen between two reads; a clock that is read more slowly than it steps shows larger ones.
    pub step_ns: Option<u64>,
    /// What reading it takes, in the mean.
    pub read_ns: Option<f64>,
}

/// How far clocks went apart in a time: what a machine that slept, was set or was held shows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClocksApart {
    /// By CLOCK_MONOTONIC_RAW.
    pub seconds: f64,
    /// The CPU's own counter against that; `null` where there is none.
    pub tsc_mhz: Option<f64>,
    /// By how much the time was made to run faster: CLOCK_MONOTONIC against that.
    pub slewed_ppm: f64,
    /// For how long the machine slept: CLOCK_BOOTTIME against CLOCK_MONOTONIC.
    pub suspended_ms: f64,
    /// By how much the clock on the wall was set: CLOCK_REALTIME against CLOCK_MONOTONIC.
    pub set_ms: f64,
}
