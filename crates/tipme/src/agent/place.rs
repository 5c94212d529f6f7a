// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent's claim on its display. It is unique: with two agents, one press would mark twice.

use anyhow::{Result, bail};
use tipme_control::journal;
use tipme_desktop::DisplayTarget;
use tipme_desktop::presence::{AgentPresence, window_manager};

pub struct AgentPlace {
    presence: AgentPresence,
    target: DisplayTarget,
}

impl AgentPlace {
    /// Claims the display.
    ///
    /// # Errors
    /// Fails if another agent has claimed it, or the display is unusable.
    pub fn take(target: &DisplayTarget) -> Result<AgentPlace> {
        match AgentPresence::claim(target)? {
            Ok(presence) => Ok(AgentPlace { presence, target: target.clone() }),
            Err(other) => bail!(
                "another agent (process {}) serves display :{} already: {}; end it first: kill {0}",
                other.pid,
                target.display,
                other.words
            ),
        }
    }

    /// Publishes the keys for `tipme status`.
    pub fn publish(&self, keys: &str) {
        if let Err(error) = self.presence.describe(keys) {
            journal::warning(format!("{error}; tipme status cannot show the keys")).tell();
        }
    }

    /// Returns the window manager. X11 does not reveal the owner of a grab, but it usually is this
    /// one.
    pub fn window_manager(&self) -> Option<String> {
        window_manager(&self.target).ok().flatten()
    }
}
