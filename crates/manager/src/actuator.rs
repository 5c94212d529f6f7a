// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies knobs, in this process or through the helper if this process lacks the privileges.

mod helper_client;

use crate::helper_service::messages::{AppliedCounts, Explained, Terms};
use crate::setting::{ManageOptions, Setting, UseHelper};
use anyhow::{Result, bail};
use helper_client::HelperClient;
use std::path::PathBuf;
use tipme_control::DEFAULT_STATE_DIR;
use tipme_policy::{Action, Backend, Identity, Strength};
use tipme_record::Nanos;
use tipme_sched::{Mechanism, Restored, processes};

/// Applies the policy's actions, locally or through the helper.
pub(crate) enum Actuator {
    Local(Box<Mechanism>),
    Remote(Box<HelperClient>),
}

/// Result of the search for a helper. The helper session is opened later, once its terms are known.
pub(crate) enum Found {
    Helper(Box<HelperClient>),
    /// No helper, with the reason if one was expected.
    None(Option<String>),
}

/// Finds the helper to use.
///
/// # Errors
/// Fails if the user named a helper and it does not answer.
pub(crate) fn find(options: &ManageOptions) -> Result<Found> {
    let dir = match &options.helper {
        UseHelper::Never => return Ok(Found::None(None)),
        UseHelper::Auto if options.backend.is_some_and(is_of_groups) => {
            return Ok(Found::None(None));
        }
        UseHelper::Auto if rustix::process::geteuid().is_root() => return Ok(Found::None(None)),
        UseHelper::Auto => PathBuf::from(DEFAULT_STATE_DIR),
        UseHelper::In(dir) => dir.clone(),
    };
    match HelperClient::find(&dir) {
        Ok(client) => Ok(Found::Helper(Box::new(client))),
        Err(why) if options.helper != UseHelper::Auto => bail!(why),
        Err(why) => Ok(Found::None(Some(why))),
    }
}

impl Found {
    pub(crate) fn is_helper(&self) -> bool {
        matches!(self, Found::Helper(_))
    }
}

impl Actuator {
    /// Opens the mechanism, locally or at the helper, and updates the setting accordingly. Also
    /// returns the number of leftover changes that were restored first.
    ///
    /// # Errors
    /// Fails if neither can be opened.
    pub(crate) fn open(
        options: &ManageOptions,
        found: Found,
        setting: &mut Setting,
        server: u32,
    ) -> Result<(Actuator, Restored)> {
        let why = match found {
            Found::None(why) => why,
            // Users set the weights of their own groups without a helper, also across sessions.
            Found::Helper(_) if is_left_to_choice(options) && is_of_groups(setting.backend) => None,
            Found::Helper(mut client) => match client.open(terms(options, setting, server)) {
                Ok(opened) => {
                    (setting.backend, setting.missing) = (opened.backend, opened.missing);
                    return Ok((Actuator::Remote(client), opened.restored));
                }
                Err(why) if options.helper != UseHelper::Auto || options.backend.is_some() => {
                    bail!(why)
                }
                Err(why) => Some(why),
            },
        };
        setting.missing.extend(why.map(|why| format!("helper: {why}")));
        let (mechanism, restored) = Mechanism::open(setting.config(options))?;
        Ok((Actuator::Local(Box::new(mechanism)), restored))
    }

    /// Returns the PID of the helper.
    pub(crate) fn helper(&self) -> Option<u32> {
        match self {
            Actuator::Local(_) => None,
            Actuator::Remote(client) => Some(client.helper()),
        }
    }

    /// Returns the reason why nothing can be changed at the moment.
    pub(crate) fn trouble(&self) -> Option<String> {
        match self {
            Actuator::Local(_) => None,
            Actuator::Remote(client) => client.trouble(),
        }
    }

    /// Tries to reach a lost helper again. Returns `true` if there is a new helper session, in
    /// which nothing is assigned yet.
    pub(crate) fn revive(&mut self, now: Nanos) -> bool {
        match self {
            Actuator::Local(_) => false,
            Actuator::Remote(client) => client.revive(now),
        }
    }

    /// Same as [`Mechanism::apply`].
    pub(crate) fn apply(&mut self, actions: &[Action]) -> AppliedCounts {
        match self {
            Actuator::Local(mechanism) => mechanism.apply(actions).into(),
            Actuator::Remote(client) => client.apply(actions),
        }
    }

    /// Same as [`Mechanism::set_strength`].
    pub(crate) fn set_strength(&mut self, strength: Strength) -> AppliedCounts {
        match self {
            Actuator::Local(mechanism) => mechanism.set_strength(strength).into(),
            Actuator::Remote(client) => client.set_strength(strength),
        }
    }

    /// Same as [`Mechanism::explain`].
    pub(crate) fn explain(&mut self, who: Identity) -> Option<Explained> {
        match self {
            Actuator::Local(mechanism) => mechanism.explain(who).map(Explained::from),
            Actuator::Remote(client) => client.explain(who),
        }
    }

    /// Same as [`Mechanism::restore`].
    pub(crate) fn restore(&mut self) -> Restored {
        match self {
            Actuator::Local(mechanism) => mechanism.restore(),
            Actuator::Remote(client) => client.restore(),
        }
    }
}

fn is_left_to_choice(options: &ManageOptions) -> bool {
    options.helper == UseHelper::Auto && options.backend.is_none()
}

fn is_of_groups(backend: Backend) -> bool {
    matches!(backend, Backend::Systemd | Backend::Cgroup)
}

/// Returns the terms of the helper session. They name the display server if it runs as another
/// user.
fn terms(options: &ManageOptions, setting: &Setting, server: u32) -> Terms {
    let server = processes::read(&setting.proc, server)
        .filter(|server| server.uid != setting.user)
        .map(|server| server.identity);
    Terms {
        strength: options.strength,
        backend: options.backend,
        owner: Some(setting.user),
        under: setting.under,
        server,
    }
}
