// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clipboard of a session, owned until another program takes it.
//!
//! Under Wayland it is that of the compositor, if that has the protocol. Otherwise it is that of
//! X11, which a compositor may pass on to Wayland programs; it does if it requests the text.

mod wayland;
mod x11;

use crate::clock;
use crate::connect::DisplayTarget;
use crate::error::DisplayError;
use crate::portal::is_wayland;
use tipme_record::Nanos;
use tipme_record::text::cut;
use wayland::WaylandClipboard;
use x11::X11Clipboard;

/// Maximum size of an offered text in bytes: it fits into one request of any X server, and into a
/// pipe.
const TEXT_MAX: usize = 60 << 10;
/// Maximum time until a compositor that passes the clipboard on requests it.
const HANDED_ON_WITHIN: Nanos = Nanos::from_secs(2);

/// A clipboard that this process owns.
pub struct Clipboard {
    owned: OwnedClipboard,
}

enum OwnedClipboard {
    Wayland(Box<WaylandClipboard>),
    X11(Box<X11Clipboard>),
}

impl Clipboard {
    /// Takes the clipboard of this session with a text, cut to 60 KiB. It can be pasted then.
    ///
    /// # Errors
    /// Fails if no display is usable, another program keeps the clipboard, or Wayland programs
    /// could not paste.
    pub fn take(display: &str, text: &str) -> Result<Clipboard, DisplayError> {
        let text = cut(text, TEXT_MAX).to_owned();
        if !is_wayland() {
            let owned = X11Clipboard::take(&DisplayTarget::parse(display)?, text)?;
            return Ok(Clipboard { owned: OwnedClipboard::X11(Box::new(owned)) });
        }
        if let Some(owned) = WaylandClipboard::take(&text)? {
            return Ok(Clipboard { owned: OwnedClipboard::Wayland(Box::new(owned)) });
        }
        let owned = X11Clipboard::take(
            &DisplayTarget::parse(display).map_err(|_| DisplayError::NoClipboard)?,
            text,
        )?;
        if !owned.is_asked(clock::now().after(HANDED_ON_WITHIN))? {
            return Err(DisplayError::NoClipboard);
        }
        Ok(Clipboard { owned: OwnedClipboard::X11(Box::new(owned)) })
    }

    /// Serves requests for the text until a deadline; returns `true` while this process owns the
    /// clipboard.
    ///
    /// # Errors
    /// Fails if the display is no longer usable.
    pub fn serve(&mut self, deadline: Nanos) -> Result<bool, DisplayError> {
        match &mut self.owned {
            OwnedClipboard::Wayland(owned) => owned.serve(deadline),
            OwnedClipboard::X11(owned) => owned.serve(deadline),
        }
    }
}
