// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input injected into an X display, by the XTEST extension.

use super::device::InjectionDevice;
use crate::clock;
use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use tipme_record::Nanos;
use x11rb::protocol::xproto::ConnectionExt as _;
use x11rb::protocol::xtest::ConnectionExt as _;

const KEY_PRESS: u8 = 2;
const KEY_RELEASE: u8 = 3;
const BUTTON_PRESS: u8 = 4;
const BUTTON_RELEASE: u8 = 5;
const MOTION: u8 = 6;

/// Buttons for a notch of the wheel.
const WHEEL_UP: u8 = 4;
const WHEEL_DOWN: u8 = 5;

/// The extension on a connection.
pub(super) struct Xtest {
    pub(super) connection: DisplayConnection,
}

impl Xtest {
    /// Connects to a display that has the extension.
    pub(super) fn open(target: &DisplayTarget) -> Result<Xtest, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        let missing = DisplayError::NoExtension { display: target.display, extension: "XTEST" };
        let version = connection.wire().xtest_get_version(2, 2).map_err(|_| missing)?;
        version.reply().map_err(|error| connection.failed(error))?;
        Ok(Xtest { connection })
    }

    fn send(&self, kind: u8, detail: u8, (x, y): (i16, i16)) -> Result<Nanos, DisplayError> {
        let root = self.connection.root();
        let wire = self.connection.wire();
        self.connection.send(wire.xtest_fake_input(kind, detail, 0, root, x, y, 0))?;
        let at = clock::now();
        self.connection.flush()?;
        Ok(at)
    }
}

impl InjectionDevice for Xtest {
    fn display(&self) -> String {
        format!(":{}", self.connection.display())
    }

    fn key(&mut self, code: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.send(if pressed { KEY_PRESS } else { KEY_RELEASE }, code, (0, 0))
    }

    fn button(&mut self, button: u8, pressed: bool) -> Result<Nanos, DisplayError> {
        self.send(if pressed { BUTTON_PRESS } else { BUTTON_RELEASE }, button, (0, 0))
    }

    fn turn_wheel(&mut self, down: bool) -> Result<Nanos, DisplayError> {
        let button = if down { WHEEL_DOWN } else { WHEEL_UP };
        let at = self.button(button, true)?;
        self.button(button, false)?;
        Ok(at)
    }

    fn move_to(&mut self, x: i16, y: i16) -> Result<Nanos, DisplayError> {
        self.send(MOTION, 0, (x, y))
    }

    fn settle(&mut self) -> Result<(), DisplayError> {
        self.connection.reply(self.connection.wire().get_input_focus()).map(drop)
    }
}
