// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be typed at, of X11 or of Wayland: a display, a terminal on it, a keyboard, and an eye on it.

use crate::seen::Drawings;
use crate::session::Session;
use anyhow::Result;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use tipme_desktop::inject::{Pace, Typist};

/// A display with room for a terminal.
pub trait Screen {
    /// As `tipme record --display` takes it: `:99` or `wayland-1`.
    fn name(&self) -> String;

    /// A folder that goes with the value; programs on the terminal can read what is in it.
    fn folder(&self) -> &Path;

    /// Sets the variables by which a program finds the display.
    fn show(&self, command: &mut Command);

    /// A keyboard at it.
    fn typist(&self, pace: Pace) -> Result<Typist>;

    /// Opens a terminal that runs `program`, and waits until keys of `typist` arrive there.
    ///
    /// `prefix` is put before the terminal's own command, for instance to enter a name space.
    fn open_terminal(&mut self, typist: &mut Typist, prefix: &[OsString], program: &[OsString]) -> Result<()>;

    /// Begins to watch what is shown; `None` where the display does not tell.
    fn watch(&self) -> Result<Option<Box<dyn Drawings>>>;
}

impl Screen for Session {
    fn name(&self) -> String {
        self.display_name()
    }

    fn folder(&self) -> &Path {
        Session::folder(self)
    }

    fn show(&self, command: &mut Command) {
        Session::show(self, command);
    }

    fn typist(&self, pace: Pace) -> Result<Typist> {
        Ok(Typist::open(&self.target(), pace)?)
    }

    fn open_terminal(&mut self, _: &mut Typist, prefix: &[OsString], program: &[OsString]) -> Result<()> {
        Session::open_terminal(self, prefix, program)
    }

    fn watch(&self) -> Result<Option<Box<dyn Drawings>>> {
        Ok(Some(Box::new(self.watch_terminal()?)))
    }
}
