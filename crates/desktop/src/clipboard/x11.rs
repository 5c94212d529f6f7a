// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clipboard of an X11 display, owned by a window that is never mapped, so that the focus does not
//! change.

use crate::clock;
use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use std::cell::Cell;
use tipme_record::Nanos;

use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ConnectionExt as _, CreateWindowAux, EventMask, PropMode,
    SELECTION_NOTIFY_EVENT, SelectionNotifyEvent, SelectionRequestEvent, Timestamp, Window,
    WindowClass,
};
use x11rb::{COPY_DEPTH_FROM_PARENT, NONE};

/// Maximum wait for the server's time.
const TIMEOUT: Nanos = Nanos::from_secs(5);

/// Offered targets of the text, by name.
const FORMS: [&[u8]; 4] = [b"UTF8_STRING", b"text/plain;charset=utf-8", b"TEXT", b"STRING"];

/// A selection of a display that this process owns.
pub(super) struct X11Clipboard {
    connection: DisplayConnection,
    window: Window,
    since: Timestamp,
    atoms: Atoms,
    text: String,
    /// Another program has requested it.
    asked: Cell<bool>,
}

struct Atoms {
    clipboard: Atom,
    targets: Atom,
    timestamp: Atom,
    forms: [Atom; FORMS.len()],
}

impl X11Clipboard {
    /// Takes the clipboard of a display.
    ///
    /// # Errors
    /// Fails if the display is not usable, or another program keeps the clipboard.
    pub(super) fn take(target: &DisplayTarget, text: String) -> Result<X11Clipboard, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        let (window, root) = (connection.new_id()?, connection.root());
        let aux = CreateWindowAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        let (depth, class) = (COPY_DEPTH_FROM_PARENT, WindowClass::INPUT_ONLY);
        let wire = connection.wire();
        connection
            .send(wire.create_window(depth, window, root, -1, -1, 1, 1, 0, class, 0, &aux))?;
        let atoms = Atoms::find(&connection)?;
        let since = now(&connection, window, atoms.timestamp)?;
        let wire = connection.wire();
        connection.send(wire.set_selection_owner(window, atoms.clipboard, since))?;
        if connection.reply(wire.get_selection_owner(atoms.clipboard))?.owner != window {
            return Err(DisplayError::lost(
                target.display,
                "another program keeps the clipboard; copy again",
            ));
        }
        Ok(X11Clipboard { connection, window, since, atoms, text, asked: Cell::new(false) })
    }

    /// Returns `true` if a program requests it before the deadline, as a compositor does that
    /// passes it on to Wayland programs.
    pub(super) fn is_asked(&self, deadline: Nanos) -> Result<bool, DisplayError> {
        while !self.asked.get() && self.handle_one(deadline)? == Some(true) {}
        Ok(self.asked.get())
    }

    /// Serves requests for the text until a deadline; returns `true` while this process owns the
    /// clipboard.
    pub(super) fn serve(&self, deadline: Nanos) -> Result<bool, DisplayError> {
        while let Some(is_owner) = self.handle_one(deadline)? {
            if !is_owner {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Handles the next event. Returns `true` while this process owns the clipboard, or `None` if
    /// there is no event.
    fn handle_one(&self, deadline: Nanos) -> Result<Option<bool>, DisplayError> {
        match self.connection.event(deadline)? {
            Some(Event::SelectionRequest(request)) => self.give(&request)?,
            Some(Event::SelectionClear(lost)) if lost.selection == self.atoms.clipboard => {
                return Ok(Some(false));
            }
            Some(_) => {}
            None => return Ok(None),
        }
        Ok(Some(true))
    }

    /// Answers a request; refuses unknown targets.
    fn give(&self, request: &SelectionRequestEvent) -> Result<(), DisplayError> {
        self.asked.set(true);
        // Old programs name no property: the target is the property then.
        let property = if request.property == NONE { request.target } else { request.property };
        let property = if self.put(request, property)? { property } else { NONE };
        let answer = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: request.time,
            requestor: request.requestor,
            selection: request.selection,
            target: request.target,
            property,
        };
        let (wire, to) = (self.connection.wire(), request.requestor);
        self.connection.send(wire.send_event(false, to, EventMask::NO_EVENT, answer))?;
        self.connection.flush()
    }

    /// Stores the requested form on the requestor's window; returns `false` if there is no such
    /// form or window.
    fn put(&self, request: &SelectionRequestEvent, property: Atom) -> Result<bool, DisplayError> {
        let words =
            |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let Atoms { targets, timestamp, forms, .. } = &self.atoms;
        let (kind, format, data) = match request.target {
            target if target == *targets => {
                (AtomEnum::ATOM.into(), 32, words(&[&[*targets, *timestamp][..], forms].concat()))
            }
            target if target == *timestamp => (AtomEnum::INTEGER.into(), 32, words(&[self.since])),
            target if target == forms[3] => (target, 8, latin(&self.text)),
            target if target == forms[2] => (forms[0], 8, self.text.clone().into_bytes()),
            target if forms.contains(&target) => (target, 8, self.text.clone().into_bytes()),
            _ => return Ok(false),
        };
        let (wire, count) = (self.connection.wire(), data.len() as u32 / u32::from(format / 8u8));
        let sent = wire.change_property(
            PropMode::REPLACE,
            request.requestor,
            property,
            kind,
            format,
            count,
            &data,
        );
        // The requestor may be gone.
        Ok(sent.map_err(|error| self.connection.failed(error))?.check().is_ok())
    }
}

impl Drop for X11Clipboard {
    fn drop(&mut self) {
        // The connection ends now, and the window with it.
        let _ = self.connection.wire().destroy_window(self.window);
    }
}

impl Atoms {
    fn find(connection: &DisplayConnection) -> Result<Atoms, DisplayError> {
        let mut forms = [NONE; FORMS.len()];
        for (form, name) in forms.iter_mut().zip(FORMS) {
            *form = connection.atom(name)?;
        }
        Ok(Atoms {
            clipboard: connection.atom(b"CLIPBOARD")?,
            targets: connection.atom(b"TARGETS")?,
            timestamp: connection.atom(b"TIMESTAMP")?,
            forms,
        })
    }
}

/// Returns the server's time, which an owner has to name: it comes with the event of an empty
/// property change.
fn now(
    connection: &DisplayConnection,
    window: Window,
    property: Atom,
) -> Result<Timestamp, DisplayError> {
    let sent = connection.wire().change_property(
        PropMode::APPEND,
        window,
        property,
        AtomEnum::INTEGER,
        32,
        0,
        &[],
    );
    connection.send(sent)?;
    connection.flush()?;
    let deadline = clock::now().after(TIMEOUT);
    while let Some(event) = connection.event(deadline)? {
        if let Event::PropertyNotify(change) = event {
            return Ok(change.time);
        }
    }
    Err(DisplayError::lost(connection.display(), "the server does not report its time"))
}

/// Converts for programs that know only Latin-1.
fn latin(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_to_old_programs() {
        assert_eq!(latin("é → x"), [0xe9, b' ', b'?', b' ', b'x']);
    }
}
