// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bindings of keys to actions.

use crate::error::DisplayError;
use crate::keymap::{Keymap, symbols};
use std::str::FromStr;
use x11rb::protocol::xproto::{Keycode, ModMask};

/// Action of a hot key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HotKeyAction {
    /// Start recording.
    Start,
    /// "It was bad just now."
    Mark,
    /// Stop the recording of input.
    StopKeys,
    /// Restart the recording of input.
    StartKeys,
}

impl HotKeyAction {
    /// All actions.
    pub const ALL: [HotKeyAction; 4] =
        [HotKeyAction::Start, HotKeyAction::Mark, HotKeyAction::StopKeys, HotKeyAction::StartKeys];

    /// Name at the portal, on the message bus, and in the settings of a desktop.
    pub fn name(self) -> &'static str {
        match self {
            HotKeyAction::Start => "start",
            HotKeyAction::Mark => "mark",
            HotKeyAction::StopKeys => "stop-input",
            HotKeyAction::StartKeys => "restart-input",
        }
    }

    /// Returns the action of this name.
    pub fn named(name: &str) -> Option<HotKeyAction> {
        HotKeyAction::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Description for users.
    pub fn purpose(self) -> &'static str {
        match self {
            HotKeyAction::Start => "start recording",
            HotKeyAction::Mark => "mark",
            HotKeyAction::StopKeys => "stop the recording of input",
            HotKeyAction::StartKeys => "restart the recording of input",
        }
    }
}

/// A key with its modifiers, written as in `Ctrl+Alt+Minus`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chord {
    pub(super) text: String,
    pub(crate) modifiers: ModMask,
    pub(crate) symbols: Vec<u32>,
}

impl FromStr for Chord {
    type Err = DisplayError;

    /// Parses modifiers and a key joined by `+`, in any case: `Ctrl+Alt+Minus`, `super+f12`.
    fn from_str(text: &str) -> Result<Chord, DisplayError> {
        let lower = text.to_lowercase();
        let bad = |reason: String| DisplayError::BadChord { text: text.to_string(), reason };
        let (held, key) = lower.rsplit_once('+').unwrap_or(("", &lower));
        let symbols = symbols(key).ok_or_else(|| bad(format!("there is no key \"{key}\"")))?;
        let mut modifiers = ModMask::from(0u16);
        for name in held.split('+').filter(|name| !name.is_empty()) {
            modifiers |=
                modifier(name).ok_or_else(|| bad(format!("there is no modifier \"{name}\"")))?;
        }
        Ok(Chord { text: spelled(modifiers, key), modifiers, symbols })
    }
}

impl std::fmt::Display for Chord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the canonical spelling of a chord for users: `Ctrl+Alt+Minus`, `Super+F12`.
fn spelled(modifiers: ModMask, key: &str) -> String {
    const NAMES: [(ModMask, &str); 4] = [
        (ModMask::CONTROL, "Ctrl+"),
        (ModMask::M1, "Alt+"),
        (ModMask::SHIFT, "Shift+"),
        (ModMask::M4, "Super+"),
    ];
    let held = NAMES.iter().filter(|(mask, _)| modifiers.contains(*mask)).map(|(_, name)| *name);
    let words = key.split('_').map(|word| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    });
    held.collect::<String>() + &words.collect::<Vec<_>>().join("_")
}

fn modifier(name: &str) -> Option<ModMask> {
    match name {
        "ctrl" | "control" => Some(ModMask::CONTROL),
        "alt" => Some(ModMask::M1),
        "shift" => Some(ModMask::SHIFT),
        "super" | "win" => Some(ModMask::M4),
        _ => None,
    }
}

/// Bindings of keys to actions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bindings(pub Vec<(HotKeyAction, Chord)>);

impl Default for Bindings {
    fn default() -> Bindings {
        let texts = ["ctrl+alt+plus", "ctrl+alt+minus", "ctrl+alt+0", "ctrl+alt+1"];
        let chords =
            texts.iter().map(|text| text.parse().expect("default hot keys are well formed"));
        Bindings(HotKeyAction::ALL.into_iter().zip(chords).collect())
    }
}

impl Bindings {
    /// Replaces the key of an action.
    pub fn set(&mut self, action: HotKeyAction, chord: Chord) {
        self.0.retain(|(known, _)| *known != action);
        self.0.push((action, chord));
    }
}

/// Returns keycodes and modifiers for a chord: a symbol on the shifted level counts with Shift and
/// without.
pub(crate) fn wanted(keymap: &Keymap, chord: &Chord) -> Vec<(Keycode, ModMask)> {
    let mut found = Vec::new();
    for key in chord.symbols.iter().flat_map(|symbol| keymap.keys(*symbol)) {
        let mut masks = vec![chord.modifiers];
        if key.shifted {
            masks.push(chord.modifiers | ModMask::SHIFT);
        }
        found.extend(masks.into_iter().map(|mask| (key.code, mask)));
    }
    found.sort_by_key(|(code, mask)| (*code, u16::from(*mask)));
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chords_are_read() {
        let chord: Chord = "Ctrl+Alt+Minus".parse().expect("well formed");
        assert_eq!(chord.modifiers, ModMask::CONTROL | ModMask::M1);
        assert_eq!(chord.symbols, vec![0x2d, 0xffad]);
        assert!("f12".parse::<Chord>().is_ok());
    }

    #[test]
    fn a_chord_has_one_spelling_however_it_was_written() {
        for (text, spelling) in [
            ("ctrl+alt+minus", "Ctrl+Alt+Minus"),
            ("Alt+Control+MINUS", "Ctrl+Alt+Minus"),
            ("CTRL+ALT+minus", "Ctrl+Alt+Minus"),
            ("win+f12", "Super+F12"),
            ("shift+m", "Shift+M"),
            ("page_up", "Page_Up"),
            ("ctrl+0", "Ctrl+0"),
        ] {
            let chord: Chord = text.parse().expect("a chord");
            assert_eq!(chord.to_string(), spelling);
            assert_eq!(spelling.parse::<Chord>().ok(), Some(chord), "it can be read again");
        }
    }

    #[test]
    fn the_error_of_a_wrong_chord_names_the_wrong_part() {
        let modifier = "hyper+minus".parse::<Chord>().expect_err("no such modifier");
        assert_eq!(
            modifier.to_string(),
            "cannot read hot key \"hyper+minus\": there is no modifier \"hyper\"; \
             write it like Ctrl+Alt+Minus"
        );
        let key = "ctrl+".parse::<Chord>().expect_err("no key");
        assert!(key.to_string().contains("there is no key \"\""), "{key}");
    }

    #[test]
    fn defaults_cover_every_action() {
        let Bindings(bindings) = Bindings::default();
        assert_eq!(
            bindings.iter().map(|(action, _)| *action).collect::<Vec<_>>(),
            HotKeyAction::ALL
        );
    }
}
