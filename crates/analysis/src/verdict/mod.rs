// SPDX-License-Identifier: MIT OR Apache-2.0
//! From blame to a verdict for people.
//!
//! Takes what the pieces of an interval are due to; gives the problem worth telling, its findings with culprit,
//! evidence and remedy, the steps of the chain, and what recording itself added.

pub mod baseline;
pub mod competition;
pub mod detail;
pub mod diagnose;
pub mod evidence;
pub mod findings;
pub mod interval;
pub mod output;
pub mod overhead;
pub mod problem;
pub mod remedy;
pub mod stall;
pub mod steps;
pub mod stopped;
pub mod trust;
