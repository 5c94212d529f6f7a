// SPDX-License-Identifier: MIT OR Apache-2.0
//! Meaning of the messages of one Wayland connection.
//!
//! On the wire a message names an object and an opcode; the interface of the object was given when
//! it was created, perhaps long before the recording. An object without a recorded creation is
//! therefore inferred from the shape of its messages: a keyboard from an event of a key's length
//! with a current time stamp and a state of at most 2, a surface from an attach before a commit, a
//! callback from the deletion that follows its only event. An object with a recorded creation is
//! known exactly. Object ids are reused, so deleted objects are forgotten.

use std::collections::{BTreeMap, BTreeSet};
use tipme_record::wayland as hint;
use tipme_record::wayland::{WlWord, shape};

/// Effect of a message, as far as the analysis uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    KeyPress,
    KeyRelease,
    ButtonPress,
    ButtonRelease,
    Scroll,
    Motion,
    /// A surface commit.
    Commit,
    /// The frame callback: the compositor asks for the next frame.
    FrameDone,
    /// Keyboard focus: the client gets it (`Enter`) or loses it (`Leave`).
    Enter,
    Leave,
    /// A key press sent to an input method that has grabbed the keyboard.
    GrabbedKey,
    /// The end (`done`) of a change that an input method made to a client's text.
    Text,
    /// A paste: the client asks for the selection, and the compositor asks its owner for it.
    AsksForSelection,
    WantsSelection,
    /// A client injects a key or a button.
    MakesKey,
    MakesButton,
}

/// Message with a known effect; `inferred` if only behavior identifies its object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meaning {
    pub act: Act,
    pub inferred: bool,
}

/// The `wl_display` object, which exists from the beginning.
const DISPLAY: u32 = 1;

/// Tracked objects of one connection.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// `true` for objects with a recorded creation.
    keyboards: BTreeMap<u32, bool>,
    pointers: BTreeMap<u32, bool>,
    surfaces: BTreeMap<u32, bool>,
    seats: BTreeSet<u32>,
    compositors: BTreeSet<u32>,
    /// Frame callbacks with the send that commits them, once it is known.
    callbacks: BTreeMap<u32, Option<usize>>,
    /// Callbacks of `wl_display.sync`, which are unrelated to frames.
    syncs: BTreeSet<u32>,
    /// Frame callbacks requested for the next commit of a surface, by surface.
    asked: BTreeMap<u32, Vec<u32>>,
    /// Sends of the client that got their frame callback.
    done: Vec<usize>,
    /// Presentation feedback for the next commit; and, once committed, with the send of the commit.
    awaited: Vec<u32>,
    feedbacks: BTreeMap<u32, usize>,
    /// Sends of the client that were presented, each with the time in microseconds modulo 2^32.
    presented: Vec<(usize, u32)>,
    /// Time of the first press in a send, in milliseconds modulo 2^32.
    pressed: Option<u32>,
    /// Some requests of the client are missing, so it may have created any object.
    missed: bool,
}

impl Objects {
    /// Returns the meanings of the messages in one send of the client; `send` is its index.
    pub(crate) fn requests(&mut self, words: &[WlWord], send: usize) -> Vec<Meaning> {
        let requests = words.iter().enumerate();
        requests.filter_map(|(at, word)| self.request(word, words, at, send)).collect()
    }

    /// Notes that messages of the client's last send are missing.
    pub(crate) fn miss(&mut self) {
        self.missed = true;
    }

    /// Returns the meanings of the messages in one send of the compositor.
    pub(crate) fn events(&mut self, words: &[WlWord]) -> Vec<Meaning> {
        let mut pressed = BTreeMap::new();
        let mut meanings = Vec::new();
        for (at, word) in words.iter().enumerate() {
            // A client with two keyboards receives each key twice.
            let again = is_key(word)
                && word.argument != 0
                && *pressed.entry((word.argument, word.hint)).or_insert(word.object) != word.object;
            meanings.extend(self.event(word, words, at).filter(|_| !again));
        }
        meanings
    }

