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

/// Maximum deviation of the cumulative latency between usable repeats, in percent of the mean.
pub const DEVIATION_PERCENT_MAX: f64 = 3.0;

/// Result file.
pub type MeasureDocument = Document<MeasureDetails>;

/// What only this kind of measurement has.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MeasureDetails {
    /// The script's name.
    pub script: String,
    /// What it models.
    pub about: String,
    /// The application's command; `{home}` stands for its home folder.
    pub application: Vec<String>,
    pub instrument: Instrument,
    /// Why it is not the display tap; `null` where it is.
    pub instrument_why: Option<String>,
    pub profile: ThresholdProfile,
    /// Inputs of the script times repeats, and the starts of the application.
    pub scripted: u64,
    /// Of these: answered, unfinished at the end, without a visible answer, and lost by the instrument. They sum up.
    pub answered: u64,
    pub open: u64,
    pub silent: u64,
    pub lost: u64,
    pub events: Vec<EventRow>,
    pub classes: Vec<ClassFigures>,
    /// 98th percentile of all events by the rule that forgives one in fifty.
    pub interaction_p98_ms: Option<f64>,
    pub elr: Option<ExcessRate>,
    /// Of all repeats, where the person waited and where not; `null` where the instrument cannot tell.
    pub wait_ms: Option<f64>,
    /// Of this, waits at least as long as the threshold of what was asked for.
    pub noticed_wait_ms: Option<f64>,
    pub think_ms: Option<f64>,
    /// Computing that nobody waited for.
    pub background_ms: Option<f64>,
    pub cumulative: CumulativeLatencies,
    pub long_events: Vec<LongEvent>,
    pub inter_arrival: Vec<InterArrival>,
    pub counters: Vec<OperationCounters>,
    pub driver: DriverCost,
    /// Waits for a still screen that ended because they took too long.
    pub restless_waits: u64,
}

/// By what drawings were told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum Instrument {
    /// By the recorder.
    #[default]
    #[serde(rename = "display tap")]
    DisplayTap,
    /// By the display alone: the DAMAGE extension of X11.
    #[serde(rename = "damage")]
    Damage,
    /// By the display alone: pictures of the screen, under Wayland.
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

/// What became of an input.
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

/// One input and its answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct EventRow {
    /// From 1 on.
    pub repeat: usize,
    /// The input, CLOCK_MONOTONIC.
    pub t_ns: u64,
    pub class: String,
    pub label: String,
    pub outcome: EventOutcome,
    /// To the first answer for keys, clicks and scrolls, to the last for the rest; at least this where it is open.
    pub latency_ms: Option<f64>,
    /// To the end of the first drawing.
    pub first_ms: Option<f64>,
    /// To the end of the last drawing.
    pub settled_ms: Option<f64>,
    /// Until the application waited for the next input again; `null` where that is not known.
    #[serde(default)]
    pub handled_ms: Option<f64>,
    /// To the last drawing in the work that the input led to, or to the end of the command that it started.
    #[serde(default)]
    pub completed_ms: Option<f64>,
    /// From the input until the application took it.
    pub queue_ms: Option<f64>,
    /// From there to the end of the latency: both parts sum up to it.
    pub processing_ms: Option<f64>,
    /// There is no time at which a person saw it on a display without a screen.
    pub presented_ms: Option<f64>,
    /// `null` without an answer.
    pub join: Option<EventJoin>,
}

/// The figures of one class over all repeats.
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
    /// The 98th percentile, or the maximum where there is none, is above the threshold.
    pub exceeded: bool,
    /// Until the inputs were handled; `null` where that is known of none.
    #[serde(default)]
    pub handled: Option<MilestoneFigures>,
    /// Until they were completed.
    #[serde(default)]
    pub completed: Option<MilestoneFigures>,
}

/// The times from the inputs of a class to a milestone after the response.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct MilestoneFigures {
    pub n: usize,
    /// `null` with fewer than 10 inputs.
    pub p50_ms: Option<f64>,
    /// `null` with fewer than 250 inputs.
    pub p98_ms: Option<f64>,
    pub max_ms: f64,
    /// A person notices it from here on.
    pub threshold_ms: f64,
    /// Not reached at the end: at least so long.
    pub open: u64,
    /// The 98th percentile, or the maximum where there is none, is above the threshold.
    pub exceeded: bool,
}

/// The excess latency rate, and where most of it comes from.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExcessRate {
    #[serde(flatten)]
    pub rate: Rate,
    /// `null` where there is no excess.
    pub top_class: Option<String>,
    pub top_share: Option<f64>,
}

/// All latencies of a repeat together, but those of its start.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CumulativeLatencies {
    pub repeats_ms: Vec<f64>,
    pub mean_ms: Option<f64>,
    /// Standard deviation in percent of the mean; `null` for fewer than two repeats.
    pub deviation_percent: Option<f64>,
    /// The deviation is at most 3 %; `null` where it is not known.
    pub usable: Option<bool>,
    /// What the repeats differ by; `null` where nothing was recorded.
    #[serde(default)]
    pub spread: Option<RepeatSpread>,
}

/// What the latencies of each repeat consist of, and the share of each part in the variance between the repeats.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RepeatSpread {
    /// Application or display server had a CPU.
    pub running_ms: Vec<f64>,
    /// They were ready, and others had it.
    pub ready_ms: Vec<f64>,
    /// They waited for something else.
    pub waiting_ms: Vec<f64>,
    /// The three sum to 1; below 0 where a part falls as the sum rises.
    pub running_share: f64,
    pub ready_share: f64,
    pub waiting_share: f64,
    /// CPU time of a fixed piece of work in each repeat: how fast the CPU was.
    #[serde(default)]
    pub work_ms: Vec<f64>,
    /// The share that the CPU's speed has: that of the running time if nothing else had differed. A part of the running share.
    #[serde(default)]
    pub speed_share: f64,
    /// Who of application and display server ran, those first by which the repeats differ most.
    #[serde(default)]
    pub runners: Vec<Runner>,
    /// Who had the CPU meanwhile, over all repeats, the longest first.
    pub rivals: Vec<Rival>,
}

/// A thread of application or display server, by its name.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    pub name: String,
    /// CPU time while answers were awaited, over all repeats.
    pub ms: f64,
    /// In the variance between the repeats; where several run at a time, they may come to more than the running share.
    pub share: f64,
}

/// Who had a CPU for which others were ready.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Rival {
    pub name: String,
    pub ms: f64,
}

/// Inputs of one label that took longer than 50 ms.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LongEvent {
    pub label: String,
    pub class: String,
    /// The first one of the first repeat: caches are as they were found.
    pub first_ms: Option<f64>,
    /// The shortest, the median and the longest of all others; no median of fewer than 10.
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
    /// Events above it; there is one time between less.
    pub n: usize,
    pub mean_s: Option<f64>,
    pub deviation_s: Option<f64>,
    /// Deviation over mean; far below 1 means a period.
    pub variation: Option<f64>,
    pub period_s: Option<f64>,
}

/// What the application's processes used from an input of an operation to the next of another one; `null` where it is not
/// counted here.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct OperationCounters {
    /// As the script calls its inputs; empty in a result of an earlier version, which has one row for each class.
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

/// What playing the script cost by itself. No latency holds any of it: each begins when an input has left the driver.
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
