// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data for the page of an interval.
//!
//! Takes an incident. Produces its verdict with the activity around the interval: inputs, display
//! messages, the chain, the states of its threads and of all others, running threads by CPU,
//! started processes, disks and pressure. Everything is thinned out to fixed bounds.

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
pub use picture::{
    Bar, Curve, JobUse, ProgramUse, Scene, Track, TrackGroup, UsualLatencies, ValueSeries,
};
pub use whole::scene;
