// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of latencies and other times: each is one pure function from figures to the text of one SVG.
//!
//! An SVG holds no script and refers to nothing outside itself. Values that are not times (not finite,
//! negative, or above 10^12 ms) are left out and counted in the footer; names from outside are cut and
//! escaped. Where more is given than can be seen, the largest of each half pixel is drawn, so that no
//! maximum is lost and no plot exceeds [`BYTES_MAX`].

mod axes;
pub(crate) mod buckets;
mod budgets;
mod cumulative;
mod histograms;
mod levels;
mod page;
mod palette;
mod percentiles;
mod profile;
mod scale;
mod thin;
mod utilisation;
pub(crate) mod values;
pub mod words;

pub use budgets::budgets;
pub use cumulative::{cumulative_by_count, cumulative_by_latency};
pub use histograms::histograms;
pub use levels::{LevelCurve, levels};
pub use percentiles::percentiles;
pub use profile::{latency_profile, latency_profile_zoom};
pub use utilisation::utilisation;

/// No plot is longer than this: at most [`SETS_MAX`] sets of at most two points for each half pixel.
pub const BYTES_MAX: usize = 1 << 20;

/// Sets beyond these are not drawn, but counted in the footer.
pub const SETS_MAX: usize = 16;

/// What stands above, beside and below a plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figure<'a> {
    pub title: &'a str,
    /// What the times are, for the names of the axes.
    pub quantity: Quantity,
    /// The conditions under which it was measured; wrapped where it is long.
    pub footer: &'a str,
}

/// What is measured in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quantity {
    /// From an input to its answer.
    #[default]
    Latency,
    /// From a deadline to what was due then.
    Lateness,
    /// From one event to the next.
    Interval,
    /// Time that somebody else had.
    Gap,
}

impl Quantity {
    /// What the events of a class in a result file are; those of intervals stand there with what they have beyond the
    /// expected.
    pub fn of_class(class: &str) -> Quantity {
        match class {
            "lateness" | "interval" => Quantity::Lateness,
            "gap" => Quantity::Gap,
            _ => Quantity::Latency,
        }
    }

    /// One of them.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Latency => "latency",
            Quantity::Lateness => "lateness",
            Quantity::Interval => "interval",
            Quantity::Gap => "gap",
        }
    }

    /// Several added up.
    pub fn sum(self) -> &'static str {
        match self {
            Quantity::Latency => "cumulative latency",
            Quantity::Lateness => "cumulative lateness",
            Quantity::Interval => "sum of the intervals",
            Quantity::Gap => "sum of the gaps",
        }
    }
}

/// One event of a latency profile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProfileBar {
    /// Since the begin of the run.
    pub start_s: f64,
    pub latency_ms: f64,
    /// Whether it had not ended with the run: its latency is at least what stands here.
    pub censored: bool,
}

/// Latencies that belong together, in any order.
#[derive(Clone, PartialEq, Debug)]
pub struct LatencySet {
    pub name: String,
    pub values_ms: Vec<f64>,
}
