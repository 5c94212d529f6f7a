// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the mark key according to the desktop, and the remedy if it does not work.

/// State of the mark key in this session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyState {
    /// The desktop runs the command on each press.
    Works(String),
    /// The desktop reads the binding at the start of the next session.
    AtNextLogin(String),
    /// The settings have the key, but it has no effect: reason and remedy.
    Idle(String),
    /// No key is bound; the remedy.
    Missing(String),
    /// Known only to the agent, which has called the desktop's portal.
    OfAgent,
}

impl KeyState {
    /// Describes the key in the wording that the agent uses.
    pub fn words(&self) -> String {
        match self {
            KeyState::Works(key) => format!("{key} marks"),
            KeyState::AtNextLogin(key) => format!("{key} marks {AT_NEXT_LOGIN}"),
            KeyState::Idle(why) | KeyState::Missing(why) => format!("no key marks: {why}"),
            KeyState::OfAgent => "a shortcut of the desktop marks".to_owned(),
        }
    }

    /// Returns the reason why no press marks now, with the remedy; `None` if one does, or if only
    /// the agent knows.
    pub fn hindrance(&self) -> Option<String> {
        match self {
            KeyState::Works(_) | KeyState::OfAgent => None,
            KeyState::AtNextLogin(_) => Some(self.words()),
            KeyState::Idle(why) | KeyState::Missing(why) => Some(why.clone()),
        }
    }
}

/// Note about a key that the desktop reads at login, and the alternative until then.
const AT_NEXT_LOGIN: &str = "after the next login; until then, run: tipme mark";
