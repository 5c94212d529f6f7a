// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waits for windows: until a window manager runs, a program's window has the focus, or something
//! is drawn.

use crate::clock;
use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use crate::focus::{PidSource, client_pid, focus};
use std::cell::Cell;
use std::time::Duration;
use tipme_record::Nanos;
use x11rb::COPY_DEPTH_FROM_PARENT;

use x11rb::protocol::Event;
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, CreateWindowAux, EventMask, MapState,
    PropMode, Window, WindowClass,
};
use x11rb::wrapper::ConnectionExt as _;

/// Maximum time between checks, in case no event arrives.
const POLL_INTERVAL: Nanos = Nanos::from_millis(200);

/// Maximum number of events handled between two checks: a flood of them does not delay a timeout.
const EVENTS_MAX: usize = 1_000;

/// Maximum number of ancestors of a window.
const DEPTH_MAX: usize = 16;

/// Waits for conditions on a display, driven by its events.
pub struct Watcher {
    connection: DisplayConnection,
    /// New windows may exist since the focus events of all windows were selected.
    unheard: Cell<bool>,
}

impl Watcher {
    /// Connects and selects the root window's events.
    pub fn open(target: &DisplayTarget) -> Result<Watcher, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        let events = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE;
        let wanted = ChangeWindowAttributesAux::new().event_mask(events);
        let wire = connection.wire();
        connection.done(wire.change_window_attributes(connection.root(), &wanted))?;
        Ok(Watcher { connection, unheard: Cell::new(true) })
    }

    /// Waits until a window manager manages windows.
    ///
    /// A manager announces itself before it is ready, and may overlook a window that is mapped
    /// then: so a small window is mapped repeatedly until it is managed, and then destroyed.
    pub fn wait_for_manager(&self, timeout: Duration) -> Result<(), DisplayError> {
        let probe = self.make_probe()?;
        let mut mapped_at = Nanos(0);
        let managed = self.wait("window manager", timeout, || {
            if self.has_property(probe, b"WM_STATE")? {
                return Ok(Some(()));
            }
            if clock::now().since(mapped_at) >= POLL_INTERVAL
                && self.has_property(self.connection.root(), b"_NET_SUPPORTING_WM_CHECK")?
            {
                mapped_at = clock::now();
                self.map_again(probe)?;
            }
            Ok(None)
        });
        self.connection.send(self.connection.wire().destroy_window(probe))?;
        self.connection.flush()?;
        managed
    }

    /// Waits until the visible window with the focus belongs to `pid`; returns that window.
    pub fn wait_for_focus(&self, pid: u32, timeout: Duration) -> Result<Window, DisplayError> {
        self.wait_for_focus_of(|owner| owner == pid, timeout)
    }

    /// Waits until the visible window with the focus belongs to a process for which `belongs`
    /// returns `true`; returns that window.
    pub fn wait_for_focus_of(
        &self,
        belongs: impl Fn(u32) -> bool,
        timeout: Duration,
    ) -> Result<Window, DisplayError> {
        self.wait("visible window with the keyboard focus", timeout, || self.focused(&belongs))
    }

    /// Returns the outermost window of `pid` around one of its windows: the one that a window
    /// manager frames.
    ///
    /// Some toolkits give the focus to a small window inside.
    pub fn outermost(&self, pid: u32, mut window: Window) -> Result<Window, DisplayError> {
        for _ in 0..DEPTH_MAX {
            let tree = self.connection.wire().query_tree(window);
            let parent = self.connection.reply(tree)?.parent;
            if parent == x11rb::NONE || client_pid(&self.connection, parent)? != Some(pid) {
                break;
            }
            window = parent;
        }
        Ok(window)
    }

    /// Appends a process to the set that the window of `owner` names:
    /// docs/reference/process-set.md.
    pub fn add_to_set(&self, owner: u32, window: Window, pid: u32) -> Result<(), DisplayError> {
        let window = self.outermost(owner, window)?;
        let set = self.connection.atom(b"_TIPME_PROCESS_SET")?;
        let (wire, append) = (self.connection.wire(), PropMode::APPEND);
        let cardinal = AtomEnum::CARDINAL;
        self.connection.done(wire.change_property32(append, window, set, cardinal, &[pid]))
    }

    /// Calls `ready` at once, after the display's events, and some times a second for conditions
    /// without an event. Events that arrive together lead to one call, so that a wait beside a load
    /// does not load the display server.
    fn wait<T>(
        &self,
        what: &str,
        timeout: Duration,
        mut ready: impl FnMut() -> Result<Option<T>, DisplayError>,
    ) -> Result<T, DisplayError> {
        let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
        loop {
            for _ in 0..EVENTS_MAX {
                if !self.handle_event(Nanos(0))? {
                    break;
                }
            }
            if let Some(found) = ready()? {
                return Ok(found);
            }
            let now = clock::now();
            if now >= deadline {
                let limit_ms = timeout.as_millis();
                return Err(DisplayError::Late {
                    display: self.connection.display(),
                    what: what.to_string(),
                    limit_ms,
                });
            }
            if !self.handle_event(deadline.min(now.after(POLL_INTERVAL)))? {
                self.unheard.set(true);
            }
        }
    }

    /// Handles the next event; returns `false` at the deadline.
    fn handle_event(&self, deadline: Nanos) -> Result<bool, DisplayError> {
        let event = self.connection.event(deadline)?;
        if matches!(
            event,
            Some(Event::CreateNotify(_) | Event::MapNotify(_) | Event::ReparentNotify(_))
        ) {
            self.unheard.set(true);
        }
        Ok(event.is_some())
    }

    fn make_probe(&self) -> Result<Window, DisplayError> {
        let (connection, wire) = (&self.connection, self.connection.wire());
        let window = connection.new_id()?;
        let (class, look) = (WindowClass::INPUT_OUTPUT, CreateWindowAux::new());
        let (depth, root) = (COPY_DEPTH_FROM_PARENT, connection.root());
        let made = wire.create_window(depth, window, root, 0, 0, 1, 1, 0, class, 0, &look);
        connection.done(made)?;
        Ok(window)
    }

    fn map_again(&self, window: Window) -> Result<(), DisplayError> {
        let wire = self.connection.wire();
        self.connection.send(wire.unmap_window(window))?;
        self.connection.send(wire.map_window(window))?;
        self.connection.flush()
    }

    fn has_property(&self, window: Window, name: &[u8]) -> Result<bool, DisplayError> {
        let (atom, wire) = (self.connection.atom(name)?, self.connection.wire());
        let property = wire.get_property(false, window, atom, AtomEnum::ANY, 0, 1);
        Ok(self.connection.reply(property)?.type_ != x11rb::NONE)
    }

    /// Returns the focused window of a process that `belongs`, once it is visible. Selects its
    /// focus events on the way.
    fn focused(&self, belongs: &impl Fn(u32) -> bool) -> Result<Option<Window>, DisplayError> {
        if self.unheard.take() {
            self.listen_to_children()?;
        }
        let now = focus(&self.connection)?;
        if !now.pid.is_some_and(|(pid, how)| how == PidSource::Server && belongs(pid)) {
            return Ok(None);
        }
        let Ok(cookie) = self.connection.wire().get_window_attributes(now.window) else {
            return Ok(None);
        };
        let seen =
            cookie.reply().is_ok_and(|attributes| attributes.map_state == MapState::VIEWABLE);
        Ok(seen.then_some(now.window))
    }

    /// Selects focus events of all windows: there are few on a private display.
    fn listen_to_children(&self) -> Result<(), DisplayError> {
        let connection = &self.connection;
        let mut windows = vec![connection.root()];
        let events = EventMask::FOCUS_CHANGE | EventMask::STRUCTURE_NOTIFY;
        for depth in 0..4 {
            let mut below = Vec::new();
            for window in &windows {
                let wire = connection.wire();
                let Ok(cookie) = wire.query_tree(*window) else { continue };
                below.extend(cookie.reply().map(|tree| tree.children).unwrap_or_default());
                if depth > 0 {
                    let wanted = ChangeWindowAttributesAux::new().event_mask(events);
                    connection.send(wire.change_window_attributes(*window, &wanted))?;
                }
            }
            windows = below;
        }
        connection.flush()
    }
}

