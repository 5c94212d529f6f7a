// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an incident to a verdict; pure.
//!
//! Six rooms, and arrows only back: a room may use those that stand before it, never a later one. The first,
//! [`decode`], takes bytes and gives records. [`timeline`] lays out what every thread and CPU did. [`join`] finds what
//! the person did and how long the answer took. [`explain`] walks back from the end of an interval to its start and
//! says what each piece is due to. [`verdict`] picks the worst of it and merges the pieces into findings. The last,
//! [`scene`], gathers what a page shows of it.
//! Below all of them stand [`model`], the documents that are a contract with those who read them, and the errors.
//!
//! Nothing here reads a file, a clock or a process, and no bytes in an incident can make it panic or
//! use memory without bound: what is damaged is left out and noted.

#![warn(unreachable_pub)]

mod decode;
mod error;
mod explain;
mod join;
pub mod model;
pub mod scene;
mod timeline;
mod verdict;

pub use decode::bytes::clean;
pub use error::DiagnoseError;
pub use explain::lateness::{Late, Lateness, lateness};
pub use explain::outsider::{may_be_taken, outsider, outsider_words};
pub use join::answer::{COMPLETED, NOTICED};
pub use join::focus::{FocusChange, focus_changes};
pub use join::labels::{MessageLabel, message_labels};
pub use join::timed_interactions::{Timed, timed};
pub use model::Verdict;
pub use scene::exercise;
pub use timeline::cpu_intervals::{CpuInterval, CpuOwner, cpu_intervals, is_recorder};
pub use timeline::recording::Recording;
pub use timeline::thread_times::{ThreadTimes, thread_times};
pub use timeline::wait_functions::{KernelFunction, Waited, kernel_function};
pub use verdict::diagnose::diagnose;
pub use verdict::interval::{IntervalExplanation, explain};
pub use verdict::problem::DiagnoseOptions;
pub use verdict::trust::SURE;
