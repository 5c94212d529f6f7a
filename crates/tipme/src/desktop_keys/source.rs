// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the keys of a Wayland session come from, and what they do now.

use super::by_hand::{self, CompositorFile};
use super::{DesktopKeys, KeyState};
use tipme_desktop::hotkeys::Bindings;
use tipme_desktop::portal;

/// The first way to a key that this session has: settings that tipme writes work at once and can be read back, a
/// portal answers what it likes.
#[derive(Clone, Copy, Debug)]
pub enum KeySource {
    /// The settings of the desktop, which `tipme setup` writes.
    Settings(DesktopKeys),
    /// A configuration that only its owner writes.
    File(&'static CompositorFile),
    /// The portal, which the agent asks.
    Portal,
    /// None that is known.
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

    /// The desktop, as people call it.
    pub fn name(self) -> &'static str {
        match self {
            KeySource::Settings(desktop) => desktop.name(),
            KeySource::File(file) => file.name,
            KeySource::Portal | KeySource::Unknown => "this desktop",
        }
    }

    /// Where its keys are looked up.
    pub fn settings(self) -> String {
        match self {
            KeySource::File(file) => format!("the configuration of {}", file.name),
            _ => format!("the settings of {}", self.name()),
        }
    }

    /// What the key that marks does now.
    pub fn state(self, bindings: &Bindings, agent: &[String]) -> KeyState {
        match self {
            KeySource::Settings(desktop) => desktop.state(),
            KeySource::File(file) if file.has_key() => KeyState::Works(format!("the key of tipme in {}", file.name)),
            KeySource::Portal => KeyState::OfAgent,
            KeySource::File(_) | KeySource::Unknown => {
                let by_hand = self.by_hand(bindings, agent);
                KeyState::Missing(format!("{} has no key for tipme; {by_hand}", self.name()))
            }
        }
    }

    /// The one thing to do where no key can be bound by tipme.
    pub fn by_hand(self, bindings: &Bindings, agent: &[String]) -> String {
        let Some(key) = by_hand::mark(bindings, agent) else { return "choose a key that marks".to_owned() };
        match self {
            KeySource::File(file) => file.advice(&key),
            _ => by_hand::any_desktop(&key),
        }
    }
}
