// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager, started as a user starts it, for this process and its children.

use crate::files::temporary_folder;
use crate::interrupt::InterruptFlag;
use crate::programs::Follower;
use crate::screen::TerminalScreen;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Maximum time for the start of the manager, and for restoring everything.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// Beginning of the line that reports that the manager is active; other lines may precede it.
const READY: &str = "managing ";

/// Program and options of the manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManagerProgram {
    /// The `tipme` executable.
    pub program: PathBuf,
    /// Value of `--strength`, unless left to the manager.
    pub strength: Option<String>,
    /// Value of `--backend`, unless left to the manager.
    pub backend: Option<String>,
    /// Value of `--cgroup`, unless left to the manager.
    pub cgroup: Option<PathBuf>,
    /// Value of `--recorder`: folder of the recorder that reports the focus under Wayland.
    pub recorder: Option<PathBuf>,
}

impl ManagerProgram {
    /// Leaves all options to the manager.
    pub fn new(program: PathBuf) -> ManagerProgram {
        ManagerProgram { program, strength: None, backend: None, cgroup: None, recorder: None }
    }

    fn command(&self, screen: &dyn TerminalScreen, state: &TempDir) -> Command {
        let mut command = Command::new(&self.program);
        screen.show(&mut command);
        command.args(["manage", "--display", &screen.address(), "--under"]);
        command.arg(std::process::id().to_string()).arg("--state-dir").arg(state.path());
        self.options().for_each(|(option, value)| {
            command.arg(option).arg(value);
        });
        command
    }

    /// Returns the options that are not left to the manager.
    fn options(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        let words = [("--strength", &self.strength), ("--backend", &self.backend)];
        let words = words
            .into_iter()
            .filter_map(|(option, value)| Some((option, OsStr::new(value.as_deref()?))));
        let folders = [("--cgroup", &self.cgroup), ("--recorder", &self.recorder)];
        words.chain(
            folders
                .into_iter()
                .filter_map(|(option, folder)| Some((option, folder.as_ref()?.as_os_str()))),
        )
    }
}

/// A running manager. It restores everything when it is stopped or dropped.
pub struct BenchManager {
    manager: Follower,
    _state: TempDir,
}

impl BenchManager {
    /// Starts the manager, and waits until it is active.
    pub fn start(
        program: &ManagerProgram,
        screen: &dyn TerminalScreen,
        interrupt: &InterruptFlag,
    ) -> Result<BenchManager> {
        let state = temporary_folder("tipme-bench-")?;
        let command = program.command(screen, &state);
        let manager = Follower::start_with_errors("tipme manage", command)?;
        manager.wait_for(READY, START_TIMEOUT, interrupt)?;
        Ok(BenchManager { manager, _state: state })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.manager.process.pid()
    }

    /// Stops the manager; fails if it did not restore everything.
    pub fn stop(mut self) -> Result<()> {
        self.manager.process.expect_alive()?;
        self.manager.process.signal(Signal::TERM);
        let status = self.manager.process.wait(STOP_TIMEOUT)?;
        let status =
            status.with_context(|| format!("tipme manage did not end within {STOP_TIMEOUT:?}"))?;
        ensure!(status.success(), "tipme manage failed: {status}");
        Ok(())
    }
}

impl Drop for BenchManager {
    /// Gives the manager time to restore everything before it is killed and its folder removed.
    /// After `stop` it has already ended.
    fn drop(&mut self) {
        self.manager.process.signal(Signal::TERM);
        let _ = self.manager.process.wait(STOP_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn what_was_chosen_is_passed_on() {
        let chosen = ManagerProgram {
            strength: Some("strong".to_owned()),
            backend: Some("cgroup".to_owned()),
            cgroup: Some("/sys/fs/cgroup/a b".into()),
            recorder: Some("/run/x".into()),
            ..ManagerProgram::new("tipme".into())
        };
        let words: Vec<OsString> = chosen
            .options()
            .flat_map(|(option, value)| [option.into(), value.to_os_string()])
            .collect();
        let expected =
            "--strength|strong|--backend|cgroup|--cgroup|/sys/fs/cgroup/a b|--recorder|/run/x";
        assert_eq!(words, expected.split('|').collect::<Vec<_>>());
        assert_eq!(ManagerProgram::new("tipme".into()).options().count(), 0);
    }
}
