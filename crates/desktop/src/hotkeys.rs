// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys: grabs on the root window of an X display.
//!
//! A key is grabbed with every combination of Caps Lock and Num Lock, on every keycode that gives
//! its symbol, the keypad's included. What another program holds is left to it, and named: the others are held
//! nevertheless. When the server goes away the grabs are made again as soon as it is back.

mod held;

use crate::clock;
use crate::connect::Target;
use crate::error::Error;
use crate::keymap::{Keymap, symbols};
use held::Held;
use std::str::FromStr;
use std::time::Duration;
use tipme_record::Nanos;
use x11rb::protocol::xproto::{Keycode, ModMask};

/// Time between two attempts to reach a server that went away.
const RETRY: Nanos = Nanos::from_millis(500);

/// What a hot key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Start recording.
    Start,
    /// "It was bad just now."
    Mark,
    /// Stop the recording of input.
    StopKeys,
    /// Restart the recording of input.
    StartKeys,
}

impl Action {
    /// All actions.
    pub const ALL: [Action; 4] = [Action::Start, Action::Mark, Action::StopKeys, Action::StartKeys];

    /// What the key is for, in words.
    pub fn purpose(self) -> &'static str {
        match self {
            Action::Start => "start recording",
            Action::Mark => "mark",
            Action::StopKeys => "stop the recording of input",
            Action::StartKeys => "restart the recording of input",
        }
    }
}

/// A key with the modifiers that must be held, as in `ctrl+alt+minus`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chord {
    text: String,
    pub(crate) modifiers: ModMask,
    pub(crate) symbols: Vec<u32>,
}

impl FromStr for Chord {
    type Err = Error;

    /// Reads modifiers and a key joined by `+`, in any case: `Ctrl+Alt+Minus`, `super+f12`.
    fn from_str(text: &str) -> Result<Chord, Error> {
        let lower = text.to_lowercase();
        let bad = |reason: String| Error::BadChord { text: text.to_string(), reason };
        let (held, key) = lower.rsplit_once('+').unwrap_or(("", &lower));
        let symbols = symbols(key).ok_or_else(|| bad(format!("there is no key \"{key}\"")))?;
        let mut modifiers = ModMask::from(0u16);
        for name in held.split('+').filter(|name| !name.is_empty()) {
            modifiers |= modifier(name).ok_or_else(|| bad(format!("there is no modifier \"{name}\"")))?;
        }
        Ok(Chord { text: lower, modifiers, symbols })
    }
}

impl std::fmt::Display for Chord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
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

/// Which key does what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bindings(pub Vec<(Action, Chord)>);

impl Default for Bindings {
    fn default() -> Bindings {
        let texts = ["ctrl+alt+plus", "ctrl+alt+minus", "ctrl+alt+0", "ctrl+alt+1"];
        let chords = texts.iter().map(|text| text.parse().expect("default hot keys are well formed"));
        Bindings(Action::ALL.into_iter().zip(chords).collect())
    }
}

impl Bindings {
    /// Gives an action another key.
    pub fn set(&mut self, action: Action, chord: Chord) {
        self.0.retain(|(known, _)| *known != action);
        self.0.push((action, chord));
    }
}

/// What [`HotKeys::next`] tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A hot key was pressed; `at` is when the press was taken from the socket.
    Pressed { action: Action, at: Nanos },
    /// The server is gone, for the reason given; attempts to reach it go on.
    Lost(String),
    /// The server is back and the keys are grabbed again, those that can be had.
    Restored,
    /// The keyboard has changed, and with it which keys can be had.
    Changed,
}

/// A hot key that cannot be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub action: Action,
    pub chord: Chord,
    pub why: Why,
}

/// Why a hot key cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The keyboard has no such key.
    Missing,
    /// Another program holds all of its places.
    Taken,
    /// Another program holds the place where people press it; it works elsewhere, as on the keypad.
    MainTaken,
    /// Another program holds it on the keypad only.
    KeypadTaken,
}

