// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics, percentiles and latency thresholds; pure.
//!
//! Latencies are unsigned nanoseconds, so every figure is exact; only the functions that give rates
//! return floating point numbers, and they say in which unit. Percentiles are by nearest rank: an
//! observed value, never an interpolated one, and withheld where too few observations lie above it.

mod comparison;
mod document;
mod events;
mod excess;
mod histogram;
pub mod idle;
mod interarrival;
mod intervals;
mod percentile;
mod periodicity;
mod random;
mod summary;
pub mod think;
mod threshold;
pub mod timer;

pub use comparison::{
    ClassComparison, Comparison, Cumulative, DEVIATION_MAX_PERCENT, Difference, Differences, Figures, Group, Overall,
    REPEATS_MAX, REPEATS_MIN, RESAMPLES, Side, Statement, Unmatched, Whole, compare, latencies_ms,
};
pub use document::{Document, Events, Machine, NoDetails, Run, SCHEMA};
pub use events::{Answer, End, Event, Join, Parts, Times, columns};
pub use excess::{Rate, excess_latency_rate, excess_latency_rate_of, excess_ns, tenth, top_class};
pub use histogram::{BUCKETS, Histogram};
pub use interarrival::{Interarrival, interarrival};
pub use intervals::{IntervalFigures, Intervals, LONG_NS};
pub use percentile::{Share, nearest_rank, percentile};
pub use periodicity::{Period, period};
pub use random::Generator;
pub use summary::{Apdex, Summary, apdex, interaction_p98};
pub use threshold::{Class, Limits, Profile, exceeds_habit};
