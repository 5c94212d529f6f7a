// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics, percentiles and latency thresholds. Pure code.
//!
//! Latencies are unsigned nanoseconds, so every figure is exact; only functions that return rates
//! use floating-point numbers, and they document the unit. Percentiles are by nearest rank: an
//! observed value, never an interpolated one, and withheld if too few observations lie above it.

#![warn(unreachable_pub)]

mod comparison;
mod document;
mod events;
mod excess;
mod histogram;
pub mod idle;
mod interarrival;
mod intervals;
pub mod lived;
mod percentile;
mod periodicity;
mod spread;
mod summary;
pub mod think;
mod threshold;
pub mod timer;
mod tolerance;
mod units;

pub use comparison::{
    ClassComparison, ComparedFigures, ComparedSide, Comparison, CumulativeComparison,
    DEVIATION_MAX_PERCENT, Difference, Differences, Overall, REPEATS_MAX, REPEATS_MIN, RunGroup,
    Statement, Unmatched, Whole, compare, latencies_ms,
};
pub use document::{Document, Events, MeasuredMachine, NoDetails, Run, SCHEMA};
pub use events::{Answer, End, Event, EventJoin, EventTimes, Parts, columns};
pub use excess::{Rate, excess_latency_rate, tenth, top_class};
pub use histogram::{BUCKETS, Histogram};
pub use interarrival::{Interarrival, deviation_percent, interarrival, mean};
pub use intervals::{INTERVAL, IntervalFigures, Intervals};
pub use percentile::Share;
pub use periodicity::{Period, period};
pub use spread::spread_shares;
pub use summary::{Apdex, Summary, apdex, interaction_p98};
pub use threshold::{ClassLimits, InputClass, ThresholdProfile};
pub use tolerance::{PersonSaid, Tolerance};
pub use units::ms;
