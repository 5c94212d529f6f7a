// SPDX-License-Identifier: MIT OR Apache-2.0
//! What injects input into a display.

use crate::error::DisplayError;
use tipme_record::Nanos;

/// A keyboard and a pointer that exist only to a display server.
///
/// Each call sends at once and does not wait until the server has it; what is returned is when it was sent.
pub(super) trait InjectionDevice {
    /// The display, as people name it.
    fn display(&self) -> String;

    /// Presses or releases a key, by its code in the keymap that goes with the device.
    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, DisplayError>;

    /// Presses or releases a button, counted as X11 does: 1 to 3.
    fn button(&mut self, button: u8, pressed: bool) -> Result<Nanos, DisplayError>;

    /// Turns the wheel by one notch.
    fn turn_wheel(&mut self, down: bool) -> Result<Nanos, DisplayError>;

    /// Moves the pointer to a place on the screen, in pixels.
    fn move_to(&mut self, x: i16, y: i16) -> Result<Nanos, DisplayError>;

    /// Waits until the server has worked off everything sent so far.
    fn settle(&mut self) -> Result<(), DisplayError>;
}
