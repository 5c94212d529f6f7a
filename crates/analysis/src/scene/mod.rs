// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a page shows of an interval.
//!
//! Takes an incident; gives its verdict with what happened around the interval: inputs, display messages, the chain,
//! the states of its threads and of all others, who ran on each CPU, which processes were started, disks and pressure, all
//! thinned out to stated bounds.

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
mod others;
mod picture;
mod pressure;
mod stage;
mod texts;
mod threads;
mod whole;

pub use fuzz::exercise;
pub use look::Look;
pub use picture::{Bar, Curve, JobUse, ProgramUse, Scene, Track, TrackGroup, UsualLatencies, ValueSeries};
pub use whole::scene;
