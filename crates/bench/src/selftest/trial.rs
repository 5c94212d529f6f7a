// SPDX-License-Identifier: MIT OR Apache-2.0
//! One fault against one application: type, suffer, mark, diagnose.
//!
//! Application, recorder and folders are fresh for each trial, so no trial sees another's; the private
//! displays are kept, since starting one takes longer than the rest. A trial that fails costs its display.

use super::app::{TrialApplication, TrialDisplay};
use super::fault::{App, Fault, InjectedCauses};
use super::keyboard::{Keyboard, Latency, PACE};
use super::options::SelftestOptions;
use super::site::Site;
use crate::alone::MachineLock;
use crate::cpu_work::last_cpu;
use crate::interrupt::InterruptFlag;
use crate::programs::{self, ARM_TIMEOUT, Follower};
use crate::screen::TerminalScreen;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Keys typed before the fault: what is usual is learnt from them.
const CALM_KEYS: usize = 12;
/// Keys typed on in a clean run.
const CLEAN_KEYS: usize = 20;
/// Between two trials, so that others who wait for the machine get it.
const PAUSE: Duration = Duration::from_millis(150);

/// What came of a trial.
pub(super) struct Observation {
    /// The document of the diagnosis, or why there is none.
    pub verdict: Result<Value, String>,
    pub diagnosis: Duration,
    pub injected: InjectedCauses,
    pub latency: Latency,
    pub incident: PathBuf,
    folder: Option<TempDir>,
}

/// What a trial is worth that the product itself made fail.
#[derive(Debug)]
pub(super) struct ProductFailed;

impl std::fmt::Display for ProductFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the product failed")
    }
}

/// The private displays.
pub(super) struct TrialRunner<'a> {
    options: &'a SelftestOptions,
    interrupt: &'a InterruptFlag,
    cpu: usize,
    /// Those that are free, by whether they are of Wayland and have everything on one CPU.
    free: BTreeMap<(bool, bool), TrialDisplay>,
}

/// A trial's own folders.
struct Places {
    folder: TempDir,
}

impl<'a> TrialRunner<'a> {
    pub(super) fn new(options: &'a SelftestOptions, interrupt: &'a InterruptFlag) -> TrialRunner<'a> {
        TrialRunner { options, interrupt, cpu: last_cpu().unwrap_or_default(), free: BTreeMap::new() }
    }

    /// Runs one trial, alone on this machine; `waiting` is called where another has to end first.
    ///
    /// An error says why it could not be run.
    pub(super) fn run(&mut self, fault: &Fault, app: App, waiting: impl FnOnce()) -> Result<Observation> {
        let _alone = MachineLock::wait(self.interrupt, waiting)?;
        let kind = (app.is_of_wayland(), fault.pinned);
        let display = match self.free.remove(&kind) {
            Some(display) => display,
            None => TrialDisplay::start(app, fault.pinned.then_some(self.cpu))?,
        };
        let observed = self.observe(&display, fault, app)?;
        self.free.insert(kind, display);
        Ok(observed)
    }

    /// Lets others have the machine for a moment.
    pub(super) fn pause(&self) -> Result<()> {
        self.interrupt.sleep(PAUSE)
    }

    fn observe(&self, display: &TrialDisplay, fault: &Fault, app: App) -> Result<Observation> {
        let places = Places::make()?;
        let (home, state, site) = (places.home(), places.state(), self.site(display, places.site()));
        let mut injection = (fault.prepare)(&site).context("cannot prepare it")?;
        let (mut typist, prefix) = (display.screen().typist(PACE)?, injection.prefix());
        let mut application =
            TrialApplication::start(app, display, &mut typist, &site, &home, &prefix, self.interrupt)?;
        let recorder = self.start_recorder(display.screen(), &state).context(ProductFailed)?;
        let mut keyboard = Keyboard::open(typist, application.watch(display)?)?;
        keyboard.type_calmly(CALM_KEYS, self.interrupt)?;
        injection.begin(application.pid()).context("cannot begin it")?;
        let keys = if fault.kinds.is_empty() { CLEAN_KEYS } else { 1 };
        keyboard.type_and_wait(keys, self.interrupt)?;
        let incident = programs::mark(&self.options.tipme, &state, self.interrupt).context(ProductFailed)?;
        let injected = injection.end().context("cannot end it")?;
        application.expect_well()?;
        if injected.causes.len() != fault.kinds.len() {
            bail!("{} causes were injected where {} are told of", injected.causes.len(), fault.kinds.len());
        }
        drop(recorder);
        let latency = keyboard.finish()?;
        let began = Instant::now();
        let verdict = programs::document(&self.options.tipme, &incident, self.interrupt);
        self.interrupt.check()?;
        let verdict = verdict.map_err(|error| format!("{error:#}"));
        let diagnosis = began.elapsed();
        Ok(Observation { verdict, diagnosis, injected, latency, incident, folder: Some(places.folder) })
    }

    fn site(&self, display: &TrialDisplay, folder: PathBuf) -> Site {
        Site { folder, display: display.server(), cpu: self.cpu, launcher: self.options.launcher.clone() }
    }

    fn start_recorder(&self, screen: &dyn TerminalScreen, state: &Path) -> Result<Follower> {
        let mut command = Command::new(&self.options.tipme);
        command.args(["record", "--hot-keys", "off", "--window", "20"]);
        command.args(["--display", &screen.name(), "--state-dir"]).arg(state);
        screen.show(&mut command);
        let recorder = Follower::start("tipme record", command)?;
        recorder.wait_for("recording", ARM_TIMEOUT, self.interrupt)?;
        Ok(recorder)
    }
}

impl Places {
    fn make() -> Result<Places> {
        let folder = tempfile::Builder::new().prefix("tipme-selftest-").tempdir().context("cannot make a folder")?;
        let places = Places { folder };
        for path in [places.site(), places.home(), places.state()] {
            std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        Ok(places)
    }

    /// What fault and application share.
    fn site(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    /// The application's settings.
    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The recorder's.
    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }
}

impl Observation {
    /// A trial in which the product failed: nothing was found, whatever was done.
    pub(super) fn failed(error: &anyhow::Error) -> Observation {
        let verdict = Err(format!("{error:#}"));
        Observation::without_incident(verdict, Duration::ZERO, InjectedCauses::default(), Latency::default())
    }

    pub(super) fn without_incident(
        verdict: Result<Value, String>,
        diagnosis: Duration,
        injected: InjectedCauses,
        latency: Latency,
    ) -> Self {
        Observation { verdict, diagnosis, injected, latency, incident: PathBuf::new(), folder: None }
    }

    /// Whether there is a file to be kept.
    pub(super) fn has_incident(&self) -> bool {
        self.folder.is_some()
    }
}
