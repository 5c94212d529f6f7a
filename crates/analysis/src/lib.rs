// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an incident to a verdict; pure.
//!
//! [`diagnose`] decodes the records ([`recording`]), lays out what every thread did ([`timeline`]),
//! finds what the person did and how long the answer took ([`interactions`]), picks the worst of it
//! ([`problem`]), walks back from its end to its start ([`chain`]), says what each piece is due to
//! ([`partition`]) and merges the pieces into findings ([`findings`]).
//!
//! Nothing here reads a file, a clock or a process, and no bytes in an incident can make it panic or
//! use memory without bound: what is damaged is left out and noted.

mod attempts;
mod baseline;
mod blame;
mod bursts;
mod bytes;
mod cause;
mod chain;
mod commands;
mod compositors;
mod contention;
mod describe;
mod detail;
mod disk;
mod events;
mod evidence;
mod findings;
mod fuzz;
mod homes;
mod inputs;
mod interactions;
mod interrupts;
mod interval;
mod jobs;
mod kin;
mod late;
mod lateness;
mod load;
mod matching;
mod messages;
mod milestones;
pub mod model;
mod names;
mod occupancy;
mod overhead;
mod partition;
mod periods;
mod polls;
mod problem;
#[cfg(test)]
mod properties;
mod protocol;
mod readers;
mod reclaim;
mod recording;
mod remedy;
mod selections;
mod steps;
mod tasks;
mod terminals;
mod throttle;
mod timed;
mod timeline;
mod verdict;
mod waits;
mod wakes;
mod work;

pub use bytes::clean;
pub use fuzz::exercise;
pub use interval::{Explanation, explain};
pub use lateness::{Late, Lateness, lateness};
pub use model::Verdict;
pub use occupancy::{Occupant, Occupation, is_recorder, occupations, shares};
pub use recording::Recording;
pub use timed::{Timed, timed};
use tipme_record::incident::Section;
pub use verdict::diagnose;

/// Why an incident cannot be diagnosed.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    /// The section that says when the mark was is missing.
    #[error("cannot diagnose the incident: it has no section Meta; the file is damaged at its start")]
    NoMeta,
    /// A section is no such JSON document.
    #[error(
        "cannot read section {section:?} of the incident: {cause}; it was written by another version or is damaged"
    )]
    Document { section: Section, cause: serde_json::Error },
    /// The options name a process that the incident does not know.
    #[error("the incident knows no process {name}; leave the option out, or see the chain for names")]
    NoSuchProcess { name: String },
}

/// What to look at; everything where nothing is given.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Options {
    /// Only processes with this name.
    pub app: Option<String>,
    /// Only this process.
    pub pid: Option<tipme_record::Pid>,
    /// Seconds before the mark around which to look.
    pub at_s: Option<f64>,
}
