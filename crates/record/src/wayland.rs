// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words after a [`WlMessage`](crate::records::WlMessage), declared like the records.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Kept part of one message.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct WlWord {
    pub object: u32,
    pub opcode: u8,
    /// Length in units of four bytes, 255 for more.
    pub units: u8,
    /// Appearance of its arguments: one of [`HINTS`].
    pub hint: u8,
    pub unused: u8,
    /// Argument kept for this hint or opcode; else 0.
    pub argument: u32,
}

impl WlWord {
    /// Bytes of one word.
    pub const SIZE: usize = size_of::<WlWord>();

    /// Returns its opcode and length.
    pub fn shape(&self) -> MessageShape {
        MessageShape { opcode: self.opcode, units: self.units }
    }

    /// Returns up to `operations` words of a record's tail.
    pub fn list(tail: &[u8], operations: u8) -> impl Iterator<Item = WlWord> {
        let words = tail.chunks_exact(WlWord::SIZE).take(usize::from(operations));
        words.filter_map(|bytes| WlWord::read_from_bytes(bytes).ok())
    }
}

/// Visible shape of a message: its opcode, and its length in units of four bytes including eight
/// bytes of head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageShape {
    pub opcode: u8,
    pub units: u8,
}

impl MessageShape {
    /// Returns the second word of such a message on the wire.
    pub(crate) const fn head(self) -> u32 {
        (self.units as u32 * 4) << 16 | self.opcode as u32
    }
}

/// Declares shapes: `/// doc` `NAME = (opcode, units),`.
macro_rules! shapes {
    ($($(#[doc = $doc:literal])* $name:ident = ($opcode:literal, $units:literal),)*) => {
        $(
            $(#[doc = $doc])*
            pub const $name: MessageShape = MessageShape { opcode: $opcode, units: $units };
        )*

        /// All shapes by name.
        pub(crate) const SHAPES: &[(&str, MessageShape)] = &[$((stringify!($name), $name),)*];
    };
}

/// Messages of interest. On the wire an object has a number but no interface, so other messages may
/// have the same shape.
pub mod shape {
    use super::MessageShape;

    shapes! {
        /// Events `wl_keyboard.key` and `wl_pointer.button`: serial, time, key or button, state.
        KEY = (3, 6),
        /// Event `zwp_input_method_keyboard_grab_v2.key`: serial, time, key, state.
        GRABBED_KEY = (1, 6),
        /// Event `wl_keyboard.modifiers`: serial, four words of modifiers.
        MODIFIERS = (4, 7),
        /// Event `wl_keyboard.enter` where no key is held: serial, surface, and the length of the
        /// list of held keys behind it.
        ENTER = (1, 5),
        /// Event `wl_keyboard.leave`: serial, surface.
        LEAVE = (2, 4),
        /// Event `wl_pointer.motion`: time, x, y.
        MOTION = (2, 5),
        /// Event `wl_pointer.axis`: time, axis, distance.
        AXIS = (4, 5),
        /// Event `zwp_text_input_v3.done`: serial.
        TEXT_DONE = (5, 3),
        /// Event `wl_callback.done`: data.
        CALLBACK_DONE = (0, 3),
        /// Event `wl_display.delete_id`: the object.
        DELETE_ID = (1, 3),
        /// Event `wp_presentation_feedback.presented`: high and low half of the seconds,
        /// nanoseconds, refresh, two halves of a counter, flags.
        PRESENTED = (1, 9),
        /// Requests `wl_compositor.create_surface`, `wl_seat.get_pointer` and `wl_display.sync`:
        /// the new object.
        MAKE_FIRST = (0, 3),
        /// Request `wl_seat.get_keyboard`: the new object.
        MAKE_SECOND = (1, 3),
        /// Request `wl_surface.attach`: buffer, x, y.
        ATTACH = (1, 5),
        /// Request `wl_surface.frame`: the new callback.
        FRAME = (3, 3),
        /// Request `wl_surface.commit`.
        COMMIT = (6, 2),
        /// Request `wp_presentation.feedback`: surface, the new object.
        FEEDBACK = (1, 4),
        /// Request `zwp_virtual_keyboard_v1.key`: time, key, state.
        VIRTUAL_KEY = (1, 5),
        /// Request `zwlr_virtual_pointer_v1.button`: time, button, state.
        VIRTUAL_BUTTON = (2, 5),
        /// Request `wl_registry.bind` of `wl_seat`: name, the interface's text, version, the new
        /// object.
        BIND_SEAT = (0, 8),
        /// Request `wl_registry.bind` of `wl_compositor`: the same.
        BIND_COMPOSITOR = (0, 10),
    }
}

/// Declares hints: `/// doc` `NAME = value,`.
macro_rules! hints {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal,)*) => {
        $($(#[doc = $doc])* pub const $name: u8 = $value;)*

        /// All hints: name, value, meaning.
        pub const HINTS: &[(&str, u8, &str)] =
            &[$((stringify!($name), $value, concat!($($doc,)*)),)*];
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
    /// A client that injects input presses a key.
    MAKES_KEY = 8,
    /// A client that injects input presses a button.
    MAKES_BUTTON = 9,
    /// A client binds `wl_compositor`; the argument is the new object.
    COMPOSITOR = 10,
    /// A client binds `wl_seat`; the argument is the new object.
    SEAT = 11,
    /// Input excluded from recording; the word has no other information about it.
    HIDDEN = 12,
    /// A commit was presented; the argument is the time in microseconds modulo 2^32.
    PRESENTED = 13,
    /// An input method has put in some text, or changed what it shows of it.
    TEXT = 14,
    /// A client requests the copied text, or the owner of the text receives the request.
    COPIED = 15,
    /// Added to 1 to 3: its code is that of a mouse button.
    BUTTON = 64,
    /// Added to 1 to 3: the argument is a time stamp in milliseconds, which is near.
    NEAR = 128,
}

/// Mask of a hint without its flags.
pub const SHAPE: u8 = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_far_as_they_are_whole() {
        let bytes = [7, 0, 0, 0, 3, 6, PRESSED | NEAR, 0, 1, 2, 0, 0];
        let word = WlWord {
            object: 7,
            opcode: 3,
            units: 6,
            hint: PRESSED | NEAR,
            unused: 0,
            argument: 513,
        };
        let tail = [&bytes[..], &bytes[..], &bytes[..5]].concat();
        assert_eq!(WlWord::list(&tail, 9).collect::<Vec<_>>(), [word, word]);
        assert_eq!(WlWord::list(&tail, 1).count(), 1);
        assert_eq!(WlWord::list(&[], 3).count(), 0);
    }
}