    /// Returns the sends that got their frame callback since the last call.
    pub(crate) fn take_done(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.done)
    }

    /// Returns the sends presented since the last call, each with the time in microseconds modulo
    /// 2^32.
    pub(crate) fn take_presented(&mut self) -> Vec<(usize, u32)> {
        std::mem::take(&mut self.presented)
    }

    /// Returns the time of the first press since the last call, in milliseconds modulo 2^32.
    pub(crate) fn take_pressed(&mut self) -> Option<u32> {
        self.pressed.take()
    }

    fn request(
        &mut self,
        word: &WlWord,
        words: &[WlWord],
        at: usize,
        send: usize,
    ) -> Option<Meaning> {
        match (word.hint & hint::SHAPE, word.shape()) {
            (hint::MAKES_KEY, _) => return Some(known(Act::MakesKey)),
            (hint::MAKES_BUTTON, _) => return Some(known(Act::MakesButton)),
            (hint::COPIED, _) => return Some(shaped(Act::AsksForSelection)),
            (hint::COMPOSITOR, _) => drop(self.compositors.insert(word.argument)),
            (hint::SEAT, _) => drop(self.seats.insert(word.argument)),
            (_, shape::MAKE_FIRST | shape::MAKE_SECOND) => self.make(word),
            (_, shape::FRAME) if self.is_surface(word.object, &words[at + 1..]) => {
                self.callbacks.insert(word.argument, None);
                self.asked.entry(word.object).or_default().push(word.argument);
            }
            (_, shape::FEEDBACK) => self.awaited.push(word.argument),
            (_, shape::COMMIT) => return self.commit(word.object, &words[..at], send),
            _ => {}
        }
        None
    }

    /// Registers the new object: a seat creates pointers and keyboards, a compositor surfaces, and
    /// the display sync callbacks.
    fn make(&mut self, word: &WlWord) {
        let first = word.shape() == shape::MAKE_FIRST;
        if word.object == DISPLAY && first {
            self.syncs.insert(word.argument);
        } else if self.compositors.contains(&word.object) && first {
            self.surfaces.insert(word.argument, true);
        } else if self.seats.contains(&word.object) {
            let devices = if first { &mut self.pointers } else { &mut self.keyboards };
            devices.insert(word.argument, true);
        }
    }

    /// Returns `true` if an object is a known surface, or is committed later in the same send.
    fn is_surface(&self, object: u32, after: &[WlWord]) -> bool {
        self.surfaces.contains_key(&object)
            || after.iter().any(|word| (word.object, word.shape()) == (object, shape::COMMIT))
    }

    fn commit(&mut self, object: u32, before: &[WlWord], send: usize) -> Option<Meaning> {
        let mut own = before.iter().filter(|word| word.object == object);
        let seen = match self.surfaces.get(&object) {
            Some(seen) => *seen,
            None if own.any(|word| matches!(word.shape(), shape::ATTACH | shape::FRAME)) => {
                *self.surfaces.entry(object).or_insert(false)
            }
            None => return None,
        };
        self.feedbacks.extend(self.awaited.drain(..).map(|feedback| (feedback, send)));
        for callback in self.asked.remove(&object).unwrap_or_default() {
            self.callbacks.insert(callback, Some(send));
        }
        Some(Meaning { act: Act::Commit, inferred: !seen })
    }

    fn event(&mut self, word: &WlWord, words: &[WlWord], at: usize) -> Option<Meaning> {
        match (word.hint & hint::SHAPE, word.shape()) {
            (hint::PRESSED, shape::GRABBED_KEY) => Some(shaped(Act::GrabbedKey)),
            (hint::RELEASED, shape::GRABBED_KEY) => None,
            (hint::TEXT, _) => Some(shaped(Act::Text)),
            (hint::COPIED, _) => Some(shaped(Act::WantsSelection)),
            (hint::RELEASED..=hint::REPEATED, _) => self.press(word),
            (hint::ENTERED, _) => self.enter(word, words),
            (hint::MOVED, _) => self.points(word.object, Act::Motion),
            (hint::SCROLLED, _) => self.points(word.object, Act::Scroll),
            (hint::PRESENTED, _) => {
                self.presented
                    .extend(self.feedbacks.remove(&word.object).map(|send| (send, word.argument)));
                None
            }
            (_, shape::CALLBACK_DONE) => self.frame_done(word.object, &words[at + 1..]),
            (_, shape::LEAVE) => self
                .keyboards
                .get(&word.object)
                .map(|seen| Meaning { act: Act::Leave, inferred: !seen }),
            (_, shape::DELETE_ID) if word.object == DISPLAY => {
                self.forget(word.argument);
                None
            }
            _ => None,
        }
    }

    /// Returns a key for a keyboard and a button for a pointer. For an unknown object it is either,
    /// provided that the time stamp is current.
    fn press(&mut self, word: &WlWord) -> Option<Meaning> {
        let (button, near) = (word.hint & hint::BUTTON != 0, word.hint & hint::NEAR != 0);
        let shape = word.hint & hint::SHAPE;
        let is_pointer = self.pointers.contains_key(&word.object);
        let is_button = is_pointer || button && !self.keyboards.contains_key(&word.object);
        let devices = if is_button { &mut self.pointers } else { &mut self.keyboards };
        let seen = match devices.get(&word.object) {
            Some(seen) => *seen,
            None if near => *devices.entry(word.object).or_insert(false),
            None => return None,
        };
        let act = match (is_button, shape) {
            (true, hint::PRESSED) => Act::ButtonPress,
            (true, hint::RELEASED) => Act::ButtonRelease,
            (false, hint::PRESSED | hint::REPEATED) => Act::KeyPress,
            (false, hint::RELEASED) => Act::KeyRelease,
            _ => return None,
        };
        if near && shape == hint::PRESSED {
            self.pressed.get_or_insert(word.argument);
        }
        Some(Meaning { act, inferred: !seen })
    }

    /// Recognizes keyboard focus: the modifiers are in the same send, before or after the enter
    /// event.
    fn enter(&mut self, word: &WlWord, words: &[WlWord]) -> Option<Meaning> {
        let has_modifiers = words.iter().any(|other| {
            other.object == word.object && other.hint & hint::SHAPE == hint::MODIFIERS
        });
        let is_keyboard = has_modifiers || self.keyboards.contains_key(&word.object);
        if self.pointers.contains_key(&word.object) || !is_keyboard {
            return None;
        }
        self.surfaces.entry(word.argument).or_insert(false);
        let seen = *self.keyboards.entry(word.object).or_insert(false);
        Some(Meaning { act: Act::Enter, inferred: !seen })
    }

    fn points(&mut self, object: u32, act: Act) -> Option<Meaning> {
        if self.keyboards.contains_key(&object) {
            return None;
        }
        let seen = *self.pointers.entry(object).or_insert(false);
        Some(Meaning { act, inferred: !seen })
    }

    /// Recognizes a frame callback: it was requested, or its deletion follows the event and the
    /// request preceded the recording, since it would be known otherwise.
    fn frame_done(&mut self, object: u32, after: &[WlWord]) -> Option<Meaning> {
        match self.callbacks.remove(&object) {
            None if self.syncs.remove(&object) => return None,
            Some(send) => self.done.extend(send),
            None if self.missed => return None,
            None => {
                let next = after.first()?;
                let deletion = (DISPLAY, shape::DELETE_ID, object);
                if (next.object, next.shape(), next.argument) != deletion {
                    return None;
                }
            }
        }
        Some(Meaning { act: Act::FrameDone, inferred: false })
    }

    fn forget(&mut self, object: u32) {
        self.keyboards.remove(&object);
        self.pointers.remove(&object);
        self.surfaces.remove(&object);
        self.asked.remove(&object);
        self.callbacks.remove(&object);
        self.syncs.remove(&object);
        self.feedbacks.remove(&object);
    }
}

