// SPDX-License-Identifier: MIT OR Apache-2.0
//! Desktop interfaces: X11 displays, hot keys, input injection (also into Wayland compositors),
//! focus, dialogs, popups, evdev devices and the text console.
//!
//! Nothing here may block its caller for long: every exchange with a display server has a time
//! limit, since a hung server is just what the recorder is there to explain. A display that is not
//! usable is a [`DisplayError`] with its reason, and the caller continues without it.

#![warn(unreachable_pub)]

pub mod attention;
mod auth;
pub mod chords;
pub mod clipboard;
pub mod clock;
pub mod compositor;
mod connect;
pub mod console;
pub mod dialog;
pub mod echo;
mod error;
mod focus;
mod framing;
mod fuzz;
pub mod grab;
pub mod hotkeys;
pub mod inject;
pub mod input;
pub mod keymap;
pub mod kglobalaccel;
pub mod logind;
pub mod notify;
pub mod on_bus;
mod plain;
pub mod polkit;
pub mod popup;
pub mod portal;
pub mod presence;
pub mod server;
pub mod session_bus;
pub mod session_end;
pub mod window;

pub use auth::authority_file;
pub use connect::{DisplayConnection, DisplayTarget};
pub use error::DisplayError;
pub use focus::{FocusedWindow, PidSource, focus};
pub use fuzz::exercise;
