// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an incident to a verdict; pure.
//!
//! Five rooms, and arrows only back: a room may use those that stand before it, never a later one. The first,
//! [`decode`], takes bytes and gives records. [`timeline`] lays out what every thread and CPU did. [`join`] finds what
//! the person did and how long the answer took. [`explain`] walks back from the end of an interval to its start and
//! says what each piece is due to. The last, [`verdict`], picks the worst of it and merges the pieces into findings.
//! Below all of them stands [`model`], the documents that are a contract with those who read them.
//!
//! Nothing here reads a file, a clock or a process, and no bytes in an incident can make it panic or
//! use memory without bound: what is damaged is left out and noted.

mod decode;
mod explain;
mod join;
pub mod model;
mod timeline;
mod verdict;

pub use decode::bytes::clean;
pub use explain::lateness::{Late, Lateness, lateness};
pub use join::timed::{Timed, timed};
pub use model::Verdict;
pub use timeline::occupancy::{Occupant, Occupation, is_recorder, occupations, shares};
pub use timeline::recording::Recording;
use tipme_record::incident::Section;
pub use verdict::diagnose::diagnose;
pub use verdict::fuzz::exercise;
pub use verdict::interval::{Explanation, explain};

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
