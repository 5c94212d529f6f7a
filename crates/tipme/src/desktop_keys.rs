// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys in the settings of a Wayland desktop, for those desktops that lend keys to no program: each key is bound to
//! a command that has the session's agent do what the key is for.

mod by_hand;
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
pub use settings::{MADE, folder_of, put};
pub use source::KeySource;
pub use state::KeyState;

use anyhow::Result;

/// A desktop whose settings bind keys to commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DesktopKeys {
    Sway,
    Gnome,
    Kde,
}

impl DesktopKeys {
    /// All of them.
    pub const ALL: [DesktopKeys; 3] = [DesktopKeys::Sway, DesktopKeys::Gnome, DesktopKeys::Kde];

    /// The desktop of this session, where it is one of these.
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

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            DesktopKeys::Sway => "sway",
            DesktopKeys::Gnome => "GNOME",
            DesktopKeys::Kde => "KDE",
        }
    }

    /// Whether its settings have a key that marks.
    pub fn is_bound(self) -> bool {
        let key = match self {
            DesktopKeys::Sway => sway::mark_key(),
            DesktopKeys::Gnome => gnome::mark_key(),
            DesktopKeys::Kde => kde::mark_key(),
        };
        key.is_some()
    }

    /// What it does with the key that marks.
    pub fn state(self) -> KeyState {
        let missing = || KeyState::Missing(format!("{} has no key for tipme; run: tipme setup", self.name()));
        let state = match self {
            DesktopKeys::Sway => sway::state(),
            DesktopKeys::Gnome => gnome::state(),
            DesktopKeys::Kde => kde::state(),
        };
        state.unwrap_or_else(missing)
    }

    /// Whether its settings have just these keys.
    pub fn has(self, keys: &KeyBindings) -> bool {
        match self {
            DesktopKeys::Sway => sway::has(keys),
            DesktopKeys::Gnome => gnome::has(keys),
            DesktopKeys::Kde => kde::has(keys),
        }
    }

    /// Puts these keys into its settings; what tipme had there before goes.
    ///
    /// # Errors
    /// Where the settings cannot be written, or the desktop refuses.
    pub fn bind(self, keys: &KeyBindings) -> Result<()> {
        match self {
            DesktopKeys::Sway => sway::bind(keys),
            DesktopKeys::Gnome => gnome::bind(keys),
            DesktopKeys::Kde => kde::bind(keys),
        }
    }

    /// Takes out of its settings what tipme has put there.
    ///
    /// # Errors
    /// Where the settings cannot be written, or the desktop refuses.
    pub fn unbind(self) -> Result<()> {
        match self {
            DesktopKeys::Sway => sway::unbind(),
            DesktopKeys::Gnome => gnome::unbind(),
            DesktopKeys::Kde => kde::unbind(),
        }
    }
}
