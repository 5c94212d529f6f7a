// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is managed, for whom, and by which means.

use crate::connections::are_connected;
use crate::display::{AttendedDisplay, DisplayAddress, knows_clients};
use crate::session;
use crate::state::StateDir;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use tipme_control::journal;
use tipme_policy::{Backend, Identity, Strength};
use tipme_sched::{Config, DesktopOwner, Offer, processes};

/// Whether the helper is asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum UseHelper {
    /// Not by root; by others the one in `/run/tipme`, if it answers and these cannot do better by themselves.
    #[default]
    Auto,
    Never,
    /// The one in this folder, or the manager does not begin.
    In(PathBuf),
}

/// How to manage.
#[derive(Clone, Debug)]
pub struct ManageOptions {
    pub strength: Strength,
    /// `None`: the best that can be used.
    pub backend: Option<Backend>,
    /// As in `:0` and `wayland-0`; `None`: that of the session, or the only one.
    pub display: Option<String>,
    /// The folder of the recorder, which tells of compositors.
    pub recorder: PathBuf,
    /// Only processes below this one are changed.
    pub under: Option<u32>,
    /// A control group (version 2) that was delegated to tipme.
    pub cgroup: Option<PathBuf>,
    pub state: StateDir,
    /// Read ahead: the memory of the sets used last, and at login the files of the programs used last.
    pub predict: bool,
    /// Who turns the knobs that this user may not.
    pub helper: UseHelper,
}

/// What was found at the start, and stays.
pub(crate) struct Setting {
    pub(crate) proc: PathBuf,
    pub(crate) address: DisplayAddress,
    /// As in `:0` and `wayland-0`.
    pub(crate) display: String,
    pub(crate) user: u32,
    pub(crate) under: Option<Identity>,
    pub(crate) backend: Backend,
    pub(crate) server_knows: bool,
    /// The process in which connections to the display end; `None` where that is another one than listens.
    pub(crate) server: Option<u32>,
    /// What cannot be done, and why.
    pub(crate) missing: Vec<String>,
}

impl Setting {
    pub(crate) fn find(
        options: &ManageOptions,
        address: DisplayAddress,
        attention: &AttendedDisplay,
    ) -> Result<Setting> {
        let proc = PathBuf::from("/proc");
        let parts = attention.core();
        let user = session::user(&proc, parts.server_pid, parts.manager)?;
        let below = |pid| processes::identity(&proc, pid).with_context(|| format!("there is no process {pid}"));
        let under = options.under.map(below).transpose()?;
        let desktop = DesktopOwner { user, window_manager: parts.manager };
        let (backend, missing) = choose(options, &proc, desktop)?;
        let (server_knows, display) = (knows_clients(&address)?, address.to_string());
        // The manager is a client itself, so it knows how a connection looks.
        let seen = are_connected(&proc, std::process::id(), parts.server_pid) == Some(true);
        let server = seen.then_some(parts.server_pid);
        Ok(Setting { proc, address, display, user, under, backend, server_knows, server, missing })
    }

    pub(crate) fn config(&self, options: &ManageOptions) -> Config {
        Config {
            backend: self.backend,
            strength: options.strength,
            proc: self.proc.clone(),
            cgroup: options.cgroup.clone(),
            journal: options.state.journal(),
            owner: Some(self.user),
            under: self.under,
        }
    }

    /// Whether a process is one of those that may be changed.
    pub(crate) fn may_change(&self, who: Identity) -> bool {
        let own = processes::read(&self.proc, who.pid).is_some_and(|now| now.identity == who && now.uid == self.user);
        own && self.under.is_none_or(|top| processes::is_below(&self.proc, who, top))
    }

    /// Says on the error output what cannot be done without root.
    pub(crate) fn tell_missing(&self) {
        if rustix::process::geteuid().is_root() {
            return;
        }
        let can = match self.backend {
            Backend::Systemd | Backend::Cgroup => "only groups that belong to you are weighed",
            Backend::Autogroup | Backend::Nice => "nobody can be favoured, only the greedy can be held back",
        };
        journal::warning(format!("without root {can}; run: sudo tipme manage")).tell();
        for missing in &self.missing {
            journal::warning(missing).tell();
        }
    }
}

/// The back end that is asked for, else the best that can be used; and what cannot be done. Where none can be
/// used, for want of rights, that of nice values goes on with what is left.
///
/// # Errors
/// Where the one that is asked for cannot be used.
fn choose(options: &ManageOptions, proc: &Path, desktop: DesktopOwner) -> Result<(Backend, Vec<String>)> {
    let offers = tipme_sched::offers(proc, options.cgroup.as_deref(), Some(desktop));
    let usable = offers.iter().find(|offer| offer.unusable.is_none()).map(|offer| offer.backend);
    let backend = options.backend.or(usable).unwrap_or(Backend::Nice);
    let Some(chosen) = offers.iter().find(|offer| offer.backend == backend) else {
        bail!("this machine has no back end {backend}")
    };
    if let Some(why) = chosen.unusable.as_ref().filter(|_| backend != Backend::Nice) {
        bail!("cannot use the back end {backend}: {why}");
    }
    let better = offers.iter().take_while(|offer| offer.backend != backend);
    let passed = better.filter(|_| options.backend.is_none()).filter_map(fault);
    let mut missing: Vec<String> = passed.chain(fault(chosen)).collect();
    missing.extend(chosen.limits.iter().cloned());
    Ok((backend, missing))
}

fn fault(offer: &Offer) -> Option<String> {
    Some(format!("{}: {}", offer.backend, offer.unusable.as_ref()?))
}
