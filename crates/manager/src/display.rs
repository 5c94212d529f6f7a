// SPDX-License-Identifier: MIT OR Apache-2.0
//! The display that is managed: an X server, which tells of its windows itself, or a compositor, of which the recorder tells who
//! has the keyboard focus.

use crate::compositor::Compositor;
use rustix::fd::BorrowedFd;
use std::fmt;
use std::path::{Path, PathBuf};
use tipme_desktop::attention::{Attention, Change, Core, Dropped};
use tipme_desktop::{Error, Target, server};

/// The extension by which an X server says which processes its clients are.
const RESOURCE_EXTENSION: &str = "X-Resource";

/// Where a display is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    X11(Target),
    /// The socket of a compositor, and the folder of the recorder.
    Wayland(PathBuf, PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::X11(target) => write!(f, ":{}", target.display),
            Place::Wayland(socket, _) => write!(f, "{}", socket.file_name().unwrap_or_default().display()),
        }
    }
}

pub(crate) enum Display {
    X11(Box<Attention>),
    Wayland(Box<Compositor>),
}

impl Display {
    /// Connects.
    ///
    /// # Errors
    /// Where nobody answers, or nobody tells of the focus.
    pub(crate) fn open(place: &Place, proc: &Path) -> Result<Display, Error> {
        match place {
            Place::X11(target) => Ok(Display::X11(Box::new(Attention::open(target)?))),
            Place::Wayland(socket, recorder) => {
                Ok(Display::Wayland(Box::new(Compositor::open(socket, recorder, proc)?)))
            }
        }
    }

    /// Become readable when there may be changes.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Display::X11(attention) => vec![attention.fd()],
            Display::Wayland(compositor) => compositor.fds(),
        }
    }

    /// What has changed since the last call; the whole state at the first one.
    ///
    /// # Errors
    /// Where the display is gone, or does not answer.
    pub(crate) fn changes(&mut self) -> Result<Vec<Change>, Error> {
        match self {
            Display::X11(attention) => attention.changes(),
            Display::Wayland(compositor) => compositor.changes(),
        }
    }

    /// What is to be looked at now and then, since nobody tells.
    ///
    /// # Errors
    /// As [`Display::changes`].
    pub(crate) fn look(&mut self) -> Result<Vec<Change>, Error> {
        match self {
            Display::X11(_) => Ok(Vec::new()),
            Display::Wayland(compositor) => compositor.look(),
        }
    }

    /// Milliseconds since the last input of the user; `None` where nobody tells.
    ///
    /// # Errors
    /// As [`Display::changes`].
    pub(crate) fn idle_ms(&self) -> Result<Option<u64>, Error> {
        match self {
            Display::X11(attention) => attention.idle_ms(),
            Display::Wayland(_) => Ok(None),
        }
    }

    pub(crate) fn core(&self) -> Core {
        match self {
            Display::X11(attention) => attention.core(),
            Display::Wayland(compositor) => compositor.core(),
        }
    }

    /// What was left out because of a bound.
    pub(crate) fn dropped(&self) -> Dropped {
        match self {
            Display::X11(attention) => attention.dropped(),
            Display::Wayland(compositor) => compositor.dropped(),
        }
    }
}

/// Whether it is known which processes the clients of a display are.
///
/// # Errors
/// Where the display does not answer.
pub(crate) fn knows_clients(place: &Place) -> Result<bool, Error> {
    let Place::X11(target) = place else { return Ok(true) };
    let extensions = server::describe(target)?.extensions;
    Ok(extensions.iter().any(|extension| extension.name == RESOURCE_EXTENSION))
}
