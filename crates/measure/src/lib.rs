// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics, percentiles and latency thresholds; pure.
//!
//! Latencies are unsigned nanoseconds, so every figure is exact; only the functions that give rates
//! return floating point numbers, and they say in which unit. Percentiles are by nearest rank: an
//! observed value, never an interpolated one, and withheld where too few observations lie above it.

mod histogram;
mod percentile;
mod summary;
mod threshold;

pub use histogram::{BUCKETS, Histogram};
pub use percentile::{Share, nearest_rank, percentile};
pub use summary::{Apdex, Rate, Summary, apdex, excess_latency_rate, interaction_p98};
pub use threshold::{Class, Limits, Profile, exceeds_habit, is_unacceptable};
