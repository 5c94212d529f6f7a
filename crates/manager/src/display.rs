// SPDX-License-Identifier: MIT OR Apache-2.0
//! The managed display: an X server, which reports its windows itself, or a compositor, for which
//! the recorder reports the keyboard focus.

use crate::compositor::CompositorFocus;
use rustix::fd::BorrowedFd;
use std::fmt;
use std::path::{Path, PathBuf};
use tipme_desktop::attention::{Attention, AttentionChange, Core, Dropped};
use tipme_desktop::{DisplayError, DisplayTarget, server};

/// Extension by which an X server identifies the processes of its clients.
const RESOURCE_EXTENSION: &str = "X-Resource";

/// Address of a display.
#[derive(Clone, Debug)]
pub(crate) enum DisplayAddress {
    X11(DisplayTarget),
    /// Socket of a compositor, and the folder of the recorder.
    Wayland(PathBuf, PathBuf),
}

impl fmt::Display for DisplayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DisplayAddress::X11(target) => write!(f, ":{}", target.display),
            DisplayAddress::Wayland(socket, _) => {
                write!(f, "{}", socket.file_name().unwrap_or_default().display())
            }
        }
    }
}

pub(crate) enum AttendedDisplay {
    X11(Box<Attention>),
    Wayland(Box<CompositorFocus>),
}

impl AttendedDisplay {
    /// Connects to the display.
    ///
    /// # Errors
    /// Fails if no server answers, or no source of focus changes exists.
    pub(crate) fn open(
        address: &DisplayAddress,
        proc: &Path,
    ) -> Result<AttendedDisplay, DisplayError> {
        match address {
            DisplayAddress::X11(target) => {
                Ok(AttendedDisplay::X11(Box::new(Attention::open(target)?)))
            }
            DisplayAddress::Wayland(socket, recorder) => Ok(AttendedDisplay::Wayland(Box::new(
                CompositorFocus::open(socket, recorder, proc)?,
            ))),
        }
    }

    /// Descriptors that become readable when there may be changes.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            AttendedDisplay::X11(attention) => vec![attention.fd()],
            AttendedDisplay::Wayland(compositor) => compositor.fds(),
        }
    }

    /// Returns the changes since the last call; the whole state at the first one.
    ///
    /// # Errors
    /// Fails if the display is gone, or does not answer.
    pub(crate) fn changes(&mut self) -> Result<Vec<AttentionChange>, DisplayError> {
        match self {
            AttendedDisplay::X11(attention) => attention.changes(),
            AttendedDisplay::Wayland(compositor) => compositor.changes(),
        }
    }

    /// Polls the state for which the display sends no events.
    ///
    /// # Errors
    /// Same as [`AttendedDisplay::changes`].
    pub(crate) fn look(&mut self) -> Result<Vec<AttentionChange>, DisplayError> {
        match self {
            AttendedDisplay::X11(_) => Ok(Vec::new()),
            AttendedDisplay::Wayland(compositor) => compositor.look(),
        }
    }

    /// Milliseconds since the last user input; `None` if no source reports it.
    ///
    /// # Errors
    /// Same as [`AttendedDisplay::changes`].
    pub(crate) fn idle_ms(&self) -> Result<Option<u64>, DisplayError> {
        match self {
            AttendedDisplay::X11(attention) => attention.idle_ms(),
            AttendedDisplay::Wayland(_) => Ok(None),
        }
    }

    /// Returns the error for a display that is gone for this reason.
    pub(crate) fn gone(&self, reason: &str) -> DisplayError {
        let reason = reason.to_owned();
        match self {
            AttendedDisplay::X11(attention) => {
                DisplayError::Lost { display: attention.display(), reason }
            }
            AttendedDisplay::Wayland(compositor) => compositor.gone(reason),
        }
    }

    pub(crate) fn core(&self) -> Core {
        match self {
            AttendedDisplay::X11(attention) => attention.core(),
            AttendedDisplay::Wayland(compositor) => compositor.core(),
        }
    }

    /// Counts of state dropped at the bounds.
    pub(crate) fn dropped(&self) -> Dropped {
        match self {
            AttendedDisplay::X11(attention) => attention.dropped(),
            AttendedDisplay::Wayland(compositor) => compositor.dropped(),
        }
    }
}

/// Returns `true` if the processes of a display's clients are known.
///
/// # Errors
/// Fails if the display does not answer.
pub(crate) fn knows_clients(address: &DisplayAddress) -> Result<bool, DisplayError> {
    let DisplayAddress::X11(target) = address else { return Ok(true) };
    let extensions = server::describe(target)?.extensions;
    Ok(extensions.iter().any(|extension| extension.name == RESOURCE_EXTENSION))
}
