// SPDX-License-Identifier: MIT OR Apache-2.0
//! The display that is managed: an X server, which tells of its windows itself, or a compositor, of which the recorder
//! tells who has the keyboard focus.

use crate::compositor::CompositorFocus;
use rustix::fd::BorrowedFd;
use std::fmt;
use std::path::{Path, PathBuf};
use tipme_desktop::attention::{Attention, AttentionChange, Core, Dropped};
use tipme_desktop::{DisplayError, DisplayTarget, server};

/// The extension by which an X server says which processes its clients are.
const RESOURCE_EXTENSION: &str = "X-Resource";

/// Where a display is.
#[derive(Clone, Debug)]
pub(crate) enum DisplayAddress {
    X11(DisplayTarget),
    /// The socket of a compositor, and the folder of the recorder.
    Wayland(PathBuf, PathBuf),
}

impl fmt::Display for DisplayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DisplayAddress::X11(target) => write!(f, ":{}", target.display),
            DisplayAddress::Wayland(socket, _) => write!(f, "{}", socket.file_name().unwrap_or_default().display()),
        }
    }
}

pub(crate) enum AttendedDisplay {
    X11(Box<Attention>),
    Wayland(Box<CompositorFocus>),
}

impl AttendedDisplay {
    /// Connects.
    ///
    /// # Errors
    /// Where nobody answers, or nobody tells of the focus.
    pub(crate) fn open(address: &DisplayAddress, proc: &Path) -> Result<AttendedDisplay, DisplayError> {
        match address {
            DisplayAddress::X11(target) => Ok(AttendedDisplay::X11(Box::new(Attention::open(target)?))),
            DisplayAddress::Wayland(socket, recorder) => {
                Ok(AttendedDisplay::Wayland(Box::new(CompositorFocus::open(socket, recorder, proc)?)))
            }
        }
    }

    /// Become readable when there may be changes.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            AttendedDisplay::X11(attention) => vec![attention.fd()],
            AttendedDisplay::Wayland(compositor) => compositor.fds(),
        }
    }

    /// What has changed since the last call; the whole state at the first one.
    ///
    /// # Errors
    /// Where the display is gone, or does not answer.
    pub(crate) fn changes(&mut self) -> Result<Vec<AttentionChange>, DisplayError> {
        match self {
            AttendedDisplay::X11(attention) => attention.changes(),
            AttendedDisplay::Wayland(compositor) => compositor.changes(),
        }
    }

    /// What is to be looked at now and then, since nobody tells.
    ///
    /// # Errors
    /// As [`AttendedDisplay::changes`].
    pub(crate) fn look(&mut self) -> Result<Vec<AttentionChange>, DisplayError> {
        match self {
            AttendedDisplay::X11(_) => Ok(Vec::new()),
            AttendedDisplay::Wayland(compositor) => compositor.look(),
        }
    }

    /// Milliseconds since the last input of the user; `None` where nobody tells.
    ///
    /// # Errors
    /// As [`AttendedDisplay::changes`].
    pub(crate) fn idle_ms(&self) -> Result<Option<u64>, DisplayError> {
        match self {
            AttendedDisplay::X11(attention) => attention.idle_ms(),
            AttendedDisplay::Wayland(_) => Ok(None),
        }
    }

    /// That it is there no longer, for this reason.
    pub(crate) fn gone(&self, reason: &str) -> DisplayError {
        let reason = reason.to_owned();
        match self {
            AttendedDisplay::X11(attention) => DisplayError::Lost { display: attention.display(), reason },
            AttendedDisplay::Wayland(compositor) => compositor.gone(reason),
        }
    }

    pub(crate) fn core(&self) -> Core {
        match self {
            AttendedDisplay::X11(attention) => attention.core(),
            AttendedDisplay::Wayland(compositor) => compositor.core(),
        }
    }

    /// What was left out because of a bound.
    pub(crate) fn dropped(&self) -> Dropped {
        match self {
            AttendedDisplay::X11(attention) => attention.dropped(),
            AttendedDisplay::Wayland(compositor) => compositor.dropped(),
        }
    }
}

/// Whether it is known which processes the clients of a display are.
///
/// # Errors
/// Where the display does not answer.
pub(crate) fn knows_clients(address: &DisplayAddress) -> Result<bool, DisplayError> {
    let DisplayAddress::X11(target) = address else { return Ok(true) };
    let extensions = server::describe(target)?.extensions;
    Ok(extensions.iter().any(|extension| extension.name == RESOURCE_EXTENSION))
}
