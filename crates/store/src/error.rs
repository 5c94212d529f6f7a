// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of reading and writing, with their remedies.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why no part of an incident could be read; the caller adds the file name. Damage after the
/// first section is not an error: it is recorded in the incident.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("it cannot be opened: {0}{remedy}", remedy = remedy(_0))]
    Open(io::Error),
    #[error("its header cannot be read: {0}")]
    Header(io::Error),
    #[error("it is not an incident file; list the incidents with: tipme incidents")]
    NotAnIncident,
    #[error("its header is damaged: the checksum does not fit")]
    DamagedHeader,
    #[error(
        "format version {found} is newer than {known}, the newest that this tipme reads; \
         use a newer tipme"
    )]
    Version { found: u32, known: u32 },
    #[error("nothing in it can be read: {place}: {why}")]
    Nothing { place: String, why: String },
}

/// Returns the remedy for an unreadable file.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; only its owner and root may read it",
        _ => "",
    }
}

/// Reason why an incident could not be written or amended. Nothing is left behind.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error(
        "cannot write {}: the disk is full; \
         free some space there, or record with --state-dir on another disk",
        path.display()
    )]
    Full { path: PathBuf },
    #[error(
        "cannot write {}: {cause}; \
         check that the folder exists and that the recorder may write there",
        path.display()
    )]
    Io { path: PathBuf, cause: io::Error },
    #[error("incident id {0:?} is not a plain file name; use letters, digits, '-', '_' and '.'")]
    Id(String),
    #[error("the incident cannot be written: {0}")]
    Content(String),
    #[error("cannot change {}: {why}", path.display())]
    Unfit { path: PathBuf, why: String },
}

impl WriteError {
    pub(crate) fn unfit(path: &Path, why: impl Into<String>) -> WriteError {
        WriteError::Unfit { path: path.to_owned(), why: why.into() }
    }

    /// Maps an I/O error at `path` to the variant with its remedy.
    pub(crate) fn io(path: &Path, cause: io::Error) -> WriteError {
        let path = path.to_owned();
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => WriteError::Full { path },
            _ => WriteError::Io { path, cause },
        }
    }
}