fn is_key(word: &WlWord) -> bool {
    (hint::RELEASED..=hint::REPEATED).contains(&(word.hint & hint::SHAPE))
}

/// Inferred from the shape alone.
fn shaped(act: Act) -> Meaning {
    Meaning { act, inferred: true }
}

fn known(act: Act) -> Meaning {
    Meaning { act, inferred: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(object: u32, opcode: u8, units: u8, hint: u8, argument: u32) -> WlWord {
        WlWord { object, opcode, units, hint, unused: 0, argument }
    }

    fn key(object: u32, stamp: u32) -> WlWord {
        word(object, 3, 6, hint::PRESSED | hint::NEAR, stamp)
    }

    fn acts(meanings: &[Meaning]) -> Vec<(Act, bool)> {
        meanings.iter().map(|meaning| (meaning.act, meaning.inferred)).collect()
    }

    #[test]
    fn a_key_is_inferred_unless_its_keyboard_is_known() {
        let mut objects = Objects::default();
        assert_eq!(acts(&objects.events(&[key(9, 100)])), [(Act::KeyPress, true)]);
        objects
            .requests(&[word(2, 0, 8, hint::SEAT, 4), word(4, 1, 3, 0, 8), word(4, 0, 3, 0, 7)], 0);
        assert_eq!(acts(&objects.events(&[key(8, 200)])), [(Act::KeyPress, false)]);
        let button = word(7, 3, 6, hint::PRESSED | hint::BUTTON, 0);
        assert_eq!(acts(&objects.events(&[button])), [(Act::ButtonPress, false)]);
    }

    #[test]
    fn a_commit_is_shown_at_the_time_of_its_feedback() {
        let mut objects = Objects::default();
        let (attach, feedback) = (word(3, 1, 5, 0, 0), word(7, 1, 4, 0, 20));
        objects.requests(&[attach, word(3, 6, 2, 0, 0)], 0);
        objects.requests(&[attach, feedback, word(3, 6, 2, 0, 0)], 1);
        objects.requests(&[word(7, 1, 4, 0, 21), attach, word(3, 6, 2, 0, 0)], 2);
        objects.events(&[word(DISPLAY, 1, 3, 0, 21), word(21, 1, 9, hint::PRESENTED, 60)]);
        assert_eq!(objects.take_presented(), [], "what was given up is not shown");
        objects.events(&[word(20, 1, 9, hint::PRESENTED, 50), word(20, 1, 9, hint::PRESENTED, 55)]);
        assert_eq!(objects.take_presented(), [(1, 50)]);
        assert_eq!(objects.take_presented(), []);
    }

    #[test]
    fn releases_and_repeats_of_a_known_keyboard_are_keys() {
        let mut objects = Objects::default();
        objects.events(&[key(9, 100)]);
        let meanings = objects.events(&[
            word(9, 3, 6, hint::REPEATED | hint::NEAR, 600),
            word(9, 3, 6, hint::RELEASED | hint::NEAR, 640),
        ]);
        assert_eq!(acts(&meanings), [(Act::KeyPress, true), (Act::KeyRelease, true)]);
    }

    #[test]
    fn an_input_method_receives_keys_without_a_keyboard() {
        let mut objects = Objects::default();
        let meanings = objects.events(&[
            word(7, 1, 6, hint::PRESSED | hint::NEAR, 100),
            word(7, 1, 6, hint::RELEASED | hint::NEAR, 100),
        ]);
        assert_eq!(acts(&meanings), [(Act::GrabbedKey, true)]);
        assert_eq!(acts(&objects.events(&[word(7, 5, 3, hint::TEXT, 0)])), [(Act::Text, true)]);
        assert_eq!(
            acts(&objects.events(&[word(7, 3, 6, hint::PRESSED, 0)])),
            [],
            "the object is no keyboard"
        );
    }

    #[test]
    fn a_key_without_a_near_time_stamp_needs_a_known_keyboard() {
        let mut objects = Objects::default();
        let far = word(9, 3, 6, hint::PRESSED, 0);
        assert_eq!(acts(&objects.events(&[far])), []);
        let enters = [word(9, 1, 5, hint::ENTERED, 3), word(9, 4, 7, hint::MODIFIERS, 0)];
        assert_eq!(acts(&objects.events(&enters)), [(Act::Enter, true)]);
        assert_eq!(acts(&objects.events(&[far])), [(Act::KeyPress, true)]);
        let [enter, modifiers] = enters;
        assert_eq!(
            acts(&Objects::default().events(&[modifiers, enter])),
            [(Act::Enter, true)],
            "in either order"
        );
        assert_eq!(acts(&objects.requests(&[word(3, 6, 2, 0, 0)], 0)), [(Act::Commit, true)]);
    }

    #[test]
    fn only_a_keyboard_enters_and_leaves() {
        let mut objects = Objects::default();
        let (enter, leave) = (word(9, 1, 5, hint::ENTERED, 3), word(9, 2, 4, 0, 0));
        assert_eq!(acts(&objects.events(&[enter])), [], "no modifiers follow");
        assert_eq!(acts(&objects.events(&[leave])), [], "nobody knows that it is a keyboard");
        objects.requests(&[word(2, 0, 8, hint::SEAT, 4), word(4, 1, 3, 0, 9)], 0);
        assert_eq!(
            acts(&objects.events(&[leave, enter])),
            [(Act::Leave, false), (Act::Enter, false)]
        );
        objects.events(&[word(DISPLAY, 1, 3, 0, 9)]);
        assert_eq!(acts(&objects.events(&[leave])), []);
    }

    #[test]
    fn a_key_on_two_keyboards_of_a_client_counts_once() {
        let mut objects = Objects::default();
        assert_eq!(acts(&objects.events(&[key(9, 100), key(10, 100)])), [(Act::KeyPress, true)]);
        assert_eq!(objects.events(&[key(9, 200), key(9, 201)]).len(), 2);
        assert_eq!(
            objects.events(&[key(9, 300), key(9, 300)]).len(),
            2,
            "two keys in a millisecond"
        );
    }

    #[test]
    fn a_commit_needs_a_surface() {
        let mut objects = Objects::default();
        let commit = word(5, 6, 2, 0, 0);
        assert_eq!(acts(&objects.requests(&[commit], 0)), []);
        assert_eq!(
            acts(&objects.requests(&[word(5, 1, 5, 0, 0), commit], 1)),
            [(Act::Commit, true)]
        );
        assert_eq!(acts(&objects.requests(&[commit], 2)), [(Act::Commit, true)]);
        objects.events(&[word(DISPLAY, 1, 3, 0, 5)]);
        assert_eq!(acts(&objects.requests(&[commit], 3)), []);
    }

    #[test]
    fn a_frame_is_done_for_the_send_that_committed_it() {
        let mut objects = Objects::default();
        let frame = [word(5, 1, 5, 0, 0), word(5, 3, 3, 0, 30), word(5, 6, 2, 0, 0)];
        objects.requests(&frame, 7);
        let done = [word(30, 0, 3, 0, 0), word(DISPLAY, 1, 3, 0, 30)];
        assert_eq!(acts(&objects.events(&done)), [(Act::FrameDone, false)]);
        assert_eq!(objects.take_done(), [7]);
        assert_eq!(
            acts(&objects.events(&done)),
            [(Act::FrameDone, false)],
            "deleted behind its event"
        );
        assert_eq!(acts(&objects.events(&done[..1])), []);
        assert_eq!(objects.take_done(), Vec::<usize>::new());
    }

    #[test]
    fn a_callback_with_a_possibly_missed_request_is_no_frame() {
        let mut objects = Objects::default();
        objects.miss();
        let done = [word(30, 0, 3, 0, 0), word(DISPLAY, 1, 3, 0, 30)];
        assert_eq!(acts(&objects.events(&done)), []);
        objects.requests(&[word(5, 1, 5, 0, 0), word(5, 3, 3, 0, 30), word(5, 6, 2, 0, 0)], 7);
        assert_eq!(acts(&objects.events(&done)), [(Act::FrameDone, false)]);
    }

    #[test]
    fn a_sync_callback_is_no_frame() {
        let mut objects = Objects::default();
        objects.requests(&[word(DISPLAY, 0, 3, 0, 30)], 0);
        let done = [word(30, 0, 3, 0, 0), word(DISPLAY, 1, 3, 0, 30)];
        assert_eq!(acts(&objects.events(&done)), []);
        assert_eq!(
            acts(&objects.events(&done)),
            [(Act::FrameDone, false)],
            "the number is given again"
        );
    }

    #[test]
    fn a_paste_asks_the_compositor_and_then_the_owner() {
        let asks = [word(7, 1, 9, hint::COPIED, 0)];
        assert_eq!(acts(&Objects::default().requests(&asks, 0)), [(Act::AsksForSelection, true)]);
        assert_eq!(acts(&Objects::default().events(&asks)), [(Act::WantsSelection, true)]);
    }

    #[test]
    fn hidden_input_means_nothing() {
        let mut objects = Objects::default();
        assert_eq!(objects.events(&[word(0, 0xff, 0, hint::HIDDEN, 0)]), []);
    }
}
