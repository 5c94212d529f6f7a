// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of display messages: input, drawing and grabs.
//!
//! A word of X11 is what the recorder keeps of a request or event: an opcode or event code and
//! three more bytes. A word of Wayland is the effect of a message on its objects. Neither contains
//! key codes or text.

use crate::decode::objects::{Act, Meaning};
use std::collections::HashMap;
use tipme_measure::InputClass;
use tipme_record::incident::Display;
use tipme_record::x11::DRAWING_REQUESTS;

/// One request or event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    X11([u8; 4]),
    Wayland(Meaning),
}

/// Kinds of input that are queued separately.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum InputDeviceKind {
    Keyboard,
    Button,
    Pointer,
}

/// Major opcodes of a server's extensions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Majors {
    by_name: HashMap<String, u8>,
}

const ERROR: u8 = 0;
const REPLY: u8 = 1;
const KEY_PRESS: u8 = 2;
const BUTTON_PRESS: u8 = 4;
const BUTTON_RELEASE: u8 = 5;
const MOTION: u8 = 6;
const GENERIC: u8 = 35;
const GRAB_SERVER: u8 = 36;
const UNGRAB_SERVER: u8 = 37;
const MAP_WINDOW: u8 = 8;
const WARP_POINTER: u8 = 41;
const CONVERT_SELECTION: u8 = 24;
const SELECTION_REQUEST: u8 = 30;
const SELECTION_NOTIFY: u8 = 31;
/// Mask without the bit for events from `SendEvent`.
const EVENT_CODE: u8 = 0x7f;
const UNGRAB_POINTER: u8 = 27;
const UNGRAB_KEYBOARD: u8 = 32;
const ALLOW_EVENTS: u8 = 35;
const XI_UNGRAB_DEVICE: u8 = 52;
const XI_ALLOW_EVENTS: u8 = 53;
const GET_IMAGE: u8 = 73;
const EXTENSIONS: u8 = 128;
const SUBTRACT: u8 = 3;
const FAKE_INPUT: u8 = 2;
const FAKE_INPUT_UNITS: u8 = 9;

impl Majors {
    pub(crate) fn new(display: &Display) -> Majors {
        let by_name = display
            .extensions
            .iter()
            .map(|extension| (extension.name.clone(), extension.major))
            .collect();
        Majors { by_name }
    }

    fn is(&self, name: &str, major: u8) -> bool {
        self.by_name.get(name) == Some(&major)
    }

    /// Returns the class of an input event; `None` for releases and synthetic events.
    pub(crate) fn input_class(&self, word: Word) -> Option<InputClass> {
        let [code, extension, detail, synthetic] = match word {
            Word::X11(bytes) => bytes,
            Word::Wayland(meaning) => return class_of(meaning.act),
        };
        match code {
            _ if synthetic & 1 == 1 && code != GENERIC => None,
            KEY_PRESS => Some(InputClass::Key),
            BUTTON_PRESS if detail == 1 => Some(InputClass::Scroll),
            BUTTON_PRESS => Some(InputClass::Click),
            MOTION => Some(InputClass::Motion),
            GENERIC if self.is("XInputExtension", extension) => generic_class(detail),
            _ => None,
        }
    }

    /// Returns `true` for a button release, on which most programs act on a click.
    pub(crate) fn is_button_release(&self, word: Word) -> bool {
        let [code, extension, detail, synthetic] = word.x11();
        match code {
            _ if word.act() == Some(Act::ButtonRelease) => true,
            BUTTON_RELEASE => synthetic & 1 == 0 && detail != 1,
            GENERIC => self.is("XInputExtension", extension) && detail == BUTTON_RELEASE,
            _ => false,
        }
    }

    /// Returns `true` if a request changes the picture.
    pub(crate) fn draws(&self, word: Word) -> bool {
        let [major, minor, ..] = word.x11();
        match major {
            _ if word.act() == Some(Act::Commit) => true,
            GET_IMAGE => false,
            61..=77 => true,
            EXTENSIONS.. => DRAWING_REQUESTS
                .iter()
                .any(|(name, minors)| self.is(name, major) && minors.contains(&minor)),
            _ => false,
        }
    }

