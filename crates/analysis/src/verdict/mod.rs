// SPDX-License-Identifier: MIT OR Apache-2.0
//! From blame to a verdict for people.
//!
//! Takes what the pieces of an interval are due to; gives the problem worth telling, its findings with culprit,
//! evidence and remedy, the steps of the chain, and what recording itself added.

pub(crate) mod baseline;
pub(crate) mod competition;
pub(crate) mod detail;
pub(crate) mod diagnose;
pub(crate) mod episodes;
pub(crate) mod evidence;
mod feeder;
pub(crate) mod findings;
pub(crate) mod interval;
pub(crate) mod overhead;
pub(crate) mod problem;
pub(crate) mod remedy;
mod session;
pub(crate) mod stall;
pub(crate) mod steps;
pub(crate) mod stopped;
mod summary;
pub(crate) mod trust;
