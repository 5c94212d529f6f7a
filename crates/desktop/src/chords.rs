// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hot keys among the events of input devices: for surfaces without display grabs, above all a text
//! console.
//!
//! Keys are named by their position on a US keyboard, since the layout of a console is not known
//! here. The right Alt key is AltGr on most layouts, used for typing: it is a modifier of its own,
//! which no chord has. All devices count as one keyboard. The only state is the set of held
//! modifier keys, eight bits for each device; an event of any other key but the hot keys' own
//! leaves no trace.

use crate::hotkeys::{Bindings, HotKeyAction, wanted};
use crate::keymap::Keymap;
use std::collections::BTreeMap;
use tipme_record::Nanos;
use x11rb::protocol::xproto::ModMask;

/// Keys that hold a modifier, by their evdev codes: one bit each.
const MODIFIERS: [(u16, ModMask); 8] = [
    (29, ModMask::CONTROL),
    (97, ModMask::CONTROL),
    (42, ModMask::SHIFT),
    (54, ModMask::SHIFT),
    (56, ModMask::M1),
    (100, ModMask::M5),
    (125, ModMask::M4),
    (126, ModMask::M4),
];

/// Values of a key event; an automatic repeat has another one.
const UP: i32 = 0;
const DOWN: i32 = 1;

/// A chord with a key of unknown position.
#[derive(Debug, thiserror::Error)]
#[error("hot key {0} has no known position on a US keyboard; choose another key")]
pub struct NoPlace(String);

/// A hot key that was pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotKeyPress {
    pub action: HotKeyAction,
    /// Kernel time stamp of the press.
    pub at: Nanos,
}

/// A key of one or more chords.
#[derive(Debug)]
struct ChordKey {
    code: u16,
    meanings: Vec<(ModMask, HotKeyAction)>,
}

/// Meaning of an event for hot keys.
#[derive(Debug)]
enum ChordEvent {
    /// Bit of a modifier.
    Held(u8),
    Released(u8),
    /// Index into the keys of the chords.
    Pressed(usize),
    /// The device lost events, or was removed.
    Forgotten,
}

/// Detects chords in the events of all devices. Without any chord, it ignores all events.
#[derive(Debug, Default)]
pub struct Chords {
    keys: Vec<ChordKey>,
    /// Bits of the held modifiers by device, if any.
    held: BTreeMap<u32, u8>,
    /// Events read but not yet ordered: at most those of one pass over all devices.
    noted: Vec<(Nanos, u32, ChordEvent)>,
}

impl Chords {
    /// Detects the chords of `bindings`.
    ///
    /// # Errors
    /// Names the first chord with a key that has no position on a US keyboard.
    pub fn new(bindings: &Bindings) -> Result<Chords, NoPlace> {
        let (keymap, mut keys) = (Keymap::of_places(), BTreeMap::<u16, Vec<_>>::new());
        for (action, chord) in &bindings.0 {
            let found = wanted(&keymap, chord);
            if found.is_empty() {
                return Err(NoPlace(chord.to_string()));
            }
            for (code, modifiers) in found {
                keys.entry(u16::from(code)).or_default().push((modifiers, *action));
            }
        }
        let keys = keys.into_iter().map(|(code, meanings)| ChordKey { code, meanings }).collect();
        Ok(Chords { keys, ..Chords::default() })
    }

    /// Stores a key event if it is relevant.
    pub(crate) fn note(&mut self, device: u32, at: Nanos, code: u16, value: i32) {
        if self.keys.is_empty() {
            return;
        }
        let bit =
            MODIFIERS.iter().position(|(modifier, _)| *modifier == code).map(|place| 1 << place);
        let key = self.keys.iter().position(|key| key.code == code);
        let change = match (bit, key, value) {
            (Some(bit), _, DOWN) => ChordEvent::Held(bit),
            (Some(bit), _, UP) => ChordEvent::Released(bit),
            (None, Some(key), DOWN) => ChordEvent::Pressed(key),
            _ => return,
        };
        self.noted.push((at, device, change));
    }

