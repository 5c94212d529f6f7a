// SPDX-License-Identifier: MIT OR Apache-2.0
//! The managed display, its user, and the backend.

use crate::connections::are_connected;
use crate::display::{AttendedDisplay, DisplayAddress, knows_clients};
use crate::session;
use crate::state::StateDir;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use tipme_control::journal;
use tipme_policy::{Backend, Identity, Strength};
use tipme_sched::{Config, DesktopOwner, Offer, processes};

/// Use of the helper.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum UseHelper {
    /// Root uses none; other users use the one in `/run/tipme` if it answers and they cannot do
    /// better themselves.
    #[default]
    Auto,
    Never,
    /// The helper in this folder is required.
    In(PathBuf),
}

/// Options of the manager.
#[derive(Clone, Debug)]
pub struct ManageOptions {
    pub strength: Strength,
    /// `None` selects the best usable one.
    pub backend: Option<Backend>,
    /// A name such as `:0` or `wayland-0`; `None` selects that of the session, or the only one.
    pub display: Option<String>,
    /// Folder of the recorder, which reports the focus on compositors.
    pub recorder: PathBuf,
    /// Restricts changes to descendants of this process.
    pub under: Option<u32>,
    /// A control group (version 2) delegated to tipme.
    pub cgroup: Option<PathBuf>,
    pub state: StateDir,
    /// Prefetch memory of the most recently used sets and, at login, files of the most recently
    /// used programs.
    pub predict: bool,
    /// Helper for knobs that this user may not change.
    pub helper: UseHelper,
}

/// Settings found at the start that never change.
pub(crate) struct Setting {
    pub(crate) proc: PathBuf,
    pub(crate) address: DisplayAddress,
    /// A name such as `:0` or `wayland-0`.
    pub(crate) display: String,
    pub(crate) user: u32,
    pub(crate) under: Option<Identity>,
    pub(crate) backend: Backend,
    pub(crate) server_knows: bool,
    /// Process that accepts connections to the display; `None` if it is not the one that listens.
    pub(crate) server: Option<u32>,
    /// Unavailable functions, with reasons.
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
        let under = options.under.map(|pid| {
            processes::identity(&proc, pid).with_context(|| format!("there is no process {pid}"))
        });
        let under = under.transpose()?;
        let desktop = DesktopOwner { user, window_manager: parts.manager };
        let (backend, missing) = choose(options, &proc, desktop)?;
        let (server_knows, display) = (knows_clients(&address)?, address.to_string());
        // The manager is a client itself, so its own connection shows what is visible.
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

    /// Returns `true` if a process may be changed.
    pub(crate) fn may_change(&self, who: Identity) -> bool {
        let own = processes::read(&self.proc, who.pid)
            .is_some_and(|now| now.identity == who && now.uid == self.user);
        own && self.under.is_none_or(|top| processes::is_below(&self.proc, who, top))
    }

    /// Reports on standard error what is unavailable without root.
    pub(crate) fn report_missing(&self) {
        if rustix::process::geteuid().is_root() {
            return;
        }
        let can = match self.backend {
            Backend::Systemd | Backend::Cgroup => "only groups that belong to you are weighed",
            Backend::Autogroup | Backend::Nice => {
                "no program can be favoured; hogs can only be held back"
            }
        };
        journal::warning(format!("without root {can}; run: sudo tipme manage")).tell();
        for missing in &self.missing {
            journal::warning(missing).tell();
        }
    }
}

/// Chooses the requested backend, or else the best usable one; also returns its limits. If none is
/// usable for lack of privileges, falls back to nice values with reduced function.
///
/// # Errors
/// Fails if the requested backend is unusable.
fn choose(
    options: &ManageOptions,
    proc: &Path,
    desktop: DesktopOwner,
) -> Result<(Backend, Vec<String>)> {
    let offers = tipme_sched::offers(proc, options.cgroup.as_deref(), Some(desktop));
    let usable = offers.iter().find(|offer| offer.unusable.is_none()).map(|offer| offer.backend);
    let backend = options.backend.or(usable).unwrap_or(Backend::Nice);
    let Some(chosen) = offers.iter().find(|offer| offer.backend == backend) else {
        bail!("this machine has no backend {backend}")
    };
    if let Some(why) = chosen.unusable.as_ref().filter(|_| backend != Backend::Nice) {
        bail!("cannot use the backend {backend}: {why}");
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
