// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of another program, `tipme-lab`, which takes the place of this one with the same arguments: what it reads and
//! writes, its signals and its exit code are those of `tipme`.

use anyhow::{Context, Result};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tipme_command::program;
use tipme_command::verbs::{LAB, are_asked_for};

/// Whether this process was called for a verb of the lab, or for its help.
pub fn is_asked_for() -> bool {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    are_asked_for(words.iter().map(OsString::as_os_str))
}

/// Goes on as the lab, under the name by which this process was called.
///
/// # Errors
/// Where it is not installed, or cannot be started; otherwise it does not return.
pub fn become_lab() -> Result<Infallible> {
    let lab = program::find(LAB)?.with_context(|| {
        format!("this belongs to {LAB}, which is not installed; install the package {LAB}, or run make install")
    })?;
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_else(|| "tipme".into());
    let error = Command::new(&lab).arg0(called).args(words).exec();
    Err(error).with_context(|| format!("cannot start {}", lab.display()))
}