    /// Treats all keys of a device as released from then on: events were lost, or the device was
    /// removed.
    pub(crate) fn forget(&mut self, device: u32, at: Nanos) {
        if !self.keys.is_empty() {
            self.noted.push((at, device, ChordEvent::Forgotten));
        }
    }

    /// Returns the hot keys among the stored events. Devices are read one after the other; this
    /// puts their events in order.
    pub(crate) fn settle(&mut self) -> Vec<HotKeyPress> {
        let mut noted = std::mem::take(&mut self.noted);
        noted.sort_by_key(|(at, ..)| *at);
        noted
            .into_iter()
            .filter_map(|(at, device, change)| self.apply(at, device, change))
            .collect()
    }

    fn apply(&mut self, at: Nanos, device: u32, change: ChordEvent) -> Option<HotKeyPress> {
        let held = self.held.get(&device).copied().unwrap_or(0);
        let now = match change {
            ChordEvent::Held(bit) => held | bit,
            ChordEvent::Released(bit) => held & !bit,
            ChordEvent::Forgotten => 0,
            ChordEvent::Pressed(key) => {
                return self.action(key).map(|action| HotKeyPress { action, at });
            }
        };
        if now == 0 {
            self.held.remove(&device);
        } else {
            self.held.insert(device, now);
        }
        None
    }

