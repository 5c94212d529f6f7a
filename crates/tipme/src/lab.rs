// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs of the other program, `tipme-lab`, which replaces this process with the same arguments:
//! its input, output, signals and exit code become those of `tipme`.

use anyhow::{Context, Result};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tipme_command::program;
use tipme_command::verbs::{LAB, are_asked_for};

/// Returns `true` if the arguments name a verb of the lab, or its help.
pub fn is_asked_for() -> bool {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    are_asked_for(words.iter().map(OsString::as_os_str))
}

/// Executes the lab under the name by which this process was called. Returns only on failure.
///
/// # Errors
/// Fails if the lab is not installed or cannot be started.
pub fn become_lab() -> Result<Infallible> {
    let lab = program::find(LAB)?.with_context(|| {
        format!(
            "this belongs to {LAB}, which is not installed; install the package {LAB}, \
             or run make install"
        )
    })?;
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_else(|| "tipme".into());
    let error = Command::new(&lab).arg0(called).args(words).exec();
    Err(error).with_context(|| format!("cannot start {}", lab.display()))
}
