// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent's place on its display: there is one, or a press would mark twice.

use anyhow::{Result, bail};
use tipme_control::journal;
use tipme_desktop::DisplayTarget;
use tipme_desktop::presence::{AgentPresence, window_manager};

pub struct AgentPlace {
    presence: AgentPresence,
    target: DisplayTarget,
}

impl AgentPlace {
    /// # Errors
    /// Where another agent has it, or the display cannot be used.
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

    /// Lets `tipme status` know.
    pub fn say(&self, keys: &str) {
        if let Err(error) = self.presence.say(keys) {
            journal::warning(format!("{error}; tipme status does not know the keys")).tell();
        }
    }

    /// Who holds a key cannot be asked for; mostly it is this.
    pub fn window_manager(&self) -> Option<String> {
        window_manager(&self.target).ok().flatten()
    }
}