    /// Returns `true` if a client takes in damage of other windows, as compositing managers do.
    pub(crate) fn takes_damage(&self, word: Word) -> bool {
        self.is("DAMAGE", word.x11()[0]) && word.x11()[1] == SUBTRACT
    }

    /// Returns `true` if a request releases input that is frozen for the client.
    pub(crate) fn releases_input(&self, word: Word) -> bool {
        let [major, minor, ..] = word.x11();
        [UNGRAB_POINTER, UNGRAB_KEYBOARD, ALLOW_EVENTS].contains(&major)
            || self.is("XInputExtension", major)
                && [XI_UNGRAB_DEVICE, XI_ALLOW_EVENTS].contains(&minor)
    }

    /// Returns the device of a press or motion that a client injects: with XTEST, or with a virtual
    /// keyboard or pointer of Wayland.
    pub(crate) fn injects(&self, word: Word) -> Option<InputDeviceKind> {
        match word.x11()[3] {
            _ if word.act() == Some(Act::MakesKey) => Some(InputDeviceKind::Keyboard),
            _ if word.act() == Some(Act::MakesButton) => Some(InputDeviceKind::Button),
            KEY_PRESS if self.fakes_input(word) => Some(InputDeviceKind::Keyboard),
            BUTTON_PRESS if self.fakes_input(word) => Some(InputDeviceKind::Button),
            MOTION if self.fakes_input(word) => Some(InputDeviceKind::Pointer),
            _ => None,
        }
    }

    /// Returns `true` if a request injects input; with XTEST that includes releases.
    pub(crate) fn fakes_input(&self, word: Word) -> bool {
        if matches!(word.act(), Some(Act::MakesKey | Act::MakesButton)) {
            return true;
        }
        let [major, minor, units, _] = word.x11();
        let known = self.by_name.contains_key("XTEST");
        let test = if known { self.is("XTEST", major) } else { major >= EXTENSIONS };
        test && minor == FAKE_INPUT && units == FAKE_INPUT_UNITS
    }
}

/// Classifies XI_KeyPress, XI_ButtonPress and XI_Motion.
fn generic_class(kind: u8) -> Option<InputClass> {
    match kind {
        2 => Some(InputClass::Key),
        4 => Some(InputClass::Click),
        6 => Some(InputClass::Motion),
        _ => None,
    }
}

/// Returns the class of a Wayland input event.
pub(crate) fn class_of(act: Act) -> Option<InputClass> {
    match act {
        Act::KeyPress | Act::GrabbedKey => Some(InputClass::Key),
        Act::ButtonPress => Some(InputClass::Click),
        Act::Scroll => Some(InputClass::Scroll),
        Act::Motion => Some(InputClass::Motion),
        _ => None,
    }
}

/// Returns the device that produces events of a class.
pub(crate) fn device_of(class: InputClass) -> InputDeviceKind {
    match class {
        InputClass::Key => InputDeviceKind::Keyboard,
        InputClass::Motion => InputDeviceKind::Pointer,
        _ => InputDeviceKind::Button,
    }
}

impl Word {
    /// Returns the bytes of an X11 message; zeros for Wayland, which match no request, event or
    /// reply of interest.
    fn x11(self) -> [u8; 4] {
        match self {
            Word::X11(bytes) => bytes,
            Word::Wayland(_) => [0; 4],
        }
    }

    /// Returns the effect of a Wayland message.
    pub fn act(self) -> Option<Act> {
        match self {
            Word::X11(_) => None,
            Word::Wayland(meaning) => Some(meaning.act),
        }
    }

    /// Returns `true` if the effect was inferred from behavior only.
    pub(crate) fn is_inferred(self) -> bool {
        matches!(self, Word::Wayland(Meaning { inferred: true, .. }))
    }

