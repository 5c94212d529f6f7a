// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connection to a display with its grabs.

use super::bindings::{Bindings, Chord, HotKeyAction, wanted};
use crate::clock;
use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use crate::keymap::Keymap;
use std::os::fd::BorrowedFd;
use tipme_record::Nanos;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::{
    ConnectionExt as _, Grab, GrabMode, KeyPressEvent, Keycode, Mapping, ModMask,
};
use x11rb::protocol::{ErrorKind, Event as Message};

/// Event of [`HotKeys::next`](super::HotKeys::next).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HotKeyEvent {
    /// A hot key was pressed; `at` is the time of reading the event from the socket.
    Pressed { action: HotKeyAction, at: Nanos },
    /// The server does not answer, for the reason given; reconnection attempts continue.
    Lost(String),
    /// The server is gone, for the reason given. No more keys will come.
    Gone(String),
    /// The server answers again, and the available keys are grabbed again.
    Restored,
    /// The keyboard has changed, and with it the available keys.
    Changed,
}

/// A hot key that is not available.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HotKeyRefusal {
    pub action: HotKeyAction,
    pub chord: Chord,
    pub why: RefusalReason,
}

/// Reason of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalReason {
    /// The keyboard has no such key.
    Missing,
    /// Another program holds all of its positions.
    Taken,
    /// Another program holds the position that people usually press; it works elsewhere, as on the
    /// keypad.
    MainTaken,
    /// Another program holds it on the keypad only.
    KeypadTaken,
}

/// One position of a hot key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct KeyPlace {
    code: Keycode,
    modifiers: ModMask,
    /// Its index in the bindings.
    binding: usize,
    /// The usual position, not on the keypad.
    main: bool,
}

pub(super) struct GrabbedKeys {
    connection: DisplayConnection,
    /// All positions of the bindings on this keyboard, whether grabbed or not.
    places: Vec<KeyPlace>,
    /// `true` for each position that is grabbed.
    had: Vec<bool>,
    /// Number of bindings that the positions belong to.
    count: usize,
    refusals: Vec<HotKeyRefusal>,
    num_lock: ModMask,
    /// Keycode and server time of the last release: a press at the same time is an automatic
    /// repeat.
    released: Option<(Keycode, u32)>,
}

impl GrabbedKeys {
    pub(super) fn take(
        target: &DisplayTarget,
        bindings: &Bindings,
    ) -> Result<GrabbedKeys, DisplayError> {
        let mut held = GrabbedKeys {
            connection: DisplayConnection::open(target)?,
            places: Vec::new(),
            had: Vec::new(),
            count: 0,
            refusals: Vec::new(),
            num_lock: ModMask::from(0u16),
            released: None,
        };
        held.grab_all(bindings)?;
        Ok(held)
    }

    pub(super) fn refusals(&self) -> &[HotKeyRefusal] {
        &self.refusals
    }

    /// Grabs the available positions on the current keyboard; returns `true` if the refusals have
    /// changed.
    ///
    /// Does nothing if the positions are the same: a server reports a new mapping whenever another
    /// keyboard is used, and a press between two grabs would be lost.
    pub(super) fn grab_all(&mut self, bindings: &Bindings) -> Result<bool, DisplayError> {
        let keymap = Keymap::load(&self.connection)?;
        let (num_lock, places) = (keymap.num_lock(), places(&keymap, bindings));
        let count = bindings.0.len();
        if (num_lock, &places, count) == (self.num_lock, &self.places, self.count) {
            return Ok(false);
        }
        self.release()?;
        (self.num_lock, self.places, self.count) = (num_lock, places, count);
        self.had =
            self.places.iter().map(|place| self.grab_one(*place)).collect::<Result<_, _>>()?;
        let refused =
            (0..bindings.0.len()).filter_map(|number| self.refusal(number, bindings)).collect();
        let before = std::mem::replace(&mut self.refusals, refused);
        Ok(before != self.refusals)
    }

