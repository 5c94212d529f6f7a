// SPDX-License-Identifier: MIT OR Apache-2.0
//! Popups of the agent without a notification daemon, as seen by any client of the display.

use tipme_bench::PrivateSession;
use tipme_bench::until;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt, MapState, Window};
use x11rb::rust_connection::RustConnection;

/// A client that inspects a display.
pub struct Viewer {
    connection: RustConnection,
    root: Window,
}

/// A window of type notification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Popup {
    pub window: Window,
    /// Its name.
    pub text: String,
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
    /// Not managed by a window manager.
    pub is_alone: bool,
}

impl Viewer {
    pub fn open(session: &PrivateSession) -> Viewer {
        let connection = crate::x11::connect(session);
        let root = connection.setup().roots[0].root;
        Viewer { connection, root }
    }

    /// Returns width and height of the screen.
    pub fn size(&self) -> (i32, i32) {
        let screen = &self.connection.setup().roots[0];
        (i32::from(screen.width_in_pixels), i32::from(screen.height_in_pixels))
    }

    /// Returns the window with the keyboard focus.
    pub fn focus(&self) -> Window {
        self.connection.get_input_focus().unwrap().reply().unwrap().focus
    }

    /// Returns the visible top-level windows.
    pub fn windows(&self) -> Vec<Window> {
        let all = self.connection.query_tree(self.root).unwrap().reply().unwrap().children;
        let seen = all.into_iter().filter(|window| {
            let asked = self.connection.get_window_attributes(*window).unwrap().reply();
            asked.is_ok_and(|attributes| attributes.map_state == MapState::VIEWABLE)
        });
        seen.collect()
    }

    /// Returns the visible popups, topmost last.
    pub fn popups(&self) -> Vec<Popup> {
        self.windows().into_iter().filter_map(|window| self.look(window)).collect()
    }

    /// Waits for the popup with these words.
    pub fn wait_for(&self, words: &str) -> Popup {
        let mut found = None;
        until(&format!("a popup with {words:?}; there are {:?}", self.popups()), || {
            found = self.popups().into_iter().find(|popup| popup.text.contains(words));
            found.is_some()
        });
        found.unwrap()
    }

    /// Returns `None` for a window that disappears meanwhile.
    fn look(&self, window: Window) -> Option<Popup> {
        let kind =
            self.property(window, self.atom("_NET_WM_WINDOW_TYPE"), AtomEnum::ATOM.into())?;
        if kind != self.atom("_NET_WM_WINDOW_TYPE_NOTIFICATION").to_ne_bytes() {
            return None;
        }
        let text = self.property(window, self.atom("_NET_WM_NAME"), self.atom("UTF8_STRING"))?;
        let old_text = self.property(window, AtomEnum::WM_NAME.into(), AtomEnum::STRING.into())?;
        assert_eq!(
            text.is_ascii().then_some(&text),
            Some(&old_text),
            "{}",
            String::from_utf8_lossy(&text)
        );
        let place = self.connection.get_geometry(window).unwrap().reply().ok()?;
        let attributes = self.connection.get_window_attributes(window).unwrap().reply().ok()?;
        let [left, top] = [place.x, place.y].map(i32::from);
        let [width, height] =
            [place.width, place.height].map(|inner| i32::from(inner + 2 * place.border_width));
        let (right, bottom, is_alone) = (left + width, top + height, attributes.override_redirect);
        Some(Popup {
            window,
            text: String::from_utf8(text).unwrap(),
            left,
            top,
            right,
            bottom,
            is_alone,
        })
    }

    fn property(&self, window: Window, name: Atom, kind: Atom) -> Option<Vec<u8>> {
        let reply = self
            .connection
            .get_property(false, window, name, kind, 0, 4096)
            .unwrap()
            .reply()
            .ok()?;
        (reply.type_ == kind).then_some(reply.value)
    }

    fn atom(&self, name: &str) -> Atom {
        self.connection.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom
    }
}
