// SPDX-License-Identifier: MIT OR Apache-2.0
//! Display for a measurement: a private X server or compositor, or a running compositor.

use crate::compositor::Compositor;
use crate::screen::{Place, TerminalScreen};
use crate::session::{PrivateSession, SessionOptions};
use anyhow::{Result, bail};

/// A display of this process, or a running compositor.
pub(crate) enum PrivateDisplay {
    X11(PrivateSession),
    Wayland(Compositor),
}

impl PrivateDisplay {
    /// Starts a display, or connects to a running one.
    pub(crate) fn open(place: &Place, options: SessionOptions) -> Result<PrivateDisplay> {
        Ok(match place {
            Place::X11 => PrivateDisplay::X11(PrivateSession::start(options)?),
            Place::Wayland => PrivateDisplay::Wayland(Compositor::start(options)?),
            Place::Compositor(name) => PrivateDisplay::Wayland(Compositor::running(name, options)?),
        })
    }

    pub(crate) fn screen(&self) -> &dyn TerminalScreen {
        match self {
            PrivateDisplay::X11(session) => session,
            PrivateDisplay::Wayland(compositor) => compositor,
        }
    }

    pub(crate) fn screen_mut(&mut self) -> &mut dyn TerminalScreen {
        match self {
            PrivateDisplay::X11(session) => session,
            PrivateDisplay::Wayland(compositor) => compositor,
        }
    }

    /// Fails unless the display is a private X11 one.
    pub(crate) fn session(&self) -> Result<&PrivateSession> {
        match self {
            PrivateDisplay::X11(session) => Ok(session),
            PrivateDisplay::Wayland(_) => bail!("this can be measured on X11 only"),
        }
    }

    pub(crate) fn session_mut(&mut self) -> Result<&mut PrivateSession> {
        match self {
            PrivateDisplay::X11(session) => Ok(session),
            PrivateDisplay::Wayland(_) => bail!("this can be measured on X11 only"),
        }
    }
}
