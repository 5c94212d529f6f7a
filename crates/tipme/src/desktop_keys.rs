// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys in the settings of a Wayland desktop, for desktops without a usable portal: each key is
//! bound to a command that triggers the session's agent.

pub mod by_hand;
mod gnome;
mod kde;
mod keys;
mod names;
mod settings;
mod source;
mod state;
mod sway;

pub use keys::{KeyBindings, agent_words};
pub use names::spelled;
pub use settings::{HEADER, user_folder, write_file};
pub use source::KeySource;
pub use state::KeyState;

use anyhow::Result;

/// A desktop with settings that bind keys to commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DesktopKeys {
    Sway,
    Gnome,
    Kde,
}

impl DesktopKeys {
    /// All supported desktops.
    pub const ALL: [DesktopKeys; 3] = [DesktopKeys::Sway, DesktopKeys::Gnome, DesktopKeys::Kde];

    /// Returns the desktop of this session, if it is one of these.
    pub fn of_session() -> Option<DesktopKeys> {
        if std::env::var_os("SWAYSOCK").is_some_and(|socket| !socket.is_empty()) {
            return Some(DesktopKeys::Sway);
        }
        let names = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
        names.split(':').find_map(|name| match name.to_lowercase().as_str() {
            "sway" => Some(DesktopKeys::Sway),
            "gnome" => Some(DesktopKeys::Gnome),
            "kde" => Some(DesktopKeys::Kde),
            _ => None,
        })
    }

    /// Returns the desktop's usual name.
    pub fn name(self) -> &'static str {
        match self {
            DesktopKeys::Sway => "sway",
            DesktopKeys::Gnome => "GNOME",
            DesktopKeys::Kde => "KDE",
        }
    }

    /// Returns the mark key in its settings, in its own spelling.
    pub fn mark_key(self) -> Option<String> {
        match self {
            DesktopKeys::Sway => sway::mark_key(),
            DesktopKeys::Gnome => gnome::mark_key(),
            DesktopKeys::Kde => kde::mark_key(),
        }
    }

    /// Returns the state of the mark key in this desktop.
    pub fn state(self) -> KeyState {
        let state = match self {
            DesktopKeys::Sway => sway::state(),
            DesktopKeys::Gnome => gnome::state(),
            DesktopKeys::Kde => kde::state(),
        };
        state.unwrap_or_else(|| {
            KeyState::Missing(format!("{} has no key for tipme; run: tipme setup", self.name()))
        })
    }

    /// Returns `true` if its settings have exactly these keys.
    pub fn has(self, keys: &KeyBindings) -> bool {
        match self {
            DesktopKeys::Sway => sway::has(keys),
            DesktopKeys::Gnome => gnome::has(keys),
            DesktopKeys::Kde => kde::has(keys),
        }
    }

    /// Writes these keys into its settings, in place of earlier ones of tipme.
    ///
    /// # Errors
    /// Fails if the settings cannot be written, or the desktop refuses.
    pub fn bind(self, keys: &KeyBindings) -> Result<()> {
        match self {
            DesktopKeys::Sway => sway::bind(keys),
            DesktopKeys::Gnome => gnome::bind(keys),
            DesktopKeys::Kde => kde::bind(keys),
        }
    }

    /// Removes all keys of tipme from its settings.
    ///
    /// # Errors
    /// Fails if the settings cannot be written, or the desktop refuses.
    pub fn unbind(self) -> Result<()> {
        match self {
            DesktopKeys::Sway => sway::unbind(),
            DesktopKeys::Gnome => gnome::unbind(),
            DesktopKeys::Kde => kde::unbind(),
        }
    }
}
