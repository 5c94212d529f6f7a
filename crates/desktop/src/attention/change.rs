// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told of windows and of who has the attention, and within which bounds.

use crate::focus::PidSource;

/// Windows that are followed, at most.
pub const WINDOWS_MAX: usize = 256;
/// Processes that are read of one window's `_TIPME_PROCESS_SET`, at most: the first ones.
pub const HELPERS_MAX: usize = 64;

/// The process that a window belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowOwner {
    /// Its id when it connected, in the server's own pid name space where the server told it.
    pub pid: u32,
    /// Who says so: [`PidSource::Property`] is only what a client of unknown process says of itself.
    pub how: PidSource,
}

/// A window as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowState {
    /// The client's own window, not a frame around it.
    pub window: u32,
    /// Its process, as far as that can be known.
    pub owner: Option<WindowOwner>,
    /// What `_TIPME_PROCESS_SET` names: no process twice, at most [`HELPERS_MAX`]. Anybody may have written it.
    pub helpers: Vec<u32>,
    /// Some part of it is on the screen.
    pub visible: bool,
    /// The user has made it an icon.
    pub iconic: bool,
}

/// One thing that is different from what was told before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttentionChange {
    /// The window with the keyboard focus; always one that was told of. `None`: no window that is followed.
    Keyboard(Option<u32>),
    /// The window under the pointer, likewise.
    Pointer(Option<u32>),
    /// A window that is new or has changed.
    Window(WindowState),
    /// A window that is destroyed or withdrawn.
    Gone(u32),
}

/// The processes that every window of the display depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Core {
    /// The display server.
    pub server_pid: u32,
    /// The window manager, where one runs that says so (`_NET_SUPPORTING_WM_CHECK`) and the server knows its process.
    pub manager: Option<u32>,
}

/// What was left out because of a bound, since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dropped {
    /// Windows beyond [`WINDOWS_MAX`].
    pub windows: u64,
    /// Processes beyond [`HELPERS_MAX`] in one window's property.
    pub helpers: u64,
}
