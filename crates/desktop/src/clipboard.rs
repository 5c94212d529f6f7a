// SPDX-License-Identifier: MIT OR Apache-2.0
//! A text that can be pasted: the clipboard of a session, owned until another program takes it.
//!
//! Under Wayland it is that of the compositor, where it has the protocol for that. Elsewhere it is that of X11, from
//! which a compositor may hand it on to programs of Wayland; whether it does shows in that it asks for the text.

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

/// Bytes of a text that is offered, at most: it fits into one request of any X server, and into a pipe.
const TEXT_MAX: usize = 60 << 10;
/// How long a compositor may take to ask for what it hands on.
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
    /// Takes the clipboard of this session, with a text of which at most 60 KiB are offered. It can be pasted then.
    ///
    /// # Errors
    /// Where no display can be used, another program keeps the clipboard, or programs of Wayland could not paste.
    pub fn take(display: &str, text: &str) -> Result<Clipboard, DisplayError> {
        let text = cut(text, TEXT_MAX).to_owned();
        if !is_wayland() {
            let owned = X11Clipboard::take(&DisplayTarget::parse(display)?, text)?;
            return Ok(Clipboard { owned: OwnedClipboard::X11(Box::new(owned)) });
        }
        if let Some(owned) = WaylandClipboard::take(&text)? {
            return Ok(Clipboard { owned: OwnedClipboard::Wayland(Box::new(owned)) });
        }
        let owned = X11Clipboard::take(&DisplayTarget::parse(display).map_err(|_| DisplayError::NoClipboard)?, text)?;
        if !owned.is_asked(clock::now().after(HANDED_ON_WITHIN))? {
            return Err(DisplayError::NoClipboard);
        }
        Ok(Clipboard { owned: OwnedClipboard::X11(Box::new(owned)) })
    }

    /// Gives the text to whoever asks, for some time; whether the clipboard is still this process's.
    ///
    /// # Errors
    /// Where the display cannot be used any more.
    pub fn serve(&mut self, deadline: Nanos) -> Result<bool, DisplayError> {
        match &mut self.owned {
            OwnedClipboard::Wayland(owned) => owned.serve(deadline),
            OwnedClipboard::X11(owned) => owned.serve(deadline),
        }
    }
}
