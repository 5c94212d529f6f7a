// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words behind a [`WlMessage`](crate::records::WlMessage), declared once as the records are.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What is kept of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WlWord {
    pub object: u32,
    pub opcode: u8,
    /// Length in units of four bytes, 255 for more.
    pub units: u8,
    /// What its arguments look like: one of [`HINTS`].
    pub hint: u8,
    pub unused: u8,
    /// The argument that this hint or opcode keeps; else 0.
    pub argument: u32,
}

impl WlWord {
    /// Bytes of one word.
    pub const SIZE: usize = size_of::<WlWord>();

    /// The first words behind the fixed part of a record.
    pub fn list(tail: &[u8], operations: u8) -> impl Iterator<Item = WlWord> {
        let words = tail.chunks_exact(WlWord::SIZE).take(usize::from(operations));
        words.filter_map(|bytes| WlWord::read_from_bytes(bytes).ok())
    }
}

/// Declares hints: `/// doc` `NAME = value,`.
macro_rules! hints {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal,)*) => {
        $($(#[doc = $doc])* pub const $name: u8 = $value;)*

        /// All hints: name, value, meaning.
        pub const HINTS: &[(&str, u8, &str)] = &[$((stringify!($name), $value, concat!($($doc,)*)),)*];
    };
}

hints! {
    /// A key or button was released.
    RELEASED = 1,
    /// A key or button was pressed.
    PRESSED = 2,
    /// A key is repeated by the compositor.
    REPEATED = 3,
    /// A list fills the rest, as where a keyboard enters a surface; the argument is the surface.
    ENTERED = 4,
    /// Modifiers of a keyboard.
    MODIFIERS = 5,
    /// A pointer moved.
    MOVED = 6,
    /// A wheel was turned.
    SCROLLED = 7,
    /// Who stands for the person presses a key.
    MAKES_KEY = 8,
    /// Who stands for the person presses a button.
    MAKES_BUTTON = 9,
    /// A client binds `wl_compositor`; the argument is the new object.
    COMPOSITOR = 10,
    /// A client binds `wl_seat`; the argument is the new object.
    SEAT = 11,
    /// Input that somebody does not want recorded; nothing else is told of it.
    HIDDEN = 12,
    /// What was committed was shown; the argument is when, in microseconds modulo 2^32.
    PRESENTED = 13,
    /// Added to 1 to 3: its code is that of a mouse button.
    BUTTON = 64,
    /// Added to 1 to 3: the argument is a time stamp in milliseconds, which is near.
    NEAR = 128,
}

/// The bits of a hint that are no addition.
pub const SHAPE: u8 = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_far_as_they_are_whole() {
        let bytes = [7, 0, 0, 0, 3, 6, PRESSED | NEAR, 0, 1, 2, 0, 0];
        let word = WlWord { object: 7, opcode: 3, units: 6, hint: PRESSED | NEAR, unused: 0, argument: 513 };
        let tail = [&bytes[..], &bytes[..], &bytes[..5]].concat();
        assert_eq!(WlWord::list(&tail, 9).collect::<Vec<_>>(), [word, word]);
        assert_eq!(WlWord::list(&tail, 1).count(), 1);
        assert_eq!(WlWord::list(&[], 3).count(), 0);
    }
}
