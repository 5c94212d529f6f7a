// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a page shows of an interval.
//!
//! Takes an incident; gives its verdict with what happened around the interval: inputs, display messages, the chain,
//! the states of its threads, who ran on each CPU, disks and pressure, all thinned out to stated bounds.

mod actors;
mod chain;
mod cpus;
mod disks;
mod fuzz;
mod inputs;
mod jobs;
mod lanes;
mod look;
mod messages;
mod picture;
mod pressure;
mod stage;
mod texts;
mod threads;
mod whole;

pub use fuzz::exercise;
pub use look::Look;
pub use picture::{Bar, Curve, Group, JobUse, Observed, ProgramUse, Scene, Series, Track};
pub use whole::scene;
