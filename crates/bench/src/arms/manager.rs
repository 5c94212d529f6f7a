// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager, started as a user starts it, for what this process and its children are.

use crate::interrupt::Interrupt;
use crate::process::Process;
use crate::session::Session;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to begin, and to put everything back.
const START_PATIENCE: Duration = Duration::from_secs(30);
const STOP_PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at whether to go on waiting.
const GLANCE: Duration = Duration::from_millis(50);
/// Lines of its output that wait to be read, at most; it would wait then.
const LINES_MAX: usize = 1_024;
/// What its first line begins with.
const READY: &str = "managing ";

/// How the manager is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagerProgram {
    /// The `tipme` executable.
    pub program: PathBuf,
    /// `--strength`, where it is not the manager's own choice.
    pub strength: Option<String>,
    /// `--backend`, likewise.
    pub backend: Option<String>,
}

impl ManagerProgram {
    /// With the manager's own choices.
    pub fn new(program: PathBuf) -> ManagerProgram {
        ManagerProgram { program, strength: None, backend: None }
    }

    fn command(&self, session: &Session, state: &TempDir) -> Command {
        let mut command = Command::new(&self.program);
        session.show(&mut command);
        command.args(["manage", "--display", &session.display_name(), "--under", &std::process::id().to_string()]);
        command.arg("--state-dir").arg(state.path());
        for (option, value) in [("--strength", &self.strength), ("--backend", &self.backend)] {
            value.iter().for_each(|value| {
                command.args([option, value]);
            });
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command
    }
}

/// A manager that runs. It restores everything when it is stopped or dropped.
pub struct Manager {
    process: Process,
    /// What it said when it was ready.
    said: String,
    _state: TempDir,
}

impl Manager {
    /// Starts it, and waits until it manages.
    pub fn start(program: &ManagerProgram, session: &Session, interrupt: &Interrupt) -> Result<Manager> {
        let state = tempfile::Builder::new().prefix("tipme-bench-").tempdir().context("cannot make a folder")?;
        let mut process = Process::start("tipme manage", program.command(session, &state), None)?;
        let output = process.child().stdout.take().context("tipme manage has no output")?;
        let said = wait_until_ready(&follow(output), interrupt)?;
        Ok(Manager { process, said, _state: state })
    }

    /// Its first line, without the begin.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Lets it put everything back; fails where it did not.
    pub fn stop(mut self) -> Result<()> {
        self.process.expect_alive()?;
        self.process.signal(Signal::TERM);
        let status = self.process.wait(STOP_PATIENCE)?;
        let status = status.with_context(|| format!("tipme manage did not end within {STOP_PATIENCE:?}"))?;
        ensure!(status.success(), "tipme manage did not end well: {status}");
        Ok(())
    }
}

impl Drop for Manager {
    /// It has time to put everything back before it is ended with its folder.
    fn drop(&mut self) {
        self.process.signal(Signal::TERM);
        let _ = self.process.wait(STOP_PATIENCE);
    }
}

/// Reads to the end, so that it never waits for a reader.
fn follow(source: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = sync_channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            // Nobody listens once it has begun.
            let _ = sender.try_send(line);
        }
    });
    lines
}

fn wait_until_ready(lines: &Receiver<String>, interrupt: &Interrupt) -> Result<String> {
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        interrupt.check()?;
        match lines.recv_timeout(GLANCE) {
            Ok(line) if line.starts_with(READY) => return Ok(line),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
            Err(RecvTimeoutError::Timeout) => bail!("tipme manage did not begin within {START_PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => bail!("tipme manage ended early; its message stands above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ready_when_it_says_so() {
        let interrupt = Interrupt::default();
        let ready = wait_until_ready(&follow("restoring\nmanaging :9, back end nice\n".as_bytes()), &interrupt);
        assert_eq!(ready.expect("it said so"), "managing :9, back end nice");
        let early = wait_until_ready(&follow("no display\n".as_bytes()), &interrupt).expect_err("it ended");
        assert!(early.to_string().contains("ended early"), "{early}");
        interrupt.set();
        assert!(wait_until_ready(&follow("managing".as_bytes()), &interrupt).is_err());
    }
}