    /// Returns the reason why a binding is not, or not completely, grabbed.
    fn refusal(&self, number: usize, bindings: &Bindings) -> Option<HotKeyRefusal> {
        let places = self.places.iter().zip(&self.had).filter(|(place, _)| place.binding == number);
        let places: Vec<(bool, bool)> = places.map(|(place, had)| (place.main, *had)).collect();
        let (main_taken, keypad_taken) =
            (places.contains(&(true, false)), places.contains(&(false, false)));
        let why = match (main_taken, keypad_taken) {
            _ if places.is_empty() => RefusalReason::Missing,
            (false, false) => return None,
            (false, true) => RefusalReason::KeypadTaken,
            (true, _) if places.iter().any(|(_, had)| *had) => RefusalReason::MainTaken,
            (true, _) => RefusalReason::Taken,
        };
        let (action, chord) = bindings.0[number].clone();
        Some(HotKeyRefusal { action, chord, why })
    }

    /// Grabs a position with all lock states; returns `true` on success.
    fn grab_one(&self, place: KeyPlace) -> Result<bool, DisplayError> {
        let (wire, root) = (self.connection.wire(), self.connection.root());
        let mut cookies = Vec::new();
        for lock in
            [ModMask::from(0u16), ModMask::LOCK, self.num_lock, ModMask::LOCK | self.num_lock]
        {
            let (mask, mode) = (place.modifiers | lock, GrabMode::ASYNC);
            let sent = wire.grab_key(false, root, mask, place.code, mode, mode);
            cookies.push(sent.map_err(|error| self.connection.failed(error))?);
        }
        let mut whole = true;
        for cookie in cookies {
            match cookie.check() {
                Ok(()) => {}
                Err(ReplyError::X11Error(refusal)) if refusal.error_kind == ErrorKind::Access => {
                    whole = false
                }
                Err(error) => return Err(self.connection.failed(error)),
            }
        }
        Ok(whole)
    }

    /// Returns `true` if the server has closed the connection.
    pub(super) fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }

    pub(super) fn next(
        &mut self,
        deadline: Nanos,
        wakeup: Option<BorrowedFd<'_>>,
        bindings: &Bindings,
    ) -> Result<Option<HotKeyEvent>, DisplayError> {
        while let Some(message) = self.connection.event_unless(deadline, wakeup)? {
            match message {
                Message::KeyPress(press) => {
                    if let Some(action) = self.action(&press, bindings) {
                        return Ok(Some(HotKeyEvent::Pressed { action, at: clock::now() }));
                    }
                }
                Message::KeyRelease(release) => {
                    self.released = Some((release.detail, release.time))
                }
                Message::MappingNotify(change)
                    if change.request != Mapping::POINTER && self.grab_all(bindings)? =>
                {
                    return Ok(Some(HotKeyEvent::Changed));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn release(&mut self) -> Result<(), DisplayError> {
        let (wire, root) = (self.connection.wire(), self.connection.root());
        self.connection.send(wire.ungrab_key(Grab::ANY, root, ModMask::ANY))
    }

    fn action(&self, press: &KeyPressEvent, bindings: &Bindings) -> Option<HotKeyAction> {
        if self.released == Some((press.detail, press.time)) {
            return None;
        }
        let ignored = u16::from(ModMask::LOCK | self.num_lock);
        let state = u16::from(press.state) & 0xff & !ignored;
        let place = self
            .places
            .iter()
            .find(|place| place.code == press.detail && u16::from(place.modifiers) == state)?;
        bindings.0.get(place.binding).map(|(action, _)| *action)
    }
}

/// Returns the positions of the keys of the bindings.
fn places(keymap: &Keymap, bindings: &Bindings) -> Vec<KeyPlace> {
    let mut places = Vec::new();
    for (binding, (_, chord)) in bindings.0.iter().enumerate() {
        let main =
            Chord { symbols: chord.symbols.iter().take(1).copied().collect(), ..chord.clone() };
        let main = wanted(keymap, &main);
        for (code, modifiers) in wanted(keymap, chord) {
            let main = main.contains(&(code, modifiers));
            places.push(KeyPlace { code, modifiers, binding, main });
        }
    }
    places
}