/// Detects drawings in a window.
pub struct DamageWatch {
    connection: DisplayConnection,
}

impl DamageWatch {
    /// Starts to watch a window; the display must have the DAMAGE extension.
    pub fn open(target: &DisplayTarget, window: Window) -> Result<DamageWatch, DisplayError> {
        DamageWatch::watch(DisplayConnection::open(target)?, target, window)
    }

    /// Starts to watch the whole screen: drawings in all windows, by any client.
    pub fn open_screen(target: &DisplayTarget) -> Result<DamageWatch, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        let root = connection.root();
        DamageWatch::watch(connection, target, root)
    }

    fn watch(
        connection: DisplayConnection,
        target: &DisplayTarget,
        window: Window,
    ) -> Result<DamageWatch, DisplayError> {
        let missing = DisplayError::NoExtension { display: target.display, extension: "DAMAGE" };
        let version = connection.wire().damage_query_version(1, 1).map_err(|_| missing)?;
        version.reply().map_err(|error| connection.failed(error))?;
        let damage = connection.new_id()?;
        // Reports each drawing. The other levels report nothing until the damage is subtracted, so
        // drawings in between would be missed.
        let sent = connection.wire().damage_create(damage, window, ReportLevel::RAW_RECTANGLES);
        connection.done(sent)?;
        Ok(DamageWatch { connection })
    }

    /// Waits for the next drawing; returns the time of its report, or `None` on a timeout.
    pub fn next(&self, timeout: Duration) -> Result<Option<Nanos>, DisplayError> {
        let deadline = clock::now().after(Nanos(timeout.as_nanos() as u64));
        while let Some(event) = self.connection.event(deadline)? {
            if let Event::DamageNotify(_) = event {
                return Ok(Some(clock::now()));
            }
        }
        Ok(None)
    }
}
