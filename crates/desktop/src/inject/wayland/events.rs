// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units of compositors for buttons, wheel notches and time.

use tipme_record::Nanos;

/// Scroll distance of a wheel notch.
const NOTCH: f64 = 15.0;

/// Returns the evdev code of a button numbered as in X11.
pub(super) fn button_code(button: u8) -> u32 {
    const BTN_LEFT: u32 = 0x110;
    match button {
        2 => BTN_LEFT + 2,
        3 => BTN_LEFT + 1,
        other => BTN_LEFT + u32::from(other.saturating_sub(1)),
    }
}

/// Returns the scroll distance of a notch, in the direction of the content.
pub(super) fn notch(down: bool) -> f64 {
    if down { NOTCH } else { -NOTCH }
}

/// Converts to the clock of input devices: milliseconds that wrap around.
pub(super) fn stamp(at: Nanos) -> u32 {
    (at.0 / 1_000_000) as u32
}
