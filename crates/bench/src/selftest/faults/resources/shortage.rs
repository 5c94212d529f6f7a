// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shortage as a fault: where it takes place, what is in effect, and how its jobs are started.

use crate::hidden::Helper;
use crate::process::Process;
use crate::selftest::disk::PrivateDisk;
use crate::selftest::fault::{Injected, InjectedCause, Injection, Site};
use crate::selftest::jobs::noted;
use crate::selftest::{operations, patient};
use crate::session::first_line;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a delay shall be, in milliseconds.
pub(super) const DELAY_MS: &str = "700";
/// How long a job may take to be in place.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
/// Where the application leaves how long it was delayed.
pub(super) const NOTE: &str = "delay";

/// Where a fault takes place, and how its jobs are started.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    helper: Helper,
    pub(super) cpu: usize,
}

impl Place {
    fn of(site: &Site<'_>) -> Place {
        Place { folder: site.folder.to_path_buf(), helper: site.helper.clone(), cpu: site.cpu }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The command of a hidden program, whose process is called `name`.
    pub(super) fn command(&self, name: &str, words: &[&str]) -> Result<Command> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        self.helper.command(Some(&self.path(name)), &words)
    }

    /// Starts a hidden program and waits until it is in place; what it says then comes along.
    pub(super) fn start(&self, name: &str, words: &[&str], cpu: Option<usize>) -> Result<(Process, String)> {
        start(name, self.command(name, words)?, cpu)
    }

    /// An order that leaves its delay in a file.
    pub(super) fn order(&self, name: &str, words: &[&str]) -> String {
        let note = text(&self.path(NOTE));
        [name, &note, DELAY_MS].into_iter().chain(words.iter().copied()).collect::<Vec<&str>>().join(" ")
    }

    /// The process that obeys the orders, where there is one: an editor or browser obeys none.
    pub(super) fn worker(&self) -> Result<Option<u32>> {
        patient::worker(&self.folder)
    }

    /// The application and the process that obeys.
    pub(super) fn family(&self, app: u32) -> Result<Vec<u32>> {
        let worker = self.worker()?.filter(|worker| *worker != app);
        Ok([app].into_iter().chain(worker).collect())
    }

    /// How long the application was delayed: as it noted itself, or by the length of what it did.
    pub(super) fn delay_ms(&self) -> Result<Option<f64>> {
        if let Some(noted) = noted(&self.path(NOTE))? {
            return Ok(Some(noted.millis()));
        }
        let done_orders = operations::done_orders(&self.folder)?;
        Ok(done_orders.last().map(|order| order.done.since(order.begun).millis()))
    }
}

/// Paths of trials hold plain letters only.
pub(super) fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Starts a program and waits until it says `ready`, `writing` or the like; the rest of that line.
pub(super) fn start(name: &str, mut command: Command, cpu: Option<usize>) -> Result<(Process, String)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut process = Process::start(name, command, cpu)?;
    let output = process.child().stdout.take().with_context(|| format!("{name} has no output"))?;
    let line = first_line(output, TIMEOUT).with_context(|| format!("{name} did not begin"))?;
    match line.trim().split_once(' ').unwrap_or((line.trim(), "")) {
        ("ready" | "writing", rest) => Ok((process, rest.to_string())),
        _ => bail!("{name} did not begin; its message stands above"),
    }
}

/// A command behind other words, such as those that enter a name space.
pub(super) fn behind(prefix: &[OsString], inner: &Command) -> Result<Command> {
    let (first, rest) = prefix.split_first().context("no words to put before a command")?;
    let mut command = Command::new(first);
    command.args(rest).arg(inner.get_program()).args(inner.get_args());
    Ok(command)
}

/// What is in effect after a fault has begun.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) jobs: Vec<Process>,
    /// For the application, at its next key.
    pub(super) orders: Vec<String>,
    pub(super) culprits: Vec<u32>,
    /// Culprits that are no process.
    pub(super) names: Vec<String>,
}

impl Scene {
    /// A job that is the culprit, and what the application shall do.
    pub(super) fn with(job: Process, order: String) -> Scene {
        Scene { culprits: vec![job.pid()], jobs: vec![job], orders: vec![order], ..Scene::default() }
    }
}

/// One kind of shortage, prepared.
pub(super) trait Shortage {
    /// Starts the jobs.
    fn begin(&mut self, place: &Place, app: u32) -> Result<Scene>;

    /// Called when everything is in effect and the orders are given, right before the key.
    fn release(&mut self, _place: &Place) -> Result<()> {
        Ok(())
    }

    /// Called when the jobs have ended: takes back what was done to the application. Culprits that are
    /// only known now are returned.
    fn end(&mut self) -> Vec<u32> {
        Vec::new()
    }
}

/// A shortage as a fault. The jobs end before what they stand on.
struct Shortfall<S> {
    scene: Option<Scene>,
    shortage: S,
    place: Place,
}

/// Makes a fault of a shortage.
pub(super) fn shortfall<S: Shortage + 'static>(site: &Site<'_>, shortage: S) -> Box<dyn Injection> {
    Box::new(Shortfall { scene: None, shortage, place: Place::of(site) })
}

impl<S: Shortage> Injection for Shortfall<S> {
    fn begin(&mut self, app: u32) -> Result<()> {
        let scene = self.scene.insert(self.shortage.begin(&self.place, app)?);
        if !scene.orders.is_empty() {
            operations::order(&self.place.folder, &scene.orders)?;
        }
        self.shortage.release(&self.place)
    }

    fn end(&mut self) -> Result<Injected> {
        let Scene { jobs, mut culprits, names, .. } = self.scene.take().context("the fault has not begun")?;
        drop(jobs);
        culprits.extend(self.shortage.end());
        let ms = self.place.delay_ms()?;
        Ok(Injected { causes: vec![InjectedCause { pids: culprits, names, ms }] })
    }
}

/// A mebibyte that no file system takes for a hole.
pub(super) fn block() -> Vec<u8> {
    vec![0x5a; 1 << 20]
}

/// Fills the queue of a disk for so many seconds, by a process of this name.
pub(super) fn fill_queue(place: &Place, disk: &PrivateDisk, name: &str, seconds: &str) -> Result<Process> {
    let writers = place.command(name, &["writers", &text(&disk.inside("")), seconds])?;
    Ok(start(name, behind(&disk.prefix(), &writers)?, None)?.0)
}