    /// Returns `true` if a client asks for a selection, as for a paste.
    pub(crate) fn asks_for_selection(self) -> bool {
        self.x11()[0] == CONVERT_SELECTION || self.act() == Some(Act::AsksForSelection)
    }

    /// Returns `true` if the owner of a selection is asked for it.
    pub(crate) fn wants_selection(self) -> bool {
        self.x11()[0] & EVENT_CODE == SELECTION_REQUEST || self.act() == Some(Act::WantsSelection)
    }

    /// Returns `true` if a client is notified that its selection has been transferred.
    pub(crate) fn notifies_of_selection(self) -> bool {
        self.x11()[0] & EVENT_CODE == SELECTION_NOTIFY
    }

    /// Returns `true` for an unsolicited X11 message of a display server: neither a reply nor an
    /// error.
    pub(crate) fn is_event(self) -> bool {
        matches!(self, Word::X11(bytes) if ![ERROR, REPLY].contains(&bytes[0]))
    }

    /// Returns `true` if an X server replies to a request.
    pub(crate) fn replies(self) -> bool {
        self.x11()[0] == REPLY
    }

    /// Returns `true` if a client maps a window.
    pub(crate) fn maps_window(self) -> bool {
        self.x11()[0] == MAP_WINDOW
    }

    /// Returns `true` if a client warps the pointer.
    pub(crate) fn moves_pointer(self) -> bool {
        self.x11()[0] == WARP_POINTER
    }

    /// Returns `true` if a client grabs the server.
    pub(crate) fn grabs_server(self) -> bool {
        self.x11()[0] == GRAB_SERVER
    }

    /// Returns `true` if a client ends its server grab.
    pub(crate) fn ungrabs_server(self) -> bool {
        self.x11()[0] == UNGRAB_SERVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::incident::Extension;

    fn majors() -> Majors {
        let extensions = [("XTEST", 132), ("RENDER", 139), ("XInputExtension", 131)]
            .map(|(name, major)| Extension { name: name.to_owned(), major });
        Majors::new(&Display { display: 99, server_pid: 1, extensions: extensions.into() })
    }

    #[test]
    fn presses_are_input_and_releases_are_not() {
        for (bytes, expected) in [
            ([2, 0, 0, 0], Some(InputClass::Key)),
            ([3, 0, 0, 0], None),
            ([4, 0, 1, 0], Some(InputClass::Scroll)),
            ([35, 131, 2, 0], Some(InputClass::Key)),
            ([35, 140, 2, 0], None),
            ([2, 0, 0, 1], None),
        ] {
            assert_eq!(majors().input_class(Word::X11(bytes)), expected, "{bytes:?}");
        }
    }

    #[test]
    fn held_input_is_released_by_either_protocol() {
        for bytes in [[35, 2, 2, 0], [27, 0, 2, 0], [131, 53, 7, 0]] {
            assert!(majors().releases_input(Word::X11(bytes)), "{bytes:?}");
        }
        for bytes in [[131, 54, 7, 0], [140, 53, 7, 0], [26, 0, 6, 0]] {
            assert!(!majors().releases_input(Word::X11(bytes)), "{bytes:?}");
        }
    }

    #[test]
    fn queries_do_not_draw() {
        for bytes in [[76, 0, 4, 0], [139, 23, 9, 0], [61, 0, 4, 0]] {
            assert!(majors().draws(Word::X11(bytes)), "{bytes:?}");
        }
        for bytes in [[73, 0, 4, 0], [139, 4, 9, 0], [132, 2, 9, 2]] {
            assert!(!majors().draws(Word::X11(bytes)), "{bytes:?}");
        }
    }

    #[test]
    fn fake_input_needs_its_length() {
        let key = [132, 2, 9, 2];
        assert_eq!(majors().injects(Word::X11(key)), Some(InputDeviceKind::Keyboard));
        for bytes in [[132, 2, 9, 3], [132, 2, 8, 2], [139, 2, 9, 2]] {
            assert_eq!(majors().injects(Word::X11(bytes)), None, "{bytes:?}");
        }
    }
}
