// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict on an interval.
//!
//! Takes the blames of its pieces. Produces the problem to report, its findings with culprit,
//! evidence and remedy, the steps of the chain, and the overhead of recording.

pub(crate) mod baseline;
mod causes;
pub(crate) mod competition;
mod culprits;
pub(crate) mod detail;
pub(crate) mod diagnose;
pub(crate) mod episodes;
pub(crate) mod evidence;
mod feeder;
pub(crate) mod findings;
mod groups;
pub(crate) mod interval;
mod latency_groups;
pub(crate) mod options;
pub(crate) mod overhead;
pub(crate) mod problem;
pub(crate) mod remedy;
mod session;
pub(crate) mod stall;
pub(crate) mod steps;
pub(crate) mod stopped;
mod summary;
pub(crate) mod trust;
