// SPDX-License-Identifier: MIT OR Apache-2.0
//! Has functions named by a process that has the rights of who marked, and no others.

use super::sealer::Sealer;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tipme_confine::{NOBODY, hear_each};
use tipme_control::accounts::first_group;

/// How much longer than the answers count the process may take: whoever waits for them has gone on by then, and has said
/// who did not answer.
const GRACE: Duration = Duration::from_millis(200);

/// Gives what is answered to `take`, in any pieces, while answers count; the process is ended then.
///
/// # Errors
/// Why nothing more is answered.
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

fn name_by(program: &Path, marker: u32, questions: &[u8], timeout: Duration, take: impl FnMut(&[u8])) -> Result<()> {
    let (user, group) = account(marker);
    let mut command = Command::new(program);
    command.args(["name", "--user", &user.to_string(), "--group", &group.to_string()]);
    command.args(["--seconds", &timeout.as_secs().to_string()]);
    command.stdin(handed(questions).context("cannot hand the questions on")?).stderr(Stdio::null());
    let status = hear_each(&mut command, timeout, &AtomicBool::new(false), take)?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// Nobody for root. A user without an account on this machine is in no group.
fn account(marker: u32) -> (u32, u32) {
    match marker {
        0 => (NOBODY, NOBODY),
        user => (user, first_group(user).filter(|group| *group != 0).unwrap_or(NOBODY)),
    }
}

/// For reading only, from the beginning.
fn handed(questions: &[u8]) -> std::io::Result<File> {
    let mut file = tipme_store::memory_file()?;
    file.write_all(questions)?;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
