// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults that any application runs into without being told: its display is busy, or it is stopped.
//!
//! How long the key took is seen on the screen.

use crate::selftest::fault::{InjectedCause, InjectedCauses, PreparedFault};
use crate::selftest::site::{DisplayServer, Site};
use crate::selftest::workers::Stopped;
use crate::worker::Ready;
use anyhow::{Result, bail};

/// How long each of the requests keeps the server busy.
const REQUEST_MS: &str = "700";
/// The key waits behind the first, what the application draws behind the second.
const REQUESTS: &str = "2";
/// How long the server is grabbed, or the application stopped.
const HELD_MS: &str = "760";

/// A job that was begun, and nothing else.
struct Begun<F> {
    site: Site,
    begin: F,
    job: Option<Ready>,
    stopped: Option<Stopped>,
}

impl<F: Fn(&Site, u32) -> Result<(Ready, Option<Stopped>)>> PreparedFault for Begun<F> {
    fn begin(&mut self, app: u32) -> Result<()> {
        let (job, stopped) = (self.begin)(&self.site, app)?;
        (self.job, self.stopped) = (Some(job), stopped);
        Ok(())
    }

    fn end(&mut self) -> Result<InjectedCauses> {
        self.stopped = None;
        let pids = self.job.take().iter().map(Ready::pid).collect();
        Ok(InjectedCauses { causes: vec![InjectedCause { pids, ..InjectedCause::default() }] })
    }
}

fn prepare<F>(site: &Site, begin: F) -> Result<Box<dyn PreparedFault>>
where
    F: Fn(&Site, u32) -> Result<(Ready, Option<Stopped>)> + 'static,
{
    Ok(Box::new(Begun { site: site.clone(), begin, job: None, stopped: None }))
}

pub(super) fn server_busy(site: &Site) -> Result<Box<dyn PreparedFault>> {
    prepare(site, |site, _| Ok((client(site, "chart-painter", "x-flood", &[REQUEST_MS, REQUESTS])?, None)))
}

pub(super) fn server_grab(site: &Site) -> Result<Box<dyn PreparedFault>> {
    prepare(site, |site, _| Ok((client(site, "screen-shooter", "x-grab", &[HELD_MS])?, None)))
}

fn client(site: &Site, alias: &str, program: &str, words: &[&str]) -> Result<Ready> {
    let DisplayServer::X11 { number, authority } = &site.display else { bail!("this takes an X display") };
    let (display, authority) = (number.to_string(), authority.to_string_lossy());
    site.start(alias, &[&[program, &display, &*authority], words].concat(), None)
}

/// The job stops the process that takes the keys, and lets it go on after a time.
pub(super) fn stopped(site: &Site) -> Result<Box<dyn PreparedFault>> {
    prepare(site, |site, app| stop(site, site.patient()?.unwrap_or(app)))
}

/// The same to the compositor.
pub(super) fn compositor_stopped(site: &Site) -> Result<Box<dyn PreparedFault>> {
    prepare(site, |site, _| match site.display {
        DisplayServer::Wayland { compositor } => stop(site, compositor),
        DisplayServer::X11 { .. } => bail!("this takes a compositor of Wayland"),
    })
}

fn stop(site: &Site, pid: u32) -> Result<(Ready, Option<Stopped>)> {
    let stopped = Stopped::by_another(pid)?;
    let job = site.start("power-saver", &["stopper", &pid.to_string(), HELD_MS], None)?;
    Ok((job, Some(stopped)))
}
