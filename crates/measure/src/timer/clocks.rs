// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nominal and measured properties of the kernel's clocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Properties of the kernel's clocks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// Ticks per second, from the step of CLOCK_MONOTONIC_COARSE.
    pub hz: Option<u64>,
    /// Name and resolution in nanoseconds.
    pub resolutions_ns: Vec<(String, u64)>,
    /// `true` if timers fire between ticks.
    pub high_resolution: bool,
    /// Default timer slack of threads with an ordinary policy.
    pub slack_ns: Option<u64>,
    /// Clock source; `null` if not known.
    #[serde(default)]
    pub source: Option<String>,
    /// Other available clock sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Clock event device of each CPU: the kernel's name for the place, and the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_devices: Vec<(String, String)>,
    /// Every clock with a number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<OfferedClock>,
}

/// Nominal and measured properties of one clock; `null` if this kernel has no such clock.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Clock")]
pub struct OfferedClock {
    pub name: String,
    /// Resolution reported by the kernel.
    pub resolution_ns: Option<u64>,
    /// Smallest observed step between two reads; it is larger for a clock that steps faster than it
    /// is read.
    pub step_ns: Option<u64>,
    /// Mean time to read it.
    pub read_ns: Option<f64>,
}

/// Differences of clocks over a time, which reveal sleep, a changed time, or a held machine.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClocksApart {
    /// Duration by CLOCK_MONOTONIC_RAW.
    pub seconds: f64,
    /// Rate of the CPU's counter by that clock; `null` without a counter.
    pub tsc_mhz: Option<f64>,
    /// Speed-up of the time by adjustment: CLOCK_MONOTONIC against CLOCK_MONOTONIC_RAW.
    pub slewed_ppm: f64,
    /// Time that the machine slept: CLOCK_BOOTTIME against CLOCK_MONOTONIC.
    pub suspended_ms: f64,
    /// Change of the wall-clock time: CLOCK_REALTIME against CLOCK_MONOTONIC.
    pub set_ms: f64,
}