/// Grabbed keys and the connection that holds them.
pub struct HotKeys {
    target: Target,
    bindings: Bindings,
    held: Option<Held>,
    retry_at: Nanos,
}

impl HotKeys {
    /// Grabs the keys of `bindings` that can be had; [`HotKeys::refusals`] names the others.
    ///
    /// # Errors
    /// Where the display cannot be used.
    pub fn grab(target: &Target, bindings: Bindings) -> Result<HotKeys, Error> {
        let held = Some(Held::take(target, &bindings)?);
        Ok(HotKeys { target: target.clone(), bindings, held, retry_at: Nanos(0) })
    }

    /// The keys that cannot be had now.
    pub fn refusals(&self) -> &[Refusal] {
        self.held.as_ref().map_or(&[], Held::refusals)
    }

    /// The keys by which an action can be asked for, the one that was asked for first before others.
    pub fn keys(&self, action: Action) -> Vec<&Chord> {
        let refused = |chord: &Chord| {
            let of_it = |refusal: &&Refusal| refusal.action == action && refusal.chord == *chord;
            self.refusals().iter().find(of_it).is_some_and(|refusal| matches!(refusal.why, Why::Missing | Why::Taken))
        };
        let bound = self.bindings.0.iter().filter(|(known, chord)| *known == action && !refused(chord));
        bound.map(|(_, chord)| chord).collect()
    }

    /// Gives an action one more key, where that one is free and has no other meaning; whether it has it now.
    ///
    /// # Errors
    /// Where the display cannot be used.
    pub fn add(&mut self, action: Action, chord: Chord) -> Result<bool, Error> {
        let Some(held) = &mut self.held else { return Ok(false) };
        if self.bindings.0.iter().any(|(_, known)| *known == chord) {
            return Ok(false);
        }
        self.bindings.0.push((action, chord));
        held.grab_all(&self.bindings)?;
        if held.refusals().iter().all(|refusal| Some(&refusal.chord) != self.bindings.0.last().map(|(_, last)| last)) {
            return Ok(true);
        }
        self.bindings.0.pop();
        held.grab_all(&self.bindings).map(|_| false)
    }

    /// Waits for a hot key, at most until `timeout` has passed.
    ///
    /// # Errors
    /// Those that do not pass by themselves: the new server refuses the connection.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Event>, Error> {
        let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
        let Some(held) = &mut self.held else { return self.restore(deadline) };
        match held.next(deadline, &self.bindings) {
            Err(error) if error.passes() => {
                self.held = None;
                self.retry_at = clock::now().after(RETRY);
                Ok(Some(Event::Lost(error.to_string())))
            }
            other => other,
        }
    }

    fn restore(&mut self, deadline: Nanos) -> Result<Option<Event>, Error> {
        std::thread::sleep(Duration::from_nanos(self.retry_at.min(deadline).since(clock::now()).0));
        if clock::now() < self.retry_at {
            return Ok(None);
        }
        self.retry_at = clock::now().after(RETRY);
        match Held::take(&self.target, &self.bindings) {
            Ok(held) => self.held = Some(held),
            Err(error) if error.passes() => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(Event::Restored))
    }
}

/// Keycodes and modifiers that stand for a chord: a symbol on a shifted place counts with Shift and without.
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
        assert_eq!(chord.to_string(), "ctrl+alt+minus");
        assert!("f12".parse::<Chord>().is_ok());
    }

    #[test]
    fn a_wrong_chord_says_what_is_wrong() {
        let text = |chord: &str| chord.parse::<Chord>().err().map(|error| error.to_string());
        assert_eq!(
            text("hyper+minus").as_deref(),
            Some("cannot read hot key \"hyper+minus\": there is no modifier \"hyper\"; write it like ctrl+alt+minus")
        );
        assert!(text("ctrl+").is_some_and(|text| text.contains("there is no key \"\"")));
    }

    #[test]
    fn defaults_cover_every_action() {
        let Bindings(bindings) = Bindings::default();
        assert_eq!(bindings.iter().map(|(action, _)| *action).collect::<Vec<_>>(), Action::ALL);
    }
}
