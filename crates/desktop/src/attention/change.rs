// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports about windows and the focus, with their bounds.

use crate::focus::PidSource;

/// Maximum number of followed windows.
pub const WINDOWS_MAX: usize = 256;
/// Maximum number of processes read from one window's `_TIPME_PROCESS_SET`: the first ones.
pub const HELPERS_MAX: usize = 64;

/// The process that a window belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowOwner {
    /// Its id at the time of the connection, in the server's pid name space if it comes from the
    /// server.
    pub pid: u32,
    /// Source of the id: [`PidSource::Property`] is only a claim of a client of unknown process.
    pub how: PidSource,
}

/// State of a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowState {
    /// The client's own window, not a frame around it.
    pub window: u32,
    /// Its process, if known.
    pub owner: Option<WindowOwner>,
    /// Processes named by `_TIPME_PROCESS_SET`, without duplicates and at most [`HELPERS_MAX`]. Any
    /// client may have written it.
    pub helpers: Vec<u32>,
    /// Some part of it is on the screen.
    pub visible: bool,
    /// The user has iconified it.
    pub iconic: bool,
}

/// A difference from the last report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttentionChange {
    /// The window with the keyboard focus, which has always been reported before; `None` if no
    /// followed window has it.
    Keyboard(Option<u32>),
    /// The window under the pointer, likewise.
    Pointer(Option<u32>),
    /// A window that is new or has changed.
    Window(WindowState),
    /// A window that is destroyed or withdrawn.
    Gone(u32),
}

/// Processes on which all windows of the display depend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Core {
    /// The display server.
    pub server_pid: u32,
    /// The window manager, if it announces itself (`_NET_SUPPORTING_WM_CHECK`) and the server knows
    /// its process.
    pub manager: Option<u32>,
}

/// Excess over the bounds, since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// Windows beyond [`WINDOWS_MAX`].
    pub windows: u64,
    /// Processes beyond [`HELPERS_MAX`] in one window's property.
    pub helpers: u64,
}
