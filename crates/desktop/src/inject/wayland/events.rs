// SPDX-License-Identifier: MIT OR Apache-2.0
//! How compositors count buttons, notches of the wheel and time.

use tipme_record::Nanos;

/// How far a notch of the wheel scrolls, as compositors count it.
const NOTCH: f64 = 15.0;

/// The evdev code of a button that is counted as X11 does.
pub(super) fn button_code(button: u8) -> u32 {
    const BTN_LEFT: u32 = 0x110;
    match button {
        2 => BTN_LEFT + 2,
        3 => BTN_LEFT + 1,
        other => BTN_LEFT + u32::from(other.saturating_sub(1)),
    }
}

/// How far the wheel is turned, in the direction of the content.
pub(super) fn notch(down: bool) -> f64 {
    if down { NOTCH } else { -NOTCH }
}

/// The clock of input devices: milliseconds, which go round.
pub(super) fn stamp(at: Nanos) -> u32 {
    (at.0 / 1_000_000) as u32
}
