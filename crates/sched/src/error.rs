// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of opening the mechanism.

use std::io;
use std::path::{Path, PathBuf};

/// Reason why the mechanism cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum MechanismError {
    #[error(
        "cannot open the journal {path}: {source}; \
         name a folder that exists and that this user can write to",
        path = .path.display()
    )]
    Journal { path: PathBuf, source: io::Error },
    #[error(
        "the journal {path} is in use; stop the manager that is running",
        path = .path.display()
    )]
    Busy { path: PathBuf },
    #[error("the journal {path} is not safe to use: {why}; remove it", path = .path.display())]
    Unsafe { path: PathBuf, why: &'static str },
    #[error("cannot use the control group {path}: {why}", path = .path.display())]
    Group { path: PathBuf, why: &'static str },
    #[error("cannot weigh the units of systemd: {why}")]
    Units { why: String },
}

impl MechanismError {
    pub(crate) fn journal(path: &Path, source: io::Error) -> MechanismError {
        MechanismError::Journal { path: path.to_owned(), source }
    }
}
