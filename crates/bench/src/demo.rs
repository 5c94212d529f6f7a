// SPDX-License-Identifier: MIT OR Apache-2.0
//! One fault of the self-test as a demonstration, on a private display or on a Wayland compositor:
//! type, suffer, mark, read the cause.
//!
//! Recorder, agent and diagnosis are the product's own programs, started as a user starts them.
//! Wayland needs no agent: its desktop binds keys, and a compositor alone does not. The diagnosis
//! alone decides if the demonstration succeeds.

use crate::alone::MachineLock;
use crate::display::PrivateDisplay;
use crate::faults::Fault;
use crate::faults::stage::{FaultStage, StageOutcome, slowest};
use crate::files::kept_folder;
use crate::interrupt::InterruptFlag;
use crate::process::is_root;
use crate::programs::{self, Diagnosis, Follower, recorder_of};
use crate::progress::ProgressListener;
use crate::screen::Place;
use crate::worker::WorkerLauncher;
use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tipme_record::Nanos;

/// Longest time until the agent holds its keys, or reports the incident.
const AGENT_TIMEOUT: Duration = Duration::from_secs(60);
/// Typing before the fault: at five keys a second, forty keys.
const CALM: Nanos = Nanos::from_secs(8);
/// Typing during the fault.
const FAULT: Nanos = Nanos::from_secs(5);

/// Options of a demonstration.
#[derive(Clone)]
pub struct DemoOptions {
    pub fault: &'static Fault,
    pub place: Place,
    /// The `tipme` executable.
    pub tipme: PathBuf,
    /// Starts worker programs.
    pub launcher: WorkerLauncher,
    /// Folder for socket, lock and incidents; the incident stays there. `None` chooses one.
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
    /// Reason if it does not; empty if it does.
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

/// The injected fault and its effect on the screen, measured without the recorder.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Injected")]
pub struct DemoInjection {
    /// Processes of the job that were seen, its root first.
    pub pids: Vec<u32>,
    /// Command of the job; `null` without a fault.
    pub job: Option<String>,
    /// Keys typed in all.
    pub keys: usize,
    /// Longest time from a key to the next drawing, or to the end without one, before the fault;
    /// `null` if the display does not report drawings.
    pub calm_ms_max: Option<f64>,
    /// The same from the beginning of the fault on.
    pub fault_ms_max: Option<f64>,
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
    options.fault.require()?;
    let _alone =
        MachineLock::wait(interrupt, || progress.line("waiting for another demonstration to end"))?;
    let state = state_dir(options)?;
    progress.line(&format!("opening a terminal on {}", options.place.about()));
    let mut display = PrivateDisplay::open(&options.place, options.fault.options())?;
    let mut stage = FaultStage::open(display.screen_mut(), options.fault, &options.launcher)?;
    progress.line("arming the recorder");
    let _recorder = programs::record(recorder_of(&options.tipme, stage.screen), &state, interrupt)?;
    let agent = (options.place == Place::X11)
        .then(|| start_agent(options, &stage, &state, interrupt))
        .transpose()?;
    stage.type_calmly(interrupt, &mut for_time(CALM, "calm typing", progress))?;
    let job = stage.inject()?;
    progress.line(
        &job.map_or("no fault is injected".to_owned(), |job| format!("the fault begins: {job}")),
    );
    stage.suffer(interrupt, &mut for_time(FAULT, "typing on", progress))?;
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
    let seen = stage.finish()?;
    progress.line("reading the cause");
    let diagnosis = Diagnosis::read(&options.tipme, &incident, interrupt)?;
    Ok(outcome(options.fault, incident, diagnosis, &seen))
}

/// Reports each second, until a time has passed.
fn for_time(
    time: Nanos,
    what: &str,
    progress: &mut dyn ProgressListener,
) -> impl FnMut(usize, Nanos) -> bool {
    let mut reported = u64::MAX;
    move |_, passed| {
        let second = passed.0 / 1_000_000_000;
        if passed < time && second != std::mem::replace(&mut reported, second) {
            progress.line(&format!("{what} {second}/{} s", time.0 / 1_000_000_000));
        }
        passed < time
    }
}

fn outcome(
    fault: &Fault,
    incident: PathBuf,
    diagnosis: Diagnosis,
    seen: &StageOutcome,
) -> DemoOutcome {
    let judged = seen.judge(fault, &diagnosis.json);
    let injected = DemoInjection {
        pids: seen.pids(),
        job: seen.injection.as_ref().map(|injection| injection.what.clone()),
        keys: seen.keys,
        calm_ms_max: seen.calm_ms.as_deref().map(slowest),
        fault_ms_max: seen.later_ms.as_deref().map(slowest),
    };
    DemoOutcome {
        schema: 1,
        fault: fault.name.to_owned(),
        ok: judged.hit,
        why: judged.why,
        incident,
        verdict: diagnosis.json,
        injected,
        text: diagnosis.text,
    }
}

fn require_root(options: &DemoOptions) -> Result<()> {
    if is_root() {
        return Ok(());
    }
    bail!(
        "recording needs root; run: sudo {} demo --fault {}",
        options.tipme.display(),
        options.fault.name
    )
}

/// The folder asked for, or a new one that is kept: below /var/lib/tipme, else among temporary
/// files.
fn state_dir(options: &DemoOptions) -> Result<PathBuf> {
    if let Some(folder) = &options.state_dir {
        return kept_folder(folder);
    }
    let prefix = format!("demo-{}-", options.fault.name);
    let usual = Path::new("/var/lib/tipme");
    let made = std::fs::create_dir_all(usual)
        .and_then(|()| tempfile::Builder::new().prefix(&prefix).tempdir_in(usual));
    let made =
        made.or_else(|_| tempfile::Builder::new().prefix(&format!("tipme-{prefix}")).tempdir());
    made.map(tempfile::TempDir::keep)
        .context("cannot make a folder for the incident; name one with --state-dir")
}

fn start_agent(
    options: &DemoOptions,
    stage: &FaultStage<'_>,
    state: &Path,
    interrupt: &InterruptFlag,
) -> Result<Follower> {
    let mut command = Command::new(&options.tipme);
    command.arg("agent").arg("--state-dir").arg(state).args(["--display", &stage.screen.name()]);
    command.args(["--no-dialog", "--no-notification"]);
    stage.screen.show(&mut command);
    let agent = Follower::start("tipme agent", command)?;
    agent.wait_for("ready", AGENT_TIMEOUT, interrupt)?;
    Ok(agent)
}
