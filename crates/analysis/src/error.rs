// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may be wrong with an incident or with what is asked of it.

use tipme_record::incident::Section;

/// Why an incident cannot be diagnosed.
#[derive(thiserror::Error, Debug)]
pub enum DiagnoseError {
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
