// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input devices for injection into a display.

use crate::error::DisplayError;
use tipme_record::Nanos;

/// A virtual keyboard and pointer of a display server.
///
/// Each call sends at once without waiting for the server, and returns the time of sending.
pub(super) trait InjectionDevice {
    /// Name of the display for output.
    fn display(&self) -> String;

    /// Presses or releases a key, by its code in the device's keymap.
    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, DisplayError>;

    /// Presses or releases a button, numbered as in X11: 1 to 3.
    fn button(&mut self, button: u8, pressed: bool) -> Result<Nanos, DisplayError>;

    /// Turns the wheel by one notch.
    fn turn_wheel(&mut self, down: bool) -> Result<Nanos, DisplayError>;

    /// Moves the pointer to a position on the screen, in pixels.
    fn move_to(&mut self, x: i16, y: i16) -> Result<Nanos, DisplayError>;

    /// Waits until the server has processed everything sent so far.
    fn settle(&mut self) -> Result<(), DisplayError>;
}
