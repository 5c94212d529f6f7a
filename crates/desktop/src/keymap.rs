// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyboard of a display: keys and their symbols.

use crate::connect::DisplayConnection;
use crate::error::DisplayError;
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{ConnectionExt as _, ModMask};

/// Symbols of the keys that hold down a modifier or lock it.
pub(crate) const SHIFT: u32 = 0xffe1;
pub(crate) const CONTROL: u32 = 0xffe3;
pub(crate) const ALT: u32 = 0xffe9;
pub(crate) const SUPER: u32 = 0xffeb;
const NUM_LOCK: u32 = 0xff7f;

/// Names of keys in hot-key texts, with all symbols that count as that key.
const NAMES: &[(&str, &[u32])] = &[
    ("plus", &[0x2b, 0xffab]),
    ("minus", &[0x2d, 0xffad]),
    ("equal", &[0x3d]),
    ("space", &[0x20]),
    ("return", &[0xff0d]),
    ("escape", &[0xff1b]),
    ("tab", &[0xff09]),
    ("backspace", &[0xff08]),
    ("delete", &[0xffff]),
    ("insert", &[0xff63]),
    ("home", &[0xff50]),
    ("end", &[0xff57]),
    ("page_up", &[0xff55]),
    ("page_down", &[0xff56]),
    ("left", &[0xff51]),
    ("up", &[0xff52]),
    ("right", &[0xff53]),
    ("down", &[0xff54]),
    ("pause", &[0xff13]),
    ("print", &[0xff61]),
    ("scroll_lock", &[0xff14]),
    ("caps_lock", &[0xffe5]),
    ("num_lock", &[0xff7f]),
];

/// First keypad digit.
const KEYPAD_0: u32 = 0xffb0;
/// Symbol of F1.
const F1: u32 = 0xffbe;

/// Rows of a US keyboard: the evdev code of the first key, and the symbols without and with Shift.
const ROWS: [(u8, &str, &str); 4] = [
    (2, "1234567890-=", "!@#$%^&*()_+"),
    (16, "qwertyuiop[]", "QWERTYUIOP{}"),
    (30, "asdfghjkl;'`", "ASDFGHJKL:\"~"),
    (43, "\\zxcvbnm,./", "|ZXCVBNM<>?"),
];

/// Its other keys with a name: evdev code and symbol.
const PLACES: [(u8, u32); 28] = [
    (1, 0xff1b),
    (14, 0xff08),
    (15, 0xff09),
    (28, 0xff0d),
    (29, CONTROL),
    (42, SHIFT),
    (56, ALT),
    (57, 0x20),
    (58, 0xffe5),
    (69, NUM_LOCK),
    (70, 0xff14),
    (74, 0xffad),
    (78, 0xffab),
    (87, F1 + 10),
    (88, F1 + 11),
    (99, 0xff61),
    (102, 0xff50),
    (103, 0xff52),
    (104, 0xff55),
    (105, 0xff51),
    (106, 0xff53),
    (107, 0xff57),
    (108, 0xff54),
    (109, 0xff56),
    (110, 0xff63),
    (111, 0xffff),
    (119, 0xff13),
    (125, SUPER),
];

/// Keys with consecutive symbols: evdev code and symbol of the first, and their number. The
/// keypad's digits are in rows; F1 to F10, and F13 to F24.
const RUNS: [(u8, u32, u8); 6] = [
    (71, KEYPAD_0 + 7, 3),
    (75, KEYPAD_0 + 4, 3),
    (79, KEYPAD_0 + 1, 3),
    (82, KEYPAD_0, 1),
    (59, F1, 10),
    (183, F1 + 12, 12),
];

/// Returns the symbols for a key's name in a hot-key text; `None` if there is no such key.
pub fn symbols(name: &str) -> Option<Vec<u32>> {
    if let Some((_, symbols)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(symbols.to_vec());
    }
    if let Some(number) = name.strip_prefix('f').and_then(|number| number.parse::<u32>().ok()) {
        return (1..=24).contains(&number).then(|| vec![F1 + number - 1]);
    }
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some(digit @ '0'..='9'), None) => {
            Some(vec![digit as u32, KEYPAD_0 + digit as u32 - '0' as u32])
        }
        (Some(letter), None) => Some(vec![symbol(letter)]),
        _ => None,
    }
}

/// Returns the symbol of a character; line feed, tab, backspace and escape are their keys.
pub fn symbol(character: char) -> u32 {
    match character {
        '\n' | '\r' => 0xff0d,
        '\t' => 0xff09,
        '\u{8}' => 0xff08,
        '\u{1b}' => 0xff1b,
        ' '..='~' | '\u{a0}'..='\u{ff}' => character as u32,
        other => 0x0100_0000 | other as u32,
    }
}

/// A key on the keyboard: its code, and `shifted` if the symbol needs Shift.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedKey {
    pub code: u8,
    pub shifted: bool,
}

/// The server's keyboard mapping.
#[derive(Clone, Debug, Default)]
pub struct Keymap {
    first: u8,
    per_key: usize,
    symbols: Vec<u32>,
    /// Keycodes of each of the eight modifiers.
    modifiers: Vec<Vec<u8>>,
}

impl Keymap {
    /// Returns a US keyboard by evdev codes: if no layout is known, keys are named by position.
    pub(crate) fn of_places() -> Keymap {
        let mut keys = vec![[0, 0]; usize::from(u8::MAX) + 1];
        for (first, plain, shifted) in ROWS {
            for (at, (plain, shifted)) in
                (usize::from(first)..).zip(plain.chars().zip(shifted.chars()))
            {
                keys[at] = [symbol(plain), symbol(shifted)];
            }
        }
        for (code, symbol) in PLACES {
            keys[usize::from(code)][0] = symbol;
        }
        for (first, symbol, count) in RUNS {
            for step in 0..count {
                keys[usize::from(first + step)][0] = symbol + u32::from(step);
            }
        }
        Keymap { first: 0, per_key: 2, symbols: keys.concat(), modifiers: Vec::new() }
    }

