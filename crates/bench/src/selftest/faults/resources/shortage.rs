// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shortage as a fault: what is in effect, and what the application is told to do.

use crate::process::ProcessGroup;
use crate::selftest::disk::PrivateDisk;
use crate::selftest::fault::{InjectedCause, InjectedCauses, PreparedFault};
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
pub(super) struct ShortageEffects {
    pub(super) jobs: Vec<ProcessGroup>,
    /// For the application, at its next key.
    pub(super) orders: Vec<String>,
    pub(super) culprits: Vec<u32>,
    /// Culprits that are no process.
    pub(super) names: Vec<String>,
}

impl ShortageEffects {
    /// A job that is the culprit, and what the application shall do.
    pub(super) fn with(job: ProcessGroup, order: String) -> ShortageEffects {
        ShortageEffects {
            culprits: vec![job.pid()],
            jobs: vec![job],
            orders: vec![order],
            ..ShortageEffects::default()
        }
    }
}

/// One kind of shortage, prepared.
pub(super) trait Shortage {
    /// Starts the jobs.
    fn begin(&mut self, site: &Site, app: u32) -> Result<ShortageEffects>;

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
    effects: Option<ShortageEffects>,
    shortage: S,
    site: Site,
}

/// Makes a fault of a shortage.
pub(super) fn shortfall<S: Shortage + 'static>(site: &Site, shortage: S) -> Box<dyn PreparedFault> {
    Box::new(Shortfall { effects: None, shortage, site: site.clone() })
}

impl<S: Shortage> PreparedFault for Shortfall<S> {
    fn begin(&mut self, app: u32) -> Result<()> {
        let effects = self.effects.insert(self.shortage.begin(&self.site, app)?);
        if !effects.orders.is_empty() {
            operations::order(&self.site.folder, &effects.orders)?;
        }
        self.shortage.release(&self.site)
    }

    fn end(&mut self) -> Result<InjectedCauses> {
        let ShortageEffects { jobs, mut culprits, names, .. } =
            self.effects.take().context("the fault has not begun")?;
        drop(jobs);
        culprits.extend(self.shortage.end());
        let ms = delay_ms(&self.site)?;
        Ok(InjectedCauses { causes: vec![InjectedCause { pids: culprits, names, ms }] })
    }
}

/// A mebibyte that no file system takes for a hole.
pub(super) fn block() -> Vec<u8> {
    vec![0x5a; 1 << 20]
}

/// Fills the queue of a disk for so many seconds, by a process of this name.
pub(super) fn fill_queue(site: &Site, disk: &PrivateDisk, name: &str, seconds: &str) -> Result<ProcessGroup> {
    let writers = site.command(name, &["writers", &text(&disk.inside("")), seconds])?;
    Ok(worker::start(name, worker::behind(&disk.prefix(), &writers)?, None, START_TIMEOUT)?.process)
}
