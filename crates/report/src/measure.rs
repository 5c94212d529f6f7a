// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result of playing a script at an application: the document, text and plots.

mod figures;
mod spread;
mod tables;

pub use figures::figures;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use tables::text;
use tipme_measure::{Apdex, Document, EventJoin, Rate, ThresholdProfile};

/// Maximum latency in milliseconds that is left out of the table of long events.
pub const LONG_MS: f64 = 50.0;

/// Result file.
pub type MeasureDocument = Document<MeasureDetails>;

/// Details of a measurement of an application.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MeasureDetails {
    /// The script's name.
    pub script: String,
    /// The behaviour that the script models.
    pub about: String,
    /// Command of the application; `{home}` stands for its home folder.
    pub application: Vec<String>,
    pub instrument: Instrument,
    /// Reason why it is not the display tap; `null` if it is.
    pub instrument_why: Option<String>,
    pub profile: ThresholdProfile,
    /// Number of inputs of the script multiplied by the repeats, plus the starts of the
    /// application.
    pub scripted: u64,
    /// Answered inputs and starts. The four counts sum up to `scripted`.
    pub answered: u64,
    pub open: u64,
    pub silent: u64,
    pub lost: u64,
    pub events: Vec<EventRow>,
    pub classes: Vec<ClassFigures>,
    /// 98th percentile of all events by the rule that ignores one in fifty.
    pub interaction_p98_ms: Option<f64>,
    pub elr: Option<ExcessRate>,
    /// Time of all repeats in which the user waited; `null` if the instrument cannot measure it.
    pub wait_ms: Option<f64>,
    /// Part of it in waits at least as long as the threshold of their class.
    pub noticed_wait_ms: Option<f64>,
    pub think_ms: Option<f64>,
    /// Computation while the user was not waiting.
    pub background_ms: Option<f64>,
    pub cumulative: CumulativeLatencies,
    pub long_events: Vec<LongEvent>,
    pub inter_arrival: Vec<InterArrival>,
    pub counters: Vec<OperationCounters>,
    pub driver: DriverCost,
    /// Waits for a still screen that timed out.
    pub restless_waits: u64,
}

/// Source of the times of drawings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum Instrument {
    /// The recorder.
    #[default]
    #[serde(rename = "display tap")]
    DisplayTap,
    /// The display server: the DAMAGE extension of X11.
    #[serde(rename = "damage")]
    Damage,
    /// The display server: pictures of the screen, under Wayland.
    #[serde(rename = "screencopy")]
    Screencopy,
}

impl Instrument {
    /// Returns the name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Instrument::DisplayTap => "display tap",
            Instrument::Damage => "damage",
            Instrument::Screencopy => "screencopy",
        }
    }
}

/// Outcome of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventOutcome {
    #[default]
    Answered,
    /// Unfinished at the end.
    Open,
    /// Without a visible answer.
    Silent,
    /// Missed by the instrument.
    Lost,
}

/// An input and its answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct EventRow {
    /// Number of the repeat, from 1.
    pub repeat: usize,
    /// Time of the input, CLOCK_MONOTONIC.
    pub t_ns: u64,
    pub class: String,
    pub label: String,
    pub outcome: EventOutcome,
    /// Time to the first answer of keys, clicks and scrolls, or to the last one of other classes; a
    /// lower bound if the outcome is `open`.
    pub latency_ms: Option<f64>,
    /// Time to the end of the first drawing.
    pub first_ms: Option<f64>,
    /// Time to the end of the last drawing.
    pub settled_ms: Option<f64>,
    /// Time until the application waited for the next input; `null` if unknown.
    #[serde(default)]
    pub handled_ms: Option<f64>,
    /// Time to the last drawing of the work that the input caused, or to the end of the command
    /// that it started.
    #[serde(default)]
    pub completed_ms: Option<f64>,
    /// Time from the input until the application read it.
    pub queue_ms: Option<f64>,
    /// Rest of the latency.
    pub processing_ms: Option<f64>,
    /// Time of presentation; always `null`, since the display has no screen.
    pub presented_ms: Option<f64>,
    /// `null` without an answer.
    pub join: Option<EventJoin>,
}

