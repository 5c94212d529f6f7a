// SPDX-License-Identifier: MIT OR Apache-2.0
//! The product's own programs as child processes.

use crate::files::temporary_folder;
use crate::interrupt::InterruptFlag;
use crate::process::ProcessGroup;
use crate::screen::TerminalScreen;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tipme_analysis::Recording;

/// Maximum number of unread lines of a program; further lines are dropped.
const LINES_MAX: usize = 1000;
/// Interval between checks for an interrupt while reading.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time until a recorder is armed: beside a load on emulated processors it takes over half
/// a minute.
const ARM_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum time of a diagnosis or a mark.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Exit codes of `tipme diagnose` that come with a document: a verdict, or no finding.
const DIAGNOSED: [i32; 2] = [0, 3];

/// A program, with its output line by line.
pub(crate) struct Follower {
    name: String,
    lines: Receiver<String>,
    /// Its output so far, for an error message.
    said: RefCell<Vec<String>>,
    pub(crate) process: ProcessGroup,
}

impl Follower {
    /// Starts a program, and reads both of its outputs.
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Follower> {
        command.stderr(Stdio::piped());
        Follower::start_with_errors(name, command)
    }

    /// Starts a program, and leaves its error output as the command sets it.
    pub(crate) fn start_with_errors(name: &str, mut command: Command) -> Result<Follower> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = ProcessGroup::start(name, command, None)?;
        let (sender, lines) = mpsc::sync_channel(LINES_MAX);
        let child = process.child();
        follow(child.stdout.take().context("no output")?, sender.clone());
        if let Some(errors) = child.stderr.take() {
            follow(errors, sender);
        }
        Ok(Follower { name: name.to_string(), lines, said: RefCell::default(), process })
    }

    /// Waits for a line that starts with `prefix`; returns the rest of it.
    pub(crate) fn wait_for(
        &self,
        prefix: &str,
        timeout: Duration,
        interrupt: &InterruptFlag,
    ) -> Result<String> {
        let deadline = Instant::now() + timeout;
        loop {
            interrupt.check()?;
            match self.lines.recv_timeout(POLL_INTERVAL) {
                Ok(line) => {
                    if let Some(rest) = line.strip_prefix(prefix) {
                        return Ok(rest.trim().to_string());
                    }
                    self.said.borrow_mut().push(line);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!(
                        "{} did not say \"{}\" within {timeout:?}{}",
                        self.name,
                        prefix.trim(),
                        self.complaint()
                    )
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{} ended early{}", self.name, self.complaint())
                }
            }
        }
    }

    fn complaint(&self) -> String {
        let said = self.said.borrow();
        if said.is_empty() { String::new() } else { format!("; it said: {}", said.join("; ")) }
    }
}

/// Reads an output to its end, so that the program never blocks on a full pipe.
fn follow(source: impl Read + Send + 'static, sender: SyncSender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            let _ = sender.try_send(line);
        }
    });
}

/// Returns the command of a recorder without hot keys; `display` may be `none`.
pub(crate) fn recorder(tipme: &Path, display: &str) -> Command {
    let mut command = Command::new(tipme);
    command.args(["record", "--hot-keys", "off", "--display", display]);
    command
}

/// Returns the command of a recorder of a display.
pub(crate) fn recorder_of(tipme: &Path, screen: &dyn TerminalScreen) -> Command {
    let mut command = recorder(tipme, &screen.name());
    screen.show(&mut command);
    command
}

/// Starts a recorder with its incidents in a folder, and waits until it records.
pub(crate) fn record(
    mut command: Command,
    state_dir: &Path,
    interrupt: &InterruptFlag,
) -> Result<Follower> {
    command.arg("--state-dir").arg(state_dir);
    let recorder = Follower::start("tipme record", command)?;
    recorder.wait_for("recording", ARM_TIMEOUT, interrupt)?;
    Ok(recorder)
}

/// A recorder beside a benchmark. Dropping it ends it and removes its incidents.
pub(crate) struct SidecarRecorder {
    _process: Follower,
    tipme: PathBuf,
    folder: TempDir,
}

impl SidecarRecorder {
    pub(crate) fn start(command: Command, interrupt: &InterruptFlag) -> Result<SidecarRecorder> {
        SidecarRecorder::start_in(temporary_folder("tipme-bench-")?, command, interrupt)
    }

    /// Starts the recorder with its incidents in this folder, and waits until it records.
    pub(crate) fn start_in(
        folder: TempDir,
        command: Command,
        interrupt: &InterruptFlag,
    ) -> Result<SidecarRecorder> {
        let tipme = PathBuf::from(command.get_program());
        let process = record(command, folder.path(), interrupt)?;
        Ok(SidecarRecorder { _process: process, tipme, folder })
    }