    /// Queries the server's keyboard mapping.
    pub fn load(connection: &DisplayConnection) -> Result<Keymap, DisplayError> {
        let wire = connection.wire();
        let (first, last) = (wire.setup().min_keycode, wire.setup().max_keycode);
        let keys = wire.get_keyboard_mapping(first, last - first + 1);
        let modifiers = wire.get_modifier_mapping();
        let keys = connection.reply(keys)?;
        let modifiers = connection.reply(modifiers)?.keycodes;
        let per_modifier = (modifiers.len() / 8).max(1);
        Ok(Keymap {
            first,
            per_key: usize::from(keys.keysyms_per_keycode).max(1),
            symbols: keys.keysyms,
            modifiers: modifiers.chunks(per_modifier).map(<[u8]>::to_vec).collect(),
        })
    }

    /// Returns all keys of the first layout that give a symbol, unshifted ones first.
    pub fn keys(&self, symbol: u32) -> Vec<MappedKey> {
        let (mut plain, mut shifted) = (Vec::new(), Vec::new());
        for (row, symbols) in self.symbols.chunks(self.per_key.max(1)).enumerate() {
            let code = self.first.saturating_add(row as u8);
            if symbols[0] == symbol {
                plain.push(MappedKey { code, shifted: false });
            }
            if symbols.get(1) == Some(&symbol) {
                shifted.push(MappedKey { code, shifted: true });
            }
        }
        shifted.retain(|key| !plain.iter().any(|plain| plain.code == key.code));
        [plain, shifted].concat()
    }

    /// Returns the modifier bit of the Num Lock key; no bit if the keyboard has none.
    pub(crate) fn num_lock(&self) -> ModMask {
        let codes: Vec<u8> = self.keys(NUM_LOCK).iter().map(|key| key.code).collect();
        let mut modifiers = self.modifiers.iter();
        let bit = modifiers.position(|keys| keys.iter().any(|code| codes.contains(code)));
        bit.map_or(ModMask::from(0u16), |bit| ModMask::from(1u16 << bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Keymap {
        Keymap {
            first: 8,
            per_key: 2,
            symbols: vec![0x31, 0x21, 0x3d, 0x2b, 0x61, 0x41, 0xff7f, 0, 0xffab, 0xffab],
            modifiers: vec![vec![], vec![], vec![], vec![], vec![11]],
        }
    }

    #[test]
    fn shift_is_needed_for_the_second_column_only() {
        let map = sample();
        assert_eq!(map.keys(0x31), vec![MappedKey { code: 8, shifted: false }]);
        assert_eq!(map.keys(0x2b), vec![MappedKey { code: 9, shifted: true }]);
        assert_eq!(map.keys(0xffab), vec![MappedKey { code: 12, shifted: false }]);
        assert_eq!(map.keys(0x99), vec![]);
    }

    #[test]
    fn num_lock_is_the_modifier_of_its_key() {
        assert_eq!(sample().num_lock(), ModMask::M2);
        assert_eq!(Keymap::default().num_lock(), ModMask::from(0u16));
    }

    /// Returns code and Shift of the keys with a name, on a US keyboard.
    fn codes(name: &str) -> Vec<(u8, bool)> {
        let (map, symbols) = (Keymap::of_places(), symbols(name).expect("a name"));
        let keys = symbols.iter().flat_map(|symbol| map.keys(*symbol));
        keys.map(|key| (key.code, key.shifted)).collect()
    }

    #[test]
    fn every_named_key_has_one_place_on_a_us_keyboard() {
        assert_eq!(codes("minus"), [(12, false), (74, false)]);
        assert_eq!(codes("plus"), [(13, true), (78, false)]);
        assert_eq!(codes("0"), [(11, false), (82, false)]);
        assert_eq!(codes("1"), [(2, false), (79, false)]);
        assert_eq!(
            [codes("a"), codes("z"), codes("/")],
            [[(30, false)], [(44, false)], [(53, false)]]
        );
        assert_eq!([codes("f1"), codes("f10"), codes("f12"), codes("f24")].concat().len(), 4);
        assert_eq!(
            [codes("f10"), codes("f12"), codes("f24")],
            [[(68, false)], [(88, false)], [(194, false)]]
        );
        let named = NAMES.iter().map(|(name, _)| (*name).to_owned());
        let digits = (0..10).map(|digit| digit.to_string());
        let keys = (1..=24).map(|number| format!("f{number}"));
        let letters = ('a'..='z').map(String::from);
        let places: Vec<(u8, bool)> =
            named.chain(digits).chain(keys).chain(letters).flat_map(|name| codes(&name)).collect();
        let different: std::collections::BTreeSet<_> = places.iter().collect();
        assert_eq!((places.len(), different.len()), (23 + 2 + 20 + 24 + 26, places.len()));
    }

    #[test]
    fn names_give_symbols() {
        assert_eq!(symbols("minus"), Some(vec![0x2d, 0xffad]));
        assert_eq!(symbols("0"), Some(vec![0x30, 0xffb0]));
        assert_eq!(symbols("f12"), Some(vec![0xffc9]));
        assert_eq!(symbols("x"), Some(vec![0x78]));
        assert_eq!(symbols("nonsense"), None);
        assert_eq!(symbols("f99"), None);
        assert_eq!(symbol('€'), 0x0100_20ac);
    }
}
