// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be typed at, of X11 or of Wayland: a display, a terminal on it, a keyboard, and an eye on it.

use crate::seen::DrawingSource;
use crate::session::PrivateSession;
use anyhow::Result;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use tipme_desktop::DisplayTarget;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::server::describe;

/// Where something is shown and typed at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Place {
    /// A private X server.
    #[default]
    X11,
    /// A private compositor of Wayland.
    Wayland,
    /// A compositor that runs, by the name or path of its socket.
    Compositor(String),
}

impl Place {
    /// For people.
    pub fn about(&self) -> String {
        match self {
            Place::X11 => "a private display".to_owned(),
            Place::Wayland => "a private compositor of Wayland".to_owned(),
            Place::Compositor(name) => name.clone(),
        }
    }
}

/// A display with room for a terminal.
pub trait TerminalScreen {
    /// As `tipme record --display` takes it: `:99` or `wayland-1`.
    fn name(&self) -> String;

    /// As `tipme manage --display` takes it: `:99` or the path of a compositor's socket.
    fn address(&self) -> String;

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

    /// Closes the terminal, where one is open.
    fn close_terminal(&mut self);

    /// The process of the terminal, where one is open.
    fn terminal_pid(&self) -> Option<u32>;

    /// The display where it is of X11.
    fn x11(&self) -> Option<DisplayTarget>;

    /// The process of the display server.
    fn server_pid(&self) -> Result<u32>;

    /// Begins to watch what is shown; `None` where the display does not tell.
    fn watch(&self) -> Result<Option<Box<dyn DrawingSource>>>;
}

impl TerminalScreen for PrivateSession {
    fn name(&self) -> String {
        self.display_name()
    }

    fn address(&self) -> String {
        self.display_name()
    }

    fn folder(&self) -> &Path {
        PrivateSession::folder(self)
    }

    fn show(&self, command: &mut Command) {
        PrivateSession::show(self, command);
    }

    fn typist(&self, pace: Pace) -> Result<Typist> {
        Ok(Typist::open(&self.target(), pace)?)
    }

    fn open_terminal(&mut self, _: &mut Typist, prefix: &[OsString], program: &[OsString]) -> Result<()> {
        PrivateSession::open_terminal(self, prefix, program)
    }

    fn close_terminal(&mut self) {
        PrivateSession::close_terminal(self);
    }

    fn terminal_pid(&self) -> Option<u32> {
        PrivateSession::terminal_pid(self)
    }

    fn x11(&self) -> Option<DisplayTarget> {
        Some(self.target())
    }

    fn server_pid(&self) -> Result<u32> {
        Ok(describe(&self.target())?.server_pid)
    }

    fn watch(&self) -> Result<Option<Box<dyn DrawingSource>>> {
        Ok(Some(Box::new(self.watch_terminal()?)))
    }
}
