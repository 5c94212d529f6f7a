// SPDX-License-Identifier: MIT OR Apache-2.0
//! Origin of the keys in a Wayland session, and their state.

use super::by_hand::{self, CompositorFile};
use super::{DesktopKeys, KeyState};
use tipme_desktop::hotkeys::Bindings;
use tipme_desktop::portal;

/// The preferred source of keys in this session. Settings written by tipme take effect at once and
/// can be read back, unlike the choices of a portal.
#[derive(Clone, Copy, Debug)]
pub enum KeySource {
    /// Settings of the desktop, written by `tipme setup`.
    Settings(DesktopKeys),
    /// A configuration that only the user edits.
    File(&'static CompositorFile),
    /// The portal, called by the agent.
    Portal,
    /// No known source.
    Unknown,
}

impl KeySource {
    pub fn of_session() -> KeySource {
        let names = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
        match (DesktopKeys::of_session(), CompositorFile::named(&names)) {
            (Some(desktop), _) => KeySource::Settings(desktop),
            (None, Some(file)) => KeySource::File(file),
            (None, None) if portal::is_offered() => KeySource::Portal,
            (None, None) => KeySource::Unknown,
        }
    }

    /// Returns the desktop's usual name.
    pub fn name(self) -> &'static str {
        match self {
            KeySource::Settings(desktop) => desktop.name(),
            KeySource::File(file) => file.name,
            KeySource::Portal | KeySource::Unknown => "this desktop",
        }
    }

    /// Returns the place in which its keys are set.
    pub fn settings(self) -> String {
        match self {
            KeySource::File(file) => format!("the configuration of {}", file.name),
            _ => format!("the settings of {}", self.name()),
        }
    }

    /// Returns the present state of the mark key.
    pub fn state(self, bindings: &Bindings, agent: &[String]) -> KeyState {
        match self {
            KeySource::Settings(desktop) => desktop.state(),
            KeySource::File(file) if file.has_key() => {
                KeyState::Works(format!("the key of tipme in {}", file.name))
            }
            _ if by_hand::has_marked() => KeyState::Works("the key bound by hand".to_owned()),
            KeySource::Portal => KeyState::OfAgent,
            KeySource::File(_) | KeySource::Unknown => {
                let by_hand = self.by_hand(bindings, agent);
                KeyState::Missing(format!("{} has no key for tipme; {by_hand}", self.name()))
            }
        }
    }

    /// Returns the manual step for a desktop on which tipme cannot bind keys.
    pub fn by_hand(self, bindings: &Bindings, agent: &[String]) -> String {
        let Some(key) = by_hand::mark(bindings, agent) else {
            return "choose a key that marks".to_owned();
        };
        match self {
            KeySource::File(file) => file.advice(&key),
            _ => by_hand::any_desktop(&key),
        }
    }
}