    /// Folder of its socket and its incidents.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Saves its records; returns the path of the incident.
    pub(crate) fn mark(&self, interrupt: &InterruptFlag) -> Result<PathBuf> {
        mark(&self.tipme, self.folder.path(), interrupt)
    }

    /// Saves its records and ends it; returns the incident, which is removed with its folder.
    pub(crate) fn last_mark(self, interrupt: &InterruptFlag) -> Result<(PathBuf, TempDir)> {
        Ok((self.mark(interrupt)?, self.folder))
    }
}

/// Decodes an incident.
pub(crate) fn recording(incident: &Path) -> Result<Recording> {
    Ok(Recording::read(&tipme_command::incident::read(incident)?)?)
}

/// Output of `tipme diagnose` for an incident.
pub(crate) struct Diagnosis {
    pub(crate) json: Value,
    pub(crate) text: String,
}

impl Diagnosis {
    /// Runs `tipme diagnose` twice, for the document and for the text.
    pub(crate) fn read(
        tipme: &Path,
        incident: &Path,
        interrupt: &InterruptFlag,
    ) -> Result<Diagnosis> {
        let json = document(tipme, incident, interrupt)?;
        let mut for_text = Command::new(tipme);
        for_text.arg("diagnose").arg(incident);
        Ok(Diagnosis { json, text: output("tipme diagnose", for_text, &DIAGNOSED, interrupt)? })
    }
}

/// Returns the document of `tipme diagnose --json`.
pub(crate) fn document(tipme: &Path, incident: &Path, interrupt: &InterruptFlag) -> Result<Value> {
    let mut command = Command::new(tipme);
    command.arg("diagnose").arg(incident).arg("--json");
    let text = output("tipme diagnose", command, &DIAGNOSED, interrupt)?;
    serde_json::from_str(&text).context("tipme diagnose --json gave no JSON")
}

/// Runs `tipme mark`; returns the path of the incident.
pub(crate) fn mark(tipme: &Path, state_dir: &Path, interrupt: &InterruptFlag) -> Result<PathBuf> {
    let mut command = Command::new(tipme);
    command.arg("mark").arg("--state-dir").arg(state_dir).stderr(Stdio::null());
    let text = output("tipme mark", command, &[0], interrupt)?;
    let line = text.lines().last().context("tipme mark printed no path")?;
    Ok(PathBuf::from(line))
}

/// Runs a program to its end; returns its output if the exit code is among `fine`.
fn output(
    name: &str,
    mut command: Command,
    fine: &[i32],
    interrupt: &InterruptFlag,
) -> Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut process = ProcessGroup::start(name, command, None)?;
    let pipe = process.child().stdout.take().with_context(|| format!("{name} has no output"))?;
    let (text, status) = finish(&mut process, pipe, (END_TIMEOUT, POLL_INTERVAL), interrupt)?;
    if !status.code().is_some_and(|code| fine.contains(&code)) {
        bail!("{name} failed: {status}");
    }
    Ok(text)
}

/// Waits for the end of a program; returns what it wrote to the pipe, and its exit status.
/// Interrupts are checked at the second of the two times.
pub(crate) fn finish(
    program: &mut ProcessGroup,
    mut pipe: impl Read + Send + 'static,
    (timeout, poll_interval): (Duration, Duration),
    interrupt: &InterruptFlag,
) -> Result<(String, ExitStatus)> {
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let deadline = Instant::now() + timeout;
    let status = loop {
        interrupt.check()?;
        if let Some(status) = program.wait(poll_interval)? {
            break status;
        }
        ensure!(Instant::now() < deadline, "{} did not end within {timeout:?}", program.name());
    };
    let text = reader.join().ok().and_then(std::result::Result::ok);
    let text = text.with_context(|| format!("cannot read the output of {}", program.name()))?;
    Ok((text, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Follower {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Follower::start("helper", command).expect("sh starts")
    }

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn the_line_waited_for_comes_from_either_output() {
        let helper = shell("echo noise; echo 'marked /a b' >&2; sleep 60");
        assert_eq!(
            helper.wait_for("marked ", LONG, &InterruptFlag::default()).ok().as_deref(),
            Some("/a b")
        );
    }

    #[test]
    fn an_early_end_is_reported_with_the_output() {
        let error = shell("echo 'no such device' >&2")
            .wait_for("ready", LONG, &InterruptFlag::default())
            .expect_err("it ends");
        assert_eq!(error.to_string(), "helper ended early; it said: no such device");
    }

    #[test]
    fn silence_and_interrupts_end_the_wait() {
        let helper = shell("sleep 60");
        let late = helper
            .wait_for("ready", Duration::from_millis(10), &InterruptFlag::default())
            .expect_err("it is silent");
        assert_eq!(late.to_string(), "helper did not say \"ready\" within 10ms");
        let interrupt = InterruptFlag::default();
        interrupt.set();
        assert!(helper.wait_for("ready", LONG, &interrupt).is_err());
    }
}
