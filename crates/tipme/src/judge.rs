// SPDX-License-Identifier: MIT OR Apache-2.0
//! Has an incident diagnosed by a process of its own, which gives up all rights and may take so much time and memory and
//! no more: its file may be anything.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tipme_analysis::Verdict;
use tipme_command::program;

/// How long it may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How often it is asked whether it has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of its document and of what it says of failures, at most.
const DOCUMENT_BYTES_MAX: u64 = 8 << 20;
const WHY_BYTES_MAX: u64 = 4096;

/// The verdict of this program on an incident.
///
/// # Errors
/// Where it fails, or takes longer than a minute; for people.
pub fn verdict(incident: &Path) -> Result<Verdict> {
    let program = program::own()?;
    let file = File::open(incident).with_context(|| format!("cannot read {}", incident.display()))?;
    let user = rustix::process::getuid().as_raw().to_string();
    let mut command = Command::new(program);
    command.args(["judge", "--json", "--user", &user, "--seconds", &TIMEOUT.as_secs().to_string()]).stdin(file);
    of(&mut command, TIMEOUT)
}

fn of(command: &mut Command, timeout: Duration) -> Result<Verdict> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start the diagnosis")?;
    let said = listen(child.stdout.take(), DOCUMENT_BYTES_MAX);
    let why = listen(child.stderr.take(), WHY_BYTES_MAX);
    wait(&mut child, timeout)?;
    let (said, why) = (said.join().unwrap_or_default(), why.join().unwrap_or_default());
    serde_json::from_str(&said).map_err(|_| {
        let why = why.lines().last().unwrap_or("it ended without a word").trim_start_matches("tipme: ");
        anyhow::Error::msg(why.to_owned())
    })
}

/// Takes in what comes, up to a bound, while the process is waited for.
fn listen(from: Option<impl Read + Send + 'static>, bytes: u64) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut said = Vec::new();
        from.map(|from| from.take(bytes).read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    })
}

fn wait(child: &mut Child, timeout: Duration) -> Result<()> {
    let until = Instant::now() + timeout;
    while child.try_wait().context("cannot wait for the diagnosis")?.is_none() {
        if Instant::now() >= until {
            child.kill().and_then(|()| child.wait()).context("cannot end the diagnosis")?;
            bail!("the diagnosis took longer than {} s and was ended", timeout.as_secs());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(script: &str, timeout: Duration) -> Result<Verdict> {
        of(Command::new("sh").args(["-c", script]).stdin(Stdio::null()), timeout)
    }

    #[test]
    fn a_diagnosis_that_takes_too_long_is_ended_and_said_so() {
        let begun = Instant::now();
        let late = say("exec sleep 60", Duration::from_secs(1)).expect_err("it is too late").to_string();
        assert_eq!(late, "the diagnosis took longer than 1 s and was ended");
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_diagnosis_may_not_say_more_than_fits() {
        let endless = say("exec yes", Duration::from_secs(5)).expect_err("no document").to_string();
        assert_eq!(endless, "it ended without a word");
    }

    #[test]
    fn a_failure_is_told_in_its_own_words() {
        let failed = say("echo 'tipme: cannot read x' >&2; exit 2", TIMEOUT).expect_err("it failed").to_string();
        assert_eq!(failed, "cannot read x");
    }
}
