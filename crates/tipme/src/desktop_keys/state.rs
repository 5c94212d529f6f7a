// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the key works, as the desktop itself says, and the one thing that helps where it does not.

/// The key that marks in this session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyState {
    /// The desktop runs the command with each press.
    Works(String),
    /// The desktop reads the binding when the next session begins.
    AtNextLogin(String),
    /// The settings have the key, and it does nothing: why, and the remedy.
    Idle(String),
    /// No key is bound; the remedy.
    Missing(String),
    /// Only the agent knows, which asked the desktop's portal.
    OfAgent,
}

impl KeyState {
    /// What the key does, as an agent says it.
    pub fn words(&self) -> String {
        match self {
            KeyState::Works(key) => format!("{key} marks"),
            KeyState::AtNextLogin(key) => format!("{key} marks {AT_NEXT_LOGIN}"),
            KeyState::Idle(why) | KeyState::Missing(why) => format!("no key marks: {why}"),
            KeyState::OfAgent => "a shortcut of the desktop marks".to_owned(),
        }
    }

    /// Why no press marks now, with the remedy; `None` where one does, or where the agent knows.
    pub fn hindrance(&self) -> Option<String> {
        match self {
            KeyState::Works(_) | KeyState::OfAgent => None,
            KeyState::AtNextLogin(_) => Some(self.words()),
            KeyState::Idle(why) | KeyState::Missing(why) => Some(why.clone()),
        }
    }
}

/// When a key counts that the desktop reads at login, and what to do until then.
const AT_NEXT_LOGIN: &str = "from the next login on; until then: tipme mark";
