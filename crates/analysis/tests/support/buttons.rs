// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buttons of a mouse.

use super::{APP, Machinery, SERVER, WINDOW};

const BUTTON_PRESS: [u8; 4] = [4, 0, 0, 0];
const BUTTON_RELEASE: [u8; 4] = [5, 0, 0, 0];

impl Machinery {
    /// The server sends a button press to the application, which runs from 200 µs later on.
    pub fn press_button(&mut self, us: u64) -> &mut Self {
        self.send_button(us, BUTTON_PRESS)
    }

    /// The same for a button release.
    pub fn release_button(&mut self, us: u64) -> &mut Self {
        self.send_button(us, BUTTON_RELEASE)
    }

    fn send_button(&mut self, us: u64, event: [u8; 4]) -> &mut Self {
        self.wake_from(us, SERVER, 0, 2, 0).switch(us + 20, 0, SERVER, 0);
        self.wake_from(us + 100, APP, SERVER, 0, 1);
        self.message(us + 102, SERVER, WINDOW, 2, 32, &[event]).switch(us + 150, 0, 0, 1);
        self.switch(us + 200, 1, APP, 0).message(us + 250, APP, WINDOW, 3, 32, &[])
    }
}
