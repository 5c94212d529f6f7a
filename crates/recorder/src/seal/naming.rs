// SPDX-License-Identifier: MIT OR Apache-2.0
//! Naming of functions by a process with only the privileges of the incident's owner.

use super::sealer::Sealer;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tipme_confine::{NOBODY, stream_output};
use tipme_control::accounts::first_group;

/// Time beyond the answer timeout after which the process is killed: by then the incident has gone
/// on without it and recorded which user did not answer.
const GRACE: Duration = Duration::from_millis(200);

/// Passes answers to `take` in arbitrary pieces until the timeout, then ends the process.
///
/// # Errors
/// The reason why there are no more answers.
pub(super) fn name(
    sealer: &Sealer,
    marker: u32,
    questions: &[u8],
    timeout: Duration,
    take: impl FnMut(&[u8]),
) -> Result<()> {
    match sealer {
        Sealer::Program(program) => name_by(program, marker, questions, timeout + GRACE, take),
        #[cfg(test)]
        Sealer::Here => {
            let (mut answers, mut take) = (Vec::new(), take);
            crate::symbols::name(questions, &mut answers, None)?;
            take(&answers);
            Ok(())
        }
    }
}

fn name_by(
    program: &Path,
    marker: u32,
    questions: &[u8],
    timeout: Duration,
    take: impl FnMut(&[u8]),
) -> Result<()> {
    let (user, group) = account(marker);
    let mut command = Command::new(program);
    command.args(["name", "--user", &user.to_string(), "--group", &group.to_string()]);
    command.args(["--seconds", &timeout.as_secs().to_string()]);
    command
        .stdin(handed(questions).context("cannot pass the addresses to the naming process")?)
        .stderr(Stdio::null());
    let status = stream_output(&mut command, timeout, &AtomicBool::new(false), take)?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// Returns user and group of the naming process: nobody for root, and the group nobody for a user
/// without an account here.
fn account(marker: u32) -> (u32, u32) {
    match marker {
        0 => (NOBODY, NOBODY),
        user => (user, first_group(user).filter(|group| *group != 0).unwrap_or(NOBODY)),
    }
}

/// Returns the questions as a read-only file at its beginning.
fn handed(questions: &[u8]) -> std::io::Result<File> {
    let mut file = tipme_store::memory_file()?;
    file.write_all(questions)?;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
