// SPDX-License-Identifier: MIT OR Apache-2.0
//! Something that can go wrong, to whom it is done, and what was done.

use super::site::Site;
use anyhow::{Result, bail};
use std::ffi::OsString;

/// The application that suffers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum App {
    /// A small X client of our own that does what it is told before it draws.
    Patient,
    /// xterm, with a program on its terminal that does what it is told before it echoes.
    Xterm,
    /// foot, a terminal of Wayland, with the same program.
    Foot,
    /// A GTK text editor.
    Gtk,
    /// Chromium with a page that has a text field.
    Chromium,
    /// A GTK 4 text editor, on a compositor of Wayland.
    Gtk4,
    /// Chromium with the same page, on a compositor of Wayland.
    WaylandChromium,
}

/// Something that can go wrong.
pub struct Fault {
    /// On the command line and in the table.
    pub name: &'static str,
    /// For people, one line.
    pub about: &'static str,
    /// For each cause, the kinds that name it rightly: none for a clean run, two lists for a pair.
    pub kinds: &'static [&'static [&'static str]],
    /// The applications that it can be done to.
    pub apps: &'static [App],
    /// Programs that must be installed.
    pub programs: &'static [&'static str],
    /// The application, the display and the window manager run on one CPU, the site's.
    pub pinned: bool,
    /// Makes what the application needs before it starts.
    pub prepare: fn(&Site) -> Result<Box<dyn PreparedFault>>,
}

impl Fault {
    /// Done to our own applications, and takes no other program; the rest is to be said.
    pub(super) const OURS: Fault = Fault {
        name: "",
        about: "",
        kinds: &[],
        apps: App::OURS,
        programs: &[],
        pinned: false,
        prepare: |_| bail!("it is not said what goes wrong"),
    };
}

/// A fault that is prepared. Dropping it ends its processes and takes everything back.
pub trait PreparedFault {
    /// Words before the application's own command, for instance to enter a name space.
    fn prefix(&self) -> Vec<OsString> {
        Vec::new()
    }

    /// Called once the application, of this process, has been used calmly: starts the jobs and gives
    /// the application its orders; returns when everything is in effect. Then one key is pressed.
    ///
    /// `app` is the process with the window. In xterm orders are obeyed by another one below it; which one it is in
    /// either application of ours is told by [`patient::pid`](super::patient::pid) from the site's folder.
    fn begin(&mut self, app: u32) -> Result<()>;

    /// Called when the key was answered: ends the jobs, and tells what was done.
    fn end(&mut self) -> Result<InjectedCauses>;
}

/// What was done, in the order of [`Fault::kinds`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InjectedCauses {
    pub causes: Vec<InjectedCause>,
}

/// One cause of what the key had to wait for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InjectedCause {
    /// Processes any of which is the right culprit; empty where none is.
    pub pids: Vec<u32>,
    /// Words any of which a culprit that is not a process contains, such as an address or a device.
    pub names: Vec<String>,
    /// How long the key was delayed by it, measured by whoever did it; `None` where it is what the key
    /// took longer than usual, as seen on the screen.
    pub ms: Option<f64>,
}
