// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of Wayland.

use tipme_record::wayland::WlWord;

/// A word of a Wayland message.
pub fn word(object: u32, opcode: u8, units: u8, hint: u8, argument: u32) -> WlWord {
    WlWord { object, opcode, units, hint, unused: 0, argument }
}
