// SPDX-License-Identifier: MIT OR Apache-2.0
//! X11 or Wayland display to type at, with a terminal, a keyboard, and a source of drawing events.

use crate::seen::DrawingSource;
use crate::session::PrivateSession;
use anyhow::Result;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use tipme_desktop::DisplayTarget;
use tipme_desktop::inject::{Pace, Typist};
use tipme_desktop::server::describe;

/// A display to type at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Place {
    /// A private X server.
    #[default]
    X11,
    /// A private Wayland compositor.
    Wayland,
    /// A running compositor, by the name or path of its socket.
    Compositor(String),
}

impl Place {
    /// Description for output.
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
    /// Name for `tipme record --display`: `:99` or `wayland-1`.
    fn name(&self) -> String;

    /// Name for `tipme manage --display`: `:99` or the path of a compositor's socket.
    fn address(&self) -> String;

    /// Folder that is removed with the value, readable by programs on the terminal.
    fn folder(&self) -> &Path;

    /// Sets the environment variables that locate the display.
    fn show(&self, command: &mut Command);

    /// Opens a keyboard on the display.
    fn typist(&self, pace: Pace) -> Result<Typist>;

    /// Opens a terminal that runs `program`, and waits until keys of `typist` arrive there.
    ///
    /// `prefix` is put before the terminal's own command, for instance to enter a name space.
    fn open_terminal(
        &mut self,
        typist: &mut Typist,
        prefix: &[OsString],
        program: &[OsString],
    ) -> Result<()>;

    /// Closes the terminal, if one is open.
    fn close_terminal(&mut self);

    /// Process of the terminal, if one is open.
    fn terminal_pid(&self) -> Option<u32>;

    /// The display, if it is an X11 one.
    fn x11(&self) -> Option<DisplayTarget>;

    /// Process of the display server.
    fn server_pid(&self) -> Result<u32>;

    /// Starts watching drawings; `None` if the display does not report them.
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

    fn open_terminal(
        &mut self,
        _: &mut Typist,
        prefix: &[OsString],
        program: &[OsString],
    ) -> Result<()> {
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
