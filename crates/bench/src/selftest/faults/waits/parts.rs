// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes that an application of ours is told to run into: an order for it, and the jobs behind it.

use crate::selftest::fault::{InjectedCause, InjectedCauses, PreparedFault};
use crate::selftest::operations::{self, DoneOrder};
use crate::selftest::site::Site;
use crate::worker::Ready;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Length of a cause that is the only one, and of each of several.
const ALONE_MS: u32 = 700;
const EACH_MS: u32 = 400;

/// Who keeps the application waiting.
pub(super) enum WaitCulprit {
    /// The process that carries out the order.
    Application,
    Processes(Vec<u32>),
    /// The process whose number the application leaves in a file.
    Noted(PathBuf),
    /// A process that is also known by its address.
    Service(u32, String),
}

/// One cause, in place.
pub(crate) struct PreparedCause {
    pub(super) order: String,
    pub(super) culprit: WaitCulprit,
    /// They end with it.
    pub(super) _jobs: Vec<Ready>,
}

impl PreparedCause {
    /// The application is told to do something by itself.
    pub(super) fn alone(order: String) -> PreparedCause {
        PreparedCause { order, culprit: WaitCulprit::Application, _jobs: Vec::new() }
    }

    /// The application is told to do something for which it needs the first of the jobs.
    pub(super) fn with(order: String, jobs: Vec<Ready>) -> PreparedCause {
        let culprit = WaitCulprit::Processes(jobs.iter().take(1).map(Ready::pid).collect());
        PreparedCause { order, culprit, _jobs: jobs }
    }

    /// What was done, by the application's own account.
    fn cause(&self, order: &DoneOrder) -> Result<InjectedCause> {
        let (pids, names) = match &self.culprit {
            WaitCulprit::Application => (vec![order.pid], Vec::new()),
            WaitCulprit::Processes(pids) => (pids.clone(), Vec::new()),
            WaitCulprit::Noted(path) => (vec![noted(path)?], Vec::new()),
            WaitCulprit::Service(pid, address) => (vec![*pid], vec![address.clone()]),
        };
        Ok(InjectedCause { pids, names, ms: Some(order.done.since(order.begun).millis()) })
    }
}

fn noted(path: &Path) -> Result<u32> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| format!("\"{text}\" is not a process"))
}

/// Puts a cause in place that delays the application by about so many milliseconds.
pub(super) type Make = fn(&Site, u32) -> Result<PreparedCause>;

/// Causes, one after the other.
pub(crate) struct OrderedCauses {
    site: Site,
    makes: &'static [Make],
    parts: Vec<PreparedCause>,
}

impl OrderedCauses {
    pub(crate) fn prepare(site: &Site, makes: &'static [Make]) -> Result<Box<dyn PreparedFault>> {
        Ok(Box::new(OrderedCauses { site: site.clone(), makes, parts: Vec::new() }))
    }
}

impl PreparedFault for OrderedCauses {
    fn begin(&mut self, _: u32) -> Result<()> {
        let millis = if self.makes.len() > 1 { EACH_MS } else { ALONE_MS };
        for make in self.makes {
            self.parts.push(make(&self.site, millis)?);
        }
        let orders: Vec<String> = self.parts.iter().map(|part| part.order.clone()).collect();
        operations::order(&self.site.folder, &orders)
    }

    fn end(&mut self) -> Result<InjectedCauses> {
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
        Ok(InjectedCauses { causes })
    }
}
