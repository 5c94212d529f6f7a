// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in an incident or in the options of a diagnosis.

use tipme_record::incident::Section;

/// Reason why an incident cannot be diagnosed.
#[derive(thiserror::Error, Debug)]
pub enum DiagnoseError {
    /// The section with the time of the mark is missing.
    #[error(
        "cannot diagnose the incident: it has no section Meta; the file is damaged at its start"
    )]
    NoMeta,
    /// A section is not the JSON document that it should be.
    #[error(
        "cannot read section {section:?} of the incident: {cause}; the file is damaged or of \
         another version"
    )]
    Document { section: Section, cause: serde_json::Error },
    /// The options name a process that the incident does not contain.
    #[error(
        "cannot find process {name} in the incident; try a name from the chain, or leave the \
         option out"
    )]
    NoSuchProcess { name: String },
}
