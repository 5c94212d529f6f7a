// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnoses an incident in a separate process that drops all privileges and has bounded time and
//! memory, because the file may contain anything.

use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tipme_analysis::Verdict;
use tipme_command::program;
use tipme_confine::{ChildFault, read_both};

/// Timeout of the diagnosis.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of its document and of its error messages, in bytes.
const DOCUMENT_BYTES_MAX: usize = 8 << 20;
const WHY_BYTES_MAX: usize = 4096;

/// Returns this program's verdict on an incident.
///
/// # Errors
/// Fails if the diagnosis fails or takes longer than a minute; the message is for people.
pub fn verdict(incident: &Path) -> Result<Verdict> {
    let program = program::own()?;
    let file =
        File::open(incident).with_context(|| format!("cannot read {}", incident.display()))?;
    let user = rustix::process::getuid().as_raw().to_string();
    let mut command = Command::new(program);
    command
        .args(["judge", "--json", "--user", &user, "--seconds", &TIMEOUT.as_secs().to_string()])
        .stdin(file);
    run(&mut command, TIMEOUT)
}

fn run(command: &mut Command, timeout: Duration) -> Result<Verdict> {
    let child =
        read_both(command, (DOCUMENT_BYTES_MAX, WHY_BYTES_MAX), timeout, &AtomicBool::new(false));
    let child = child.map_err(|fault| match fault {
        ChildFault::Late(_) => {
            anyhow!("the diagnosis took longer than {} s and was ended", timeout.as_secs())
        }
        other => anyhow::Error::new(other).context("no diagnosis"),
    })?;
    serde_json::from_slice(&child.output).map_err(|_| {
        let why = String::from_utf8_lossy(&child.errors);
        let why = why.lines().last().unwrap_or("it ended without a message");
        anyhow::Error::msg(why.trim_start_matches("tipme: ").to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;
    use std::time::Instant;

    fn say(script: &str, timeout: Duration) -> Result<Verdict> {
        run(Command::new("sh").args(["-c", script]).stdin(Stdio::null()), timeout)
    }

    #[test]
    fn a_diagnosis_that_takes_too_long_is_ended() {
        let begun = Instant::now();
        let late =
            say("exec sleep 60", Duration::from_secs(1)).expect_err("it is too late").to_string();
        assert_eq!(late, "the diagnosis took longer than 1 s and was ended");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn an_oversized_answer_is_a_failure() {
        let endless = say("exec yes", Duration::from_secs(1)).expect_err("no document").to_string();
        assert_eq!(endless, "the diagnosis took longer than 1 s and was ended");
        let long = say("echo '{}'; head -c 9000000 /dev/zero", TIMEOUT)
            .expect_err("no document")
            .to_string();
        assert_eq!(long, "it ended without a message");
    }

    #[test]
    fn a_failure_keeps_its_message() {
        let failed = say("echo 'tipme: cannot read x' >&2; exit 2", TIMEOUT)
            .expect_err("it failed")
            .to_string();
        assert_eq!(failed, "cannot read x");
    }
}
