// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole loop on a private display, or on a compositor of Wayland: type, suffer, mark, read the cause.
//!
//! Recorder, agent and diagnosis are the product's own programs, started as a user starts them. Under Wayland no agent
//! is needed: its desktop binds keys, and a compositor alone does not.
//! Whether the demonstration succeeds is read from the diagnosis and from nothing else.

mod judge;
mod script;

use crate::alone::MachineLock;
use crate::demo_faults::DemoFault;
use crate::interrupt::InterruptFlag;
use crate::programs::{self, ARM_TIMEOUT, Diagnosis, Follower};
use crate::progress::ProgressListener;
use crate::screen::Place;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
pub use script::DemoInjection;
use script::DemoStage;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long the agent may take to hold its keys, or to tell where the incident lies.
const AGENT_TIMEOUT: Duration = Duration::from_secs(60);

/// What is demonstrated, and with what.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    pub fault: DemoFault,
    pub place: Place,
    /// The `tipme` executable.
    pub tipme: PathBuf,
    /// How worker programs are started.
    pub launcher: WorkerLauncher,
    /// Folder for socket, lock and incidents; the incident stays there. Chosen where it is `None`.
    pub state_dir: Option<PathBuf>,
}

/// The result, as `--json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "tipme demo --json")]
pub struct DemoOutcome {
    pub schema: u32,
    pub fault: String,
    /// The diagnosis names the injected job.
    pub ok: bool,
    /// Why it does not; empty where it does.
    pub why: String,
    /// Path of the incident file, which is kept.
    pub incident: PathBuf,
    /// The document of `tipme diagnose --json`.
    #[schemars(extend("$ref" = "verdict.schema.json"))]
    pub verdict: Value,
    pub injected: DemoInjection,
    /// The text of `tipme diagnose`.
    #[serde(skip)]
    pub text: String,
}

/// Runs the demonstration; takes about half a minute, and less than one.
///
/// Everything that was started has ended when it returns, also by an error or an interrupt.
pub fn run(
    options: &DemoOptions,
    interrupt: &InterruptFlag,
    progress: &mut dyn ProgressListener,
) -> Result<DemoOutcome> {
    require_root(options)?;
    let _alone = MachineLock::wait(interrupt, || progress.line("waiting for another demonstration to end"))?;
    let state = state_dir(options)?;
    progress.line(&format!("opening a terminal on {}", options.place.about()));
    let mut stage = DemoStage::set(&options.place, options.fault, &options.launcher)?;
    progress.line("arming the recorder");
    let _recorder = start_recorder(options, &stage, &state, interrupt)?;
    let agent = (options.place == Place::X11).then(|| start_agent(options, &stage, &state, interrupt)).transpose()?;
    stage.type_calmly(interrupt, progress)?;
    stage.suffer(interrupt, progress)?;
    let incident = match agent {
        Some(agent) => {
            progress.line("pressing Ctrl-Alt-Minus");
            stage.press_mark()?;
            PathBuf::from(agent.wait_for("marked ", AGENT_TIMEOUT, interrupt)?)
        }
        None => {
            progress.line("tipme mark");
            programs::mark(&options.tipme, &state, interrupt)?
        }
    };
    let injected = stage.finish()?;
    progress.line("reading the cause");
    let diagnosis = Diagnosis::of(&options.tipme, &incident, interrupt)?;
    Ok(outcome(options.fault, incident, diagnosis, injected))
}

fn outcome(fault: DemoFault, incident: PathBuf, diagnosis: Diagnosis, injected: DemoInjection) -> DemoOutcome {
    let judged = judge::judge(fault, &diagnosis.json, &injected.pids);
    DemoOutcome {
        schema: 1,
        fault: fault.name().to_string(),
        ok: judged.is_ok(),
        why: judged.err().unwrap_or_default(),
        incident,
        verdict: diagnosis.json,
        injected,
        text: diagnosis.text,
    }
}

fn require_root(options: &DemoOptions) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    bail!("recording takes root; run: sudo {} demo --fault {}", options.tipme.display(), options.fault.name())
}

/// The folder asked for, or a new one that is kept: below /var/lib/tipme, else among temporary files.
fn state_dir(options: &DemoOptions) -> Result<PathBuf> {
    if let Some(folder) = &options.state_dir {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        return std::path::absolute(folder).with_context(|| format!("cannot find {}", folder.display()));
    }
    let prefix = format!("demo-{}-", options.fault.name());
    let usual = Path::new("/var/lib/tipme");
    let made = std::fs::create_dir_all(usual).and_then(|()| tempfile::Builder::new().prefix(&prefix).tempdir_in(usual));
    let made = made.or_else(|_| tempfile::Builder::new().prefix(&format!("tipme-{prefix}")).tempdir());
    made.map(tempfile::TempDir::keep).context("cannot make a folder for the incident; name one with --state-dir")
}

fn start_recorder(
    options: &DemoOptions,
    stage: &DemoStage,
    state: &Path,
    interrupt: &InterruptFlag,
) -> Result<Follower> {
    let mut command = Command::new(&options.tipme);
    command.args(["record", "--hot-keys", "off", "--display", &stage.screen().name()]);
    command.arg("--state-dir").arg(state);
    stage.screen().show(&mut command);
    let recorder = Follower::start("tipme record", command)?;
    recorder.wait_for("recording", ARM_TIMEOUT, interrupt)?;
    Ok(recorder)
}

fn start_agent(options: &DemoOptions, stage: &DemoStage, state: &Path, interrupt: &InterruptFlag) -> Result<Follower> {
    let mut command = Command::new(&options.tipme);
    command.arg("agent").arg("--state-dir").arg(state).args(["--display", &stage.screen().name()]);
    command.args(["--no-dialog", "--no-notification"]);
    stage.screen().show(&mut command);
    let agent = Follower::start("tipme agent", command)?;
    agent.wait_for("ready", AGENT_TIMEOUT, interrupt)?;
    Ok(agent)
}
