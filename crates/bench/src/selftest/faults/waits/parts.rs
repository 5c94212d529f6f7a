// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes that an application of ours is told to run into: an order for it, and the jobs behind it.

use crate::process::Process;
use crate::selftest::fault::{Injected, InjectedCause, Injection, Site};
use crate::selftest::operations::{self, DoneOrder};
use crate::session::first_line;
use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a job may take to be in place.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The site of a trial, to keep.
pub struct TrialSite {
    pub folder: PathBuf,
    pub cpu: usize,
    pub display: u32,
    pub authority: PathBuf,
    helper: crate::hidden::Helper,
}

impl TrialSite {
    pub fn new(site: &Site<'_>) -> TrialSite {
        TrialSite {
            folder: site.folder.to_path_buf(),
            cpu: site.cpu,
            display: site.display,
            authority: site.authority.to_path_buf(),
            helper: site.helper.clone(),
        }
    }

    /// A path in the trial's folder, as a word of an order.
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// The command of a hidden program, which runs under the name `alias`.
    pub fn command(&self, alias: &str, words: &[&str]) -> Result<Command> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        self.helper.command(Some(&self.folder.join(alias)), &words)
    }

    /// Starts a hidden program under a name and waits until it is in place.
    pub fn job(&self, alias: &str, words: &[&str]) -> Result<Job> {
        Job::start(alias, self.command(alias, words)?, None)
    }

    /// Makes a named pipe; its path.
    pub fn pipe(&self, name: &str) -> Result<String> {
        let path = self.path(name);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).with_context(|| format!("cannot make {path}"))?;
        Ok(path)
    }

    /// Makes an empty file; its path.
    pub fn file(&self, name: &str) -> Result<String> {
        let path = self.path(name);
        std::fs::write(&path, "").with_context(|| format!("cannot write {path}"))?;
        Ok(path)
    }
}

/// A hidden program that is in place.
pub struct Job {
    process: Process,
    /// What it said when it was in place.
    pub said: String,
}

impl Job {
    /// Starts a command, on one CPU only where `cpu` names one, and waits until it says that it is in place.
    pub(super) fn start(name: &str, command: Command, cpu: Option<usize>) -> Result<Job> {
        Job::start_saying("ready", name, command, cpu)
    }

    /// As [`Job::start`], for a program whose first line begins with another word.
    pub(super) fn start_saying(word: &str, name: &str, mut command: Command, cpu: Option<usize>) -> Result<Job> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Process::start(name, command, cpu)?;
        let output = process.child().stdout.take().with_context(|| format!("{name} has no output"))?;
        let line = first_line(output, TIMEOUT).with_context(|| format!("{name} is not in place"))?;
        let said = line.strip_prefix(word);
        let said = said.with_context(|| format!("{name} is not in place; its message stands above"))?;
        Ok(Job { said: said.trim().to_string(), process })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Who keeps the application waiting.
pub(super) enum Culprit {
    /// The process that carries out the order.
    Application,
    Processes(Vec<u32>),
    /// The process whose number the application leaves in a file.
    Noted(PathBuf),
    /// A process that is also known by its address.
    Service(u32, String),
}

/// One cause, in place.
pub struct Part {
    pub(super) order: String,
    pub(super) culprit: Culprit,
    /// They end with it.
    pub(super) _jobs: Vec<Job>,
}

impl Part {
    /// The application is told to do something by itself.
    pub(super) fn alone(order: String) -> Part {
        Part { order, culprit: Culprit::Application, _jobs: Vec::new() }
    }

    /// The application is told to do something for which it needs the first of the jobs.
    pub(super) fn with(order: String, jobs: Vec<Job>) -> Part {
        let culprit = Culprit::Processes(jobs.iter().take(1).map(Job::pid).collect());
        Part { order, culprit, _jobs: jobs }
    }

    /// What was done, by the application's own account.
    fn cause(&self, order: &DoneOrder) -> Result<InjectedCause> {
        let (pids, names) = match &self.culprit {
            Culprit::Application => (vec![order.pid], Vec::new()),
            Culprit::Processes(pids) => (pids.clone(), Vec::new()),
            Culprit::Noted(path) => (vec![noted(path)?], Vec::new()),
            Culprit::Service(pid, address) => (vec![*pid], vec![address.clone()]),
        };
        Ok(InjectedCause { pids, names, ms: Some(order.done.since(order.begun).millis()) })
    }
}

fn noted(path: &Path) -> Result<u32> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| format!("\"{text}\" is not a process"))
}

/// Puts a cause in place that delays the application by about so many milliseconds.
pub type Make = fn(&TrialSite, u32) -> Result<Part>;

/// Causes, one after the other.
pub struct OrderedCauses {
    site: TrialSite,
    makes: &'static [(Make, u32)],
    parts: Vec<Part>,
}

impl OrderedCauses {
    /// Prepares causes, each with its milliseconds.
    pub fn prepare(site: &Site<'_>, makes: &'static [(Make, u32)]) -> Result<Box<dyn Injection>> {
        Ok(Box::new(OrderedCauses { site: TrialSite::new(site), makes, parts: Vec::new() }))
    }
}

impl Injection for OrderedCauses {
    fn begin(&mut self, _: u32) -> Result<()> {
        for (make, millis) in self.makes {
            self.parts.push(make(&self.site, *millis)?);
        }
        let orders: Vec<String> = self.parts.iter().map(|part| part.order.clone()).collect();
        operations::order(&self.site.folder, &orders)
    }

    fn end(&mut self) -> Result<Injected> {
        let parts = std::mem::take(&mut self.parts);
        let done_orders = operations::done_orders(&self.site.folder)?;
        if done_orders.len() != parts.len() {
            bail!("{} of {} orders were carried out", done_orders.len(), parts.len());
        }
        let causes = parts
            .iter()
            .zip(&done_orders)
            .map(|(part, order)| part.cause(order))
            .collect::<Result<Vec<InjectedCause>>>()?;
        Ok(Injected { causes })
    }
}