    /// Returns the action of a key with the modifiers that are held on any device.
    fn action(&self, key: usize) -> Option<HotKeyAction> {
        let held = self.held.values().fold(0, |all, bits| all | bits);
        let bits = MODIFIERS.iter().enumerate().filter(|(place, _)| held & (1 << place) != 0);
        let modifiers = bits.fold(ModMask::from(0u16), |all, (_, (_, modifier))| all | *modifier);
        let meanings = &self.keys.get(key)?.meanings;
        meanings.iter().find(|(wanted, _)| *wanted == modifiers).map(|(_, action)| *action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const CTRL: u16 = 29;
    const RIGHT_CTRL: u16 = 97;
    const SHIFT: u16 = 42;
    const ALT: u16 = 56;
    const RIGHT_ALT: u16 = 100;
    const MINUS: u16 = 12;
    const EQUAL: u16 = 13;
    const ZERO: u16 = 11;
    const ONE: u16 = 2;
    const A: u16 = 30;
    const REPEAT: i32 = 2;

    fn chords() -> Chords {
        Chords::new(&Bindings::default()).expect("the default keys have places")
    }

    /// Returns the hot keys for events (device, code, value) that are one nanosecond apart.
    fn hot_keys(events: &[(u32, u16, i32)]) -> Vec<(HotKeyAction, u64)> {
        let (mut chords, mut all) = (chords(), Vec::new());
        for (at, (device, code, value)) in (1..).zip(events) {
            chords.note(*device, Nanos(at), *code, *value);
            all.extend(chords.settle());
        }
        all.into_iter().map(|press| (press.action, press.at.0)).collect()
    }

    /// Returns the hot keys for a key that is pressed and released while modifiers are held.
    fn press(modifiers: &[u16], key: u16) -> Vec<(HotKeyAction, u64)> {
        let held = modifiers.iter().map(|code| (0, *code, DOWN));
        hot_keys(&held.chain([(0, key, DOWN), (0, key, UP)]).collect::<Vec<_>>())
    }

    #[test]
    fn each_chord_has_its_action_and_the_time_of_its_key() {
        assert_eq!(press(&[CTRL, ALT], MINUS), [(HotKeyAction::Mark, 3)]);
        assert_eq!(press(&[CTRL, ALT], EQUAL), [(HotKeyAction::Start, 3)]);
        assert_eq!(press(&[CTRL, ALT], ZERO), [(HotKeyAction::StopKeys, 3)]);
        assert_eq!(press(&[CTRL, ALT], ONE), [(HotKeyAction::StartKeys, 3)]);
        assert_eq!(press(&[CTRL, ALT], A), []);
    }

    #[test]
    fn the_keypad_and_the_modifiers_on_the_right_count() {
        const KEYPAD_MINUS: u16 = 74;
        const KEYPAD_PLUS: u16 = 78;
        assert_eq!(press(&[ALT, RIGHT_CTRL], KEYPAD_MINUS), [(HotKeyAction::Mark, 3)]);
        assert_eq!(press(&[ALT, RIGHT_CTRL], KEYPAD_PLUS), [(HotKeyAction::Start, 3)]);
    }

    #[test]
    fn the_right_alt_key_is_for_typing() {
        assert_eq!(press(&[CTRL, RIGHT_ALT], MINUS), []);
        assert_eq!(press(&[CTRL, ALT, RIGHT_ALT], MINUS), []);
    }

    #[test]
    fn plus_counts_with_shift_and_minus_does_not() {
        assert_eq!(press(&[CTRL, SHIFT, ALT], EQUAL), [(HotKeyAction::Start, 4)]);
        assert_eq!(press(&[CTRL, SHIFT, ALT], MINUS), []);
    }

    #[test]
    fn all_modifiers_must_be_held_and_no_other() {
        assert_eq!(press(&[], MINUS), []);
        assert_eq!(press(&[CTRL], MINUS), []);
        assert_eq!(press(&[CTRL, ALT, 125], MINUS), []);
        assert_eq!(
            hot_keys(&[(0, CTRL, DOWN), (0, ALT, DOWN), (0, ALT, UP), (0, MINUS, DOWN)]),
            []
        );

        assert_eq!(
            hot_keys(&[(0, MINUS, DOWN), (0, CTRL, DOWN), (0, ALT, DOWN), (0, MINUS, UP)]),
            []
        );
    }

    #[test]
    fn one_of_two_equal_modifiers_may_be_released() {
        let events = [
            (0, CTRL, DOWN),
            (0, RIGHT_CTRL, DOWN),
            (0, CTRL, UP),
            (0, ALT, DOWN),
            (0, MINUS, DOWN),
            (0, MINUS, UP),
        ];
        assert_eq!(hot_keys(&events), [(HotKeyAction::Mark, 5)]);
    }

    #[test]
    fn a_repeat_is_no_press() {
        let events = [
            (0, CTRL, DOWN),
            (0, ALT, DOWN),
            (0, MINUS, DOWN),
            (0, MINUS, REPEAT),
            (0, MINUS, REPEAT),
            (0, MINUS, UP),
            (0, MINUS, DOWN),
        ];
        assert_eq!(hot_keys(&events), [(HotKeyAction::Mark, 3), (HotKeyAction::Mark, 7)]);
    }

    #[test]
    fn all_devices_are_one_keyboard() {
        assert_eq!(
            hot_keys(&[(3, CTRL, DOWN), (5, ALT, DOWN), (7, MINUS, DOWN)]),
            [(HotKeyAction::Mark, 3)]
        );
        let both =
            [(3, CTRL, DOWN), (5, CTRL, DOWN), (3, CTRL, UP), (5, ALT, DOWN), (3, MINUS, DOWN)];
        assert_eq!(hot_keys(&both).len(), 1);
    }

    #[test]
    fn devices_that_are_read_one_after_the_other_are_put_in_order() {
        let mut chords = chords();
        for (at, code, value) in [(1, CTRL, DOWN), (2, ALT, DOWN), (4, ALT, UP), (5, CTRL, UP)] {
            chords.note(1, Nanos(at), code, value);
        }
        chords.note(2, Nanos(3), MINUS, DOWN);
        chords.note(2, Nanos(6), MINUS, DOWN);
        assert_eq!(chords.settle(), [HotKeyPress { action: HotKeyAction::Mark, at: Nanos(3) }]);
        assert!(chords.held.is_empty() && chords.noted.is_empty());
    }

    #[test]
    fn a_device_that_lost_events_or_is_gone_holds_nothing() {
        let mut chords = chords();
        chords.note(1, Nanos(1), CTRL, DOWN);
        chords.note(2, Nanos(2), ALT, DOWN);
        chords.forget(1, Nanos(3));
        chords.note(2, Nanos(4), MINUS, DOWN);
        assert_eq!(chords.settle(), []);
        chords.note(1, Nanos(5), CTRL, DOWN);
        chords.note(2, Nanos(6), MINUS, DOWN);
        assert_eq!(chords.settle().len(), 1);
    }

    #[test]
    fn of_other_keys_nothing_is_kept() {
        let mut chords = chords();
        for code in 0..0x300 {
            if !MODIFIERS.iter().any(|(modifier, _)| *modifier == code) {
                chords.note(1, Nanos(1), code, DOWN);
            }
        }
        // Minus, plus, 0 and 1, here and on the keypad.
        assert_eq!(chords.noted.len(), 8);
        chords.settle();
        assert!(chords.held.is_empty());
        let mut none = Chords::default();
        (0..0x300).for_each(|code| none.note(1, Nanos(1), code, DOWN));
        none.forget(1, Nanos(2));
        assert!(none.noted.is_empty());
    }

    #[test]
    fn keys_can_be_chosen_by_their_place() {
        let mut bindings = Bindings::default();
        bindings.set(HotKeyAction::Mark, "super+f12".parse().expect("a chord"));
        let mut chords = Chords::new(&bindings).expect("it has a place");
        chords.note(0, Nanos(1), 126, DOWN);
        chords.note(0, Nanos(2), 88, DOWN);
        assert_eq!(chords.settle(), [HotKeyPress { action: HotKeyAction::Mark, at: Nanos(2) }]);
        bindings.set(HotKeyAction::Mark, "ctrl+é".parse().expect("a chord"));
        let refused = Chords::new(&bindings).map(drop).map_err(|error| error.to_string());
        assert_eq!(
            refused,
            Err("hot key Ctrl+É has no known position on a US keyboard; choose another key"
                .to_owned())
        );
    }

    fn holds(held: &BTreeSet<(u32, u16)>, codes: &[u16]) -> bool {
        held.iter().any(|(_, code)| codes.contains(code))
    }

    /// Computes the marks by definition: a press of minus while exactly control and the left alt
    /// are held on any device.
    fn marks(events: &[(u32, u16, i32)]) -> Vec<u64> {
        let (mut held, mut marks) = (BTreeSet::new(), Vec::new());
        for (at, (device, code, value)) in (1..).zip(events) {
            let exactly = holds(&held, &[CTRL, RIGHT_CTRL])
                && holds(&held, &[ALT])
                && !holds(&held, &[SHIFT, RIGHT_ALT]);
            if (*code, *value, exactly) == (MINUS, DOWN, true) {
                marks.push(at);
            }
            match *value {
                DOWN => drop(held.insert((*device, *code))),
                UP => drop(held.remove(&(*device, *code))),
                _ => {}
            }
        }
        marks
    }

    #[test]
    fn any_sequence_gives_the_marks_of_the_definition() {
        const CODES: [u16; 7] = [CTRL, RIGHT_CTRL, ALT, RIGHT_ALT, SHIFT, MINUS, A];
        let (mut numbers, mut seen) = (fastrand::Rng::with_seed(7), 0);
        for _ in 0..2_000 {
            let events: Vec<_> = (0..60)
                .map(|_| (numbers.u32(..3), CODES[numbers.usize(..7)], numbers.i32(0..3)))
                .collect();
            let mut chords = chords();
            let mut found = Vec::new();
            // Reads in pieces, and in each of them one device after the other.
            for (piece, part) in events.chunks(7).enumerate() {
                for wanted in 0..3 {
                    let own = (7 * piece as u64 + 1..)
                        .zip(part)
                        .filter(|(_, (device, ..))| *device == wanted);
                    for (at, (device, code, value)) in own {
                        chords.note(*device, Nanos(at), *code, *value);
                    }
                }
                found.extend(chords.settle().into_iter().map(|press| (press.action, press.at.0)));
            }
            let expected: Vec<_> =
                marks(&events).into_iter().map(|at| (HotKeyAction::Mark, at)).collect();
            assert_eq!(found, expected, "{events:?}");
            seen += found.len();
        }
        assert!(seen > 300, "only {seen} marks");
    }
}
