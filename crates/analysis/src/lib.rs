// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnosis: turns an incident into a verdict. Pure code.
//!
//! The crate has six rooms, and each uses only those before it. [`decode`] parses bytes into
//! records. [`timeline`] lays out the states of every thread and CPU. [`join`] matches inputs with
//! the drawings that answer them. [`explain`] walks the critical path of an interval back to its
//! start and blames each piece. [`verdict`] ranks the delays and merges pieces into findings.
//! [`scene`] collects the data that a page shows.
//!
//! All of them use [`model`], the documents with a stable format, and the errors.
//!
//! Nothing here reads a file, a clock or a process. No bytes in an incident can cause a panic or
//! unbounded memory use: damaged parts are skipped and noted.

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
pub use timeline::wait_functions::{KernelFunction, Waited, kernel_function};
pub use verdict::diagnose::diagnose;
pub use verdict::interval::{IntervalExplanation, explain};
pub use verdict::options::DiagnoseOptions;
pub use verdict::trust::SURE;
