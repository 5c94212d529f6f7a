// SPDX-License-Identifier: MIT OR Apache-2.0
//! What injects input into a display.

use crate::error::Error;
use tipme_record::Nanos;

/// A keyboard, and where there is one a pointer, that exist only to a display server.
///
/// Each call sends at once and does not wait until the server has it; what is returned is when it was sent.
pub(super) trait Device {
    /// The display, as people name it.
    fn display(&self) -> String;

    /// Presses or releases a key, by its code in the keymap that goes with the device.
    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, Error>;

    /// Presses or releases a button, counted as X11 does: 1 to 3, 4 and 5 for the wheel.
    fn button(&mut self, _button: u8, _pressed: bool) -> Result<Nanos, Error> {
        Err(Error::NoPointer { display: self.display() })
    }

    /// Moves the pointer to a place on the screen, in pixels.
    fn move_to(&mut self, _x: i16, _y: i16) -> Result<Nanos, Error> {
        Err(Error::NoPointer { display: self.display() })
    }

    /// Waits until the server has worked off everything sent so far.
    fn settle(&mut self) -> Result<(), Error>;
}
