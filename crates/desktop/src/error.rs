// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of operations on the desktop.

use x11rb::errors::{ConnectError, ConnectionError, ReplyError, ReplyOrIdError};

/// A failure with its reason and, if there is one, its remedy.
#[derive(Debug, thiserror::Error)]
pub enum DisplayError {
    /// There is nothing to connect to.
    #[error(
        "cannot connect to display :{display}: {reason}; start an X server or name another display"
    )]
    NoServer { display: u32, reason: String },
    /// The text does not name a display of this machine.
    #[error("\"{text}\" is not a display of this machine; name one like :0")]
    BadDisplay { text: String },
    /// The server exists but does not answer in time.
    #[error(
        "display :{display} did not answer within {limit_ms} ms: its server hangs or is stopped"
    )]
    Hung { display: u32, limit_ms: u128 },
    /// The server answered with a refusal.
    #[error(
        "display :{display} refused the connection: {reason}; \
         set XAUTHORITY to the server's authority file"
    )]
    Refused { display: u32, reason: String },
    /// The connection ended or a request failed.
    #[error("display :{display}: {reason}")]
    Lost { display: u32, reason: String },
    /// The server lacks an extension.
    #[error("display :{display} has no {extension} extension")]
    NoExtension { display: u32, extension: &'static str },
    /// No key of this keyboard gives the symbol.
    #[error("the keyboard of display {display} has no key for {key}; choose another key")]
    NoKey { display: String, key: String },
    /// A Wayland compositor is not there, does not answer, or refuses.
    #[error("{display}: {reason}")]
    Compositor { display: String, reason: String },
    /// A Wayland compositor offers no way for a program to press keys.
    #[error(
        "cannot type on {display}: it has neither zwp_virtual_keyboard_v1 (as sway has), \
         nor org_kde_kwin_fake_input (KWin, started with KWIN_WAYLAND_NO_PERMISSION_CHECKS=1, \
         for programs of its own user), nor org.gnome.Mutter.RemoteDesktop ({reason}); \
         try a private compositor: --display wayland"
    )]
    NoInjection { display: String, reason: String },
    /// A compositor lets a program type, but not move the pointer.
    #[error(
        "cannot move the pointer on {display}: it has no zwlr_virtual_pointer_v1; \
         try a private compositor: --display wayland"
    )]
    NoPointer { display: String },
    /// The text does not name a key.
    #[error("cannot read hot key \"{text}\": {reason}; write it like Ctrl+Alt+Minus")]
    BadChord { text: String, reason: String },
    /// Nothing arrived in the time allowed.
    #[error("display :{display}: no {what} within {limit_ms} ms")]
    Late { display: u32, what: String, limit_ms: u128 },
    /// Wayland programs could not paste a copied text.
    #[error(
        "cannot copy: this desktop requires a window for that; \
         run: tipme diagnose, and copy from there"
    )]
    NoClipboard,
    /// No daemon accepted a notification.
    #[error("no notification is shown: {reason}")]
    NoNotification { reason: String },
    /// A compositor is gone, or nothing reports its focus.
    #[error("display {}: {reason}", socket.display())]
    NoCompositor { socket: std::path::PathBuf, reason: String },
    /// The message bus of the session cannot be used.
    #[error("cannot reach an agent over the session bus: {reason}")]
    NoBus { reason: String },
    /// The desktop binds no shortcut.
    #[error("the desktop binds no shortcut: {reason}")]
    NoShortcuts { reason: String },
    /// A device or program outside the display failed.
    #[error("{what}: {cause}")]
    Io { what: String, cause: std::io::Error },
}

impl DisplayError {
    /// Returns `true` if the same attempt may succeed later: the server is away, hung or
    /// restarting.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            DisplayError::NoServer { .. } | DisplayError::Hung { .. } | DisplayError::Lost { .. }
        )
    }

    pub(crate) fn lost(display: u32, reason: impl ToString) -> DisplayError {
        DisplayError::Lost { display, reason: reason.to_string() }
    }
}

/// Common interface of x11rb's errors: detection of a timeout, and their text.
pub(crate) trait Failure: ToString {
    fn timed_out(&self) -> bool;
}

impl Failure for ConnectionError {
    fn timed_out(&self) -> bool {
        let ConnectionError::IoError(error) = self else { return false };
        error.kind() == std::io::ErrorKind::TimedOut
    }
}

impl Failure for ReplyError {
    fn timed_out(&self) -> bool {
        matches!(self, ReplyError::ConnectionError(error) if error.timed_out())
    }
}

impl Failure for ReplyOrIdError {
    fn timed_out(&self) -> bool {
        matches!(self, ReplyOrIdError::ConnectionError(error) if error.timed_out())
    }
}

impl Failure for ConnectError {
    fn timed_out(&self) -> bool {
        matches!(self, ConnectError::IoError(error) if error.kind() == std::io::ErrorKind::TimedOut)
    }
}