/// Figures of one class over all repeats.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassFigures {
    pub class: String,
    pub n: usize,
    /// `null` with fewer than 10 events.
    pub p50_ms: Option<f64>,
    /// `null` with fewer than 250 events.
    pub p98_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub interaction_p98_ms: Option<f64>,
    pub threshold_ms: f64,
    pub frustrated_ms: f64,
    pub apdex: Option<Apdex>,
    pub open: u64,
    pub silent: u64,
    pub lost: u64,
    /// The 98th percentile, or the maximum if there is none, is above the threshold.
    pub exceeded: bool,
    /// Times until the inputs were handled; `null` if unknown for all of them.
    #[serde(default)]
    pub handled: Option<MilestoneFigures>,
    /// Times until the inputs were completed.
    #[serde(default)]
    pub completed: Option<MilestoneFigures>,
}

/// Times from the inputs of a class to a milestone after the response.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MilestoneFigures {
    pub n: usize,
    /// `null` with fewer than 10 inputs.
    pub p50_ms: Option<f64>,
    /// `null` with fewer than 250 inputs.
    pub p98_ms: Option<f64>,
    pub max_ms: f64,
    /// Shortest time that a user notices.
    pub threshold_ms: f64,
    /// Inputs that had not reached the milestone at the end.
    pub open: u64,
    /// The 98th percentile, or the maximum if there is none, is above the threshold.
    pub exceeded: bool,
}

/// Excess latency rate, and the class with most of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExcessRate {
    #[serde(flatten)]
    pub rate: Rate,
    /// `null` without excess.
    pub top_class: Option<String>,
    pub top_share: Option<f64>,
}

/// Sum of the latencies of each repeat, except that of its start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CumulativeLatencies {
    pub repeats_ms: Vec<f64>,
    pub mean_ms: Option<f64>,
    /// Standard deviation in percent of the mean; `null` for fewer than two repeats.
    pub deviation_percent: Option<f64>,
    /// The deviation is at most 3%; `null` if it is unknown.
    pub usable: Option<bool>,
}

/// Inputs of one label that took longer than 50 ms.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LongEvent {
    pub label: String,
    pub class: String,
    /// The first one of the first repeat, with caches in their initial state.
    pub first_ms: Option<f64>,
    /// Minimum, median and maximum of all others; `later_p50_ms` is `null` with fewer than 10.
    pub later_min_ms: Option<f64>,
    pub later_p50_ms: Option<f64>,
    pub later_max_ms: Option<f64>,
    pub n: usize,
    pub n_long: usize,
}

/// Times between events over a threshold, in the repeat with the median cumulative latency.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterArrival {
    pub threshold_ms: f64,
    /// Number of events above the threshold; there is one time fewer.
    pub n: usize,
    pub mean_s: Option<f64>,
    pub deviation_s: Option<f64>,
    /// Deviation divided by the mean; far below 1 for periodic events.
    pub variation: Option<f64>,
    pub period_s: Option<f64>,
}

/// Resources that the application's processes used from an input of an operation to the next input
/// of another one; `null` for counters that this machine lacks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OperationCounters {
    /// Label of the inputs in the script; empty in results of earlier versions, which have one row
    /// for each class.
    #[serde(default)]
    pub label: String,
    pub class: String,
    /// Inputs of the operation.
    pub n: usize,
    pub cpu_ms: Option<f64>,
    pub context_switches: Option<u64>,
    pub page_faults: Option<u64>,
    pub cycles: Option<u64>,
    pub instructions: Option<u64>,
    pub cache_misses: Option<u64>,
    pub tlb_misses: Option<u64>,
}

/// Cost of playing the script. It is not part of any latency, which begins when an input leaves
/// the driver.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DriverCost {
    pub cpu_ms: f64,
    /// In percent of one CPU.
    pub cpu_percent: f64,
    /// Requests that inject input.
    pub requests: u64,
    /// Reports of drawings.
    pub reports: u64,
}

/// Formats `1 repeat`, `5 repeats`.
fn repeats(n: usize) -> String {
    format!("{n} repeat{}", if n == 1 { "" } else { "s" })
}
