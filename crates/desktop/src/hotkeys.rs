// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys: grabs on the root window of an X display.
//!
//! A key is grabbed with every combination of Caps Lock and Num Lock, on every keycode that gives
//! its symbol, the keypad's included. When the server goes away the grabs are made again as soon
//! as it is back.

use crate::clock;
use crate::connect::{Connection, Target};
use crate::error::Error;
use crate::keymap::{Keymap, symbols};
use std::str::FromStr;
use std::time::Duration;
use tipme_record::Nanos;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{ConnectionExt as _, Grab, GrabMode, KeyPressEvent, Keycode, Mapping, ModMask};
use x11rb::protocol::{ErrorKind, Event as Message};

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
    /// The server is back and the keys are grabbed again.
    Restored,
}

/// Grabbed keys and the connection that holds them.
pub struct HotKeys {
    target: Target,
    bindings: Bindings,
    held: Option<Held>,
    retry_at: Nanos,
}

impl HotKeys {
    /// Grabs all keys of `bindings`, or none: an error names the key that another program holds.
    pub fn grab(target: &Target, bindings: Bindings) -> Result<HotKeys, Error> {
        let held = Some(Held::take(target, &bindings)?);
        Ok(HotKeys { target: target.clone(), bindings, held, retry_at: Nanos(0) })
    }

    /// Waits for a hot key, at most until `timeout` has passed.
    ///
    /// Errors are those that do not pass by themselves: a key that was free is taken when the server
    /// is back, or the new server refuses the connection.
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

/// One grabbed key.
#[derive(Clone, PartialEq, Eq)]
struct Grabbed {
    code: Keycode,
    modifiers: ModMask,
    action: Action,
}

/// A connection with its grabs.
struct Held {
    connection: Connection,
    grabbed: Vec<Grabbed>,
    num_lock: ModMask,
    /// Keycode and server time of the last release: a press at the same time is the keyboard's repeat.
    released: Option<(Keycode, u32)>,
}

impl Held {
    fn take(target: &Target, bindings: &Bindings) -> Result<Held, Error> {
        let connection = Connection::open(target)?;
        let mut held = Held { connection, grabbed: Vec::new(), num_lock: ModMask::from(0u16), released: None };
        held.grab_all(bindings)?;
        Ok(held)
    }

    /// Grabs what the bindings are on the keyboard of now; nothing happens where that is held already.
    ///
    /// A server tells of a new mapping whenever another keyboard is used, and a press in between two
    /// grabs would be lost.
    fn grab_all(&mut self, bindings: &Bindings) -> Result<(), Error> {
        let keymap = Keymap::load(&self.connection)?;
        let (num_lock, places) = (keymap.num_lock(), self.places(&keymap, bindings)?);
        if (num_lock, &places) == (self.num_lock, &self.grabbed) {
            return Ok(());
        }
        self.release()?;
        self.num_lock = num_lock;
        for place in places {
            self.grab_one(&place, bindings)?;
            self.grabbed.push(place);
        }
        Ok(())
    }

    /// Where the keys of the bindings are; an error names the first that the keyboard lacks.
    fn places(&self, keymap: &Keymap, bindings: &Bindings) -> Result<Vec<Grabbed>, Error> {
        let mut places = Vec::new();
        for (action, chord) in &bindings.0 {
            let found = wanted(keymap, chord);
            if found.is_empty() {
                return Err(Error::NoKey { display: self.connection.display(), key: chord.to_string() });
            }
            places.extend(found.into_iter().map(|(code, modifiers)| Grabbed { code, modifiers, action: *action }));
        }
        Ok(places)
    }

    fn grab_one(&self, place: &Grabbed, bindings: &Bindings) -> Result<(), Error> {
        let (wire, root) = (self.connection.wire(), self.connection.root());
        let mut cookies = Vec::new();
        for lock in [ModMask::from(0u16), ModMask::LOCK, self.num_lock, ModMask::LOCK | self.num_lock] {
            let (mask, mode) = (place.modifiers | lock, GrabMode::ASYNC);
            let sent = wire.grab_key(false, root, mask, place.code, mode, mode);
            cookies.push(sent.map_err(|error| self.connection.failed(error))?);
        }
        for cookie in cookies {
            cookie.check().map_err(|error| self.refused(error, place.action, bindings))?;
        }
        Ok(())
    }

    fn refused(&self, error: ReplyError, action: Action, bindings: &Bindings) -> Error {
        let taken = matches!(&error, ReplyError::X11Error(refusal) if refusal.error_kind == ErrorKind::Access);
        match bindings.0.iter().find(|(known, _)| *known == action) {
            Some((_, chord)) if taken => Error::Taken { display: self.connection.display(), key: chord.to_string() },
            _ => self.connection.failed(error),
        }
    }

    fn next(&mut self, deadline: Nanos, bindings: &Bindings) -> Result<Option<Event>, Error> {
        while let Some(message) = self.connection.event(deadline)? {
            match message {
                Message::KeyPress(press) => {
                    if let Some(action) = self.action(&press) {
                        return Ok(Some(Event::Pressed { action, at: clock::now() }));
                    }
                }
                Message::KeyRelease(release) => self.released = Some((release.detail, release.time)),
                Message::MappingNotify(change) if change.request != Mapping::POINTER => self.grab_all(bindings)?,
                _ => {}
            }
        }
        Ok(None)
    }

    fn release(&mut self) -> Result<(), Error> {
        self.grabbed.clear();
        let sent = self.connection.wire().ungrab_key(Grab::ANY, self.connection.root(), ModMask::ANY);
        sent.map_err(|error| self.connection.failed(error))?.ignore_error();
        Ok(())
    }

    fn action(&self, press: &KeyPressEvent) -> Option<Action> {
        if self.released == Some((press.detail, press.time)) {
            return None;
        }
        let ignored = u16::from(ModMask::LOCK | self.num_lock);
        let state = u16::from(press.state) & 0xff & !ignored;
        let fits = |grabbed: &&Grabbed| grabbed.code == press.detail && u16::from(grabbed.modifiers) == state;
        self.grabbed.iter().find(fits).map(|grabbed| grabbed.action)
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
