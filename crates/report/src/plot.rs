// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of latencies and other times: each is a pure function from figures to the text of one SVG.
//!
//! An SVG contains no script and no external references. Invalid times (not finite, negative, or
//! above 10^12 ms) are left out and counted in the footer; external names are cut and escaped. If
//! there is more data than pixels, the largest value of each half pixel is drawn, so that no
//! maximum is lost and no plot exceeds [`BYTES_MAX`].

mod axes;
pub(crate) mod buckets;
mod budgets;
mod class;
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
pub(crate) use class::class_plots;
pub use cumulative::{cumulative_by_count, cumulative_by_latency};
pub use histograms::histograms;
pub use levels::{LevelCurve, levels};
pub use percentiles::percentiles;
pub use profile::{latency_profile, latency_profile_zoom};
pub use utilisation::utilisation;

/// Maximum size of a plot in bytes: [`SETS_MAX`] sets with two points for each half pixel stay
/// below it.
pub const BYTES_MAX: usize = 1 << 20;

/// Maximum number of sets; further sets are only counted in the footer.
pub const SETS_MAX: usize = 16;

/// Texts above, beside and below a plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figure<'a> {
    pub title: &'a str,
    /// Kind of the times, for the names of the axes.
    pub quantity: Quantity,
    /// Conditions of the measurement; long texts are wrapped.
    pub footer: &'a str,
}

/// Quantity measured in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quantity {
    /// Time from an input to its answer.
    #[default]
    Latency,
    /// Time from a deadline to the action that was due.
    Lateness,
    /// Time from one event to the next.
    Interval,
    /// Time for which the CPU belonged to others.
    Gap,
}

impl Quantity {
    /// Returns the quantity of the events of a class in a result file. Files store intervals as
    /// their excess over the expected length, which is a lateness.
    pub fn of_class(class: &str) -> Quantity {
        match class {
            "lateness" | "interval" => Quantity::Lateness,
            "gap" => Quantity::Gap,
            _ => Quantity::Latency,
        }
    }

    /// Returns the singular name.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Latency => "latency",
            Quantity::Lateness => "lateness",
            Quantity::Interval => "interval",
            Quantity::Gap => "gap",
        }
    }

    /// Returns the name of the sum.
    pub fn sum(self) -> &'static str {
        match self {
            Quantity::Latency => "cumulative latency",
            Quantity::Lateness => "cumulative lateness",
            Quantity::Interval => "sum of the intervals",
            Quantity::Gap => "sum of the gaps",
        }
    }
}

/// Event of a latency profile.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProfileBar {
    /// Time since the start of the run.
    pub start_s: f64,
    pub latency_ms: f64,
    /// `true` if the event was unfinished at the end of the run: its latency is a lower bound.
    pub censored: bool,
}

/// Latencies of one group, in any order.
#[derive(Clone, PartialEq, Debug)]
pub struct LatencySet {
    pub name: String,
    pub values_ms: Vec<f64>,
}
