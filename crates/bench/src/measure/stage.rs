// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where it is played: a private display, or one that is there; and the recorder beside it.

use crate::interrupt::Interrupt;
use crate::programs::{self, Follower};
use crate::session::{self, Session};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tipme_desktop::Target;

/// How long the recorder may take to arm.
const ARM_TIMEOUT: Duration = Duration::from_secs(30);
/// Seconds that an incident reaches back: more than lies between two marks.
const WINDOW_S: &str = "120";
/// Room for what lies between two marks on a busy machine.
const MEMORY: &str = "192M";
/// What an incident of a measurement does without: nobody asks for a cause.
const WITHOUT: &str = "samples,locks";

/// A display.
pub(super) enum Stage {
    Private(Box<Session>),
    Existing(Target),
}

impl Stage {
    /// The display that is named, else a new one.
    pub(super) fn set(display: Option<&Target>) -> Result<Stage> {
        match display {
            Some(target) => Ok(Stage::Existing(Target { timeout: Duration::from_secs(10), ..target.clone() })),
            None => Ok(Stage::Private(Box::new(Session::start(session::SessionOptions::default())?))),
        }
    }

    pub(super) fn target(&self) -> Target {
        match self {
            Stage::Private(session) => session.target(),
            Stage::Existing(target) => target.clone(),
        }
    }

    /// Sets the variables by which an application finds the display.
    pub(super) fn prepare(&self, command: &mut Command) {
        match self {
            Stage::Private(session) => session.prepare(command),
            Stage::Existing(_) => self.show(command),
        }
    }

    fn show(&self, command: &mut Command) {
        match self {
            Stage::Private(session) => session.show(command),
            Stage::Existing(target) => {
                command.env("DISPLAY", format!(":{}", target.display));
            }
        }
    }
}

/// The product's recorder, with its incidents in a folder that goes with it.
pub(super) struct Recorder {
    tipme: PathBuf,
    _process: Follower,
    state: TempDir,
}

impl Recorder {
    pub(super) fn start(tipme: &Path, stage: &Stage, interrupt: &Interrupt) -> Result<Recorder> {
        let state = tempfile::Builder::new().prefix("tipme-measure-").tempdir().context("cannot make a folder")?;
        let mut command = Command::new(tipme);
        command.args(["record", "--display", &format!(":{}", stage.target().display), "--window", WINDOW_S]);
        command.args(["--hot-keys", "off", "--memory", MEMORY]);
        command.args(["--without", WITHOUT, "--state-dir"]).arg(state.path());
        stage.show(&mut command);
        let process = Follower::start("tipme record", command)?;
        process.wait_for("recording", ARM_TIMEOUT, interrupt)?;
        Ok(Recorder { tipme: tipme.to_path_buf(), _process: process, state })
    }

    /// Keeps what was recorded; the incident.
    pub(super) fn mark(&self, interrupt: &Interrupt) -> Result<PathBuf> {
        programs::mark(&self.tipme, self.state.path(), interrupt)
    }
}
