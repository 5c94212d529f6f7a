// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shortage as a fault: what is in effect, and what the application is told to do.

use crate::process::Process;
use crate::selftest::disk::PrivateDisk;
use crate::selftest::fault::{Injected, InjectedCause, Injection};
use crate::selftest::operations;
use crate::selftest::site::{START_TIMEOUT, Site, text};
use crate::selftest::workers::noted;
use crate::worker;
use anyhow::{Context, Result};

/// How long a delay shall be, in milliseconds.
pub(super) const DELAY_MS: &str = "700";
/// Where the application leaves how long it was delayed.
pub(super) const NOTE: &str = "delay";

/// An order that leaves its delay in a file.
pub(super) fn order(site: &Site, name: &str, words: &[&str]) -> String {
    let note = site.word(NOTE);
    [name, &note, DELAY_MS].into_iter().chain(words.iter().copied()).collect::<Vec<&str>>().join(" ")
}

/// How long the application was delayed: as it noted itself, or by the length of what it did.
fn delay_ms(site: &Site) -> Result<Option<f64>> {
    if let Some(noted) = noted(&site.path(NOTE))? {
        return Ok(Some(noted.millis()));
    }
    let done_orders = operations::done_orders(&site.folder)?;
    Ok(done_orders.last().map(|order| order.done.since(order.begun).millis()))
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
    fn begin(&mut self, site: &Site, app: u32) -> Result<Scene>;

    /// Called when everything is in effect and the orders are given, right before the key.
    fn release(&mut self, _site: &Site) -> Result<()> {
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
    site: Site,
}

/// Makes a fault of a shortage.
pub(super) fn shortfall<S: Shortage + 'static>(site: &Site, shortage: S) -> Box<dyn Injection> {
    Box::new(Shortfall { scene: None, shortage, site: site.clone() })
}

impl<S: Shortage> Injection for Shortfall<S> {
    fn begin(&mut self, app: u32) -> Result<()> {
        let scene = self.scene.insert(self.shortage.begin(&self.site, app)?);
        if !scene.orders.is_empty() {
            operations::order(&self.site.folder, &scene.orders)?;
        }
        self.shortage.release(&self.site)
    }

    fn end(&mut self) -> Result<Injected> {
        let Scene { jobs, mut culprits, names, .. } = self.scene.take().context("the fault has not begun")?;
        drop(jobs);
        culprits.extend(self.shortage.end());
        let ms = delay_ms(&self.site)?;
        Ok(Injected { causes: vec![InjectedCause { pids: culprits, names, ms }] })
    }
}

/// A mebibyte that no file system takes for a hole.
pub(super) fn block() -> Vec<u8> {
    vec![0x5a; 1 << 20]
}

/// Fills the queue of a disk for so many seconds, by a process of this name.
pub(super) fn fill_queue(site: &Site, disk: &PrivateDisk, name: &str, seconds: &str) -> Result<Process> {
    let writers = site.command(name, &["writers", &text(&disk.inside("")), seconds])?;
    Ok(worker::start(name, worker::behind(&disk.prefix(), &writers)?, None, START_TIMEOUT)?.process)
}
