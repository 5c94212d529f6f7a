// SPDX-License-Identifier: MIT OR Apache-2.0
//! Batched queries to the display.
//!
//! A window may disappear between an event and a query about it: then there is no answer, which is
//! not an error. All queries of one [`QueryBatch`] share one deadline.

use super::change::{HELPERS_MAX, WINDOWS_MAX, WindowOwner};
use crate::connect::{DisplayConnection, Wire};
use crate::error::DisplayError;
use crate::focus::{PidSource, ask_client, local_client_pid};
use x11rb::connection::{Connection as _, RequestConnection as _};
use x11rb::cookie::{Cookie, VoidCookie};
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::Event;
use x11rb::protocol::res::QueryClientIdsReply;
use x11rb::protocol::screensaver::ConnectionExt as _;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, GetPropertyReply,
    GetWindowAttributesReply, MapState, Window, WindowClass,
};
use x11rb::x11_utils::TryParse;

x11rb::atom_manager! {
    /// Atoms of the properties and of the selection that are queried.
    pub(super) Atoms:
    /// Atoms with pending replies.
    AtomsCookie {
        active: "_NET_ACTIVE_WINDOW".as_bytes(),
        clients: "_NET_CLIENT_LIST".as_bytes(),
        supporting: "_NET_SUPPORTING_WM_CHECK".as_bytes(),
        compositor: "_NET_WM_CM_S0".as_bytes(),
        pid: "_NET_WM_PID".as_bytes(),
        state: "WM_STATE".as_bytes(),
        set: "_TIPME_PROCESS_SET".as_bytes(),
    }
}

/// No window has the focus.
pub(super) const NOWHERE: Window = x11rb::NONE;
/// The window under the pointer has the focus: `PointerRoot` of the protocol.
pub(super) const UNDER_POINTER: Window = 1;

/// Maximum number of ancestors of a window that are queried.
const DEPTH_MAX: usize = 16;
/// Maximum number of children of the root window that are queried without a list: the topmost ones.
const CHILDREN_MAX: usize = 1024;
/// Largest process id of Linux.
const PID_MAX: u32 = 1 << 22;
/// `IconicState` of the Inter-Client Communication Conventions Manual.
const ICONIC: u32 = 3;

/// Focus, as the server reports it.
pub(super) struct ServerFocus {
    /// A window, [`NOWHERE`] or [`UNDER_POINTER`].
    pub keyboard: Window,
    /// Child of the root window under the pointer, or [`NOWHERE`].
    pub pointer: Window,
}

/// Window by which a window manager announces itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WindowManager {
    pub window: Window,
    pub pid: Option<u32>,
}

/// List of windows.
#[derive(Default)]
pub(super) struct Listing {
    /// A window manager keeps the list.
    pub managed: bool,
    /// The first [`WINDOWS_MAX`].
    pub windows: Vec<Window>,
    /// Number of windows beyond those.
    pub excess: u32,
}

/// Queried facts about one window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub owner: Option<WindowOwner>,
    pub helpers: Vec<u32>,
    /// Number of processes in the property beyond [`HELPERS_MAX`].
    pub excess: u32,
    /// The window and all its ancestors are mapped.
    pub viewable: bool,
    pub iconic: bool,
}

/// Pending queries about one window.
struct PendingQueries<'a> {
    window: Window,
    attributes: Cookie<'a, Wire, GetWindowAttributesReply>,
    state: Cookie<'a, Wire, GetPropertyReply>,
    pid: Cookie<'a, Wire, GetPropertyReply>,
    set: Cookie<'a, Wire, GetPropertyReply>,
    client: Option<Cookie<'a, Wire, QueryClientIdsReply>>,
}

/// Requests all atoms.
pub(super) fn atoms(connection: &DisplayConnection) -> Result<Atoms, DisplayError> {
    let asked = Atoms::new(connection.wire()).map_err(|error| connection.failed(error))?;
    asked.reply().map_err(|error| connection.failed(error))
}

/// Queries of one call to one display.
pub(super) struct QueryBatch<'a> {
    connection: &'a DisplayConnection,
    wire: &'a Wire,
    atoms: &'a Atoms,
}

impl<'a> QueryBatch<'a> {
    /// Starts the time limit that all queries share.
    pub(super) fn new(connection: &'a DisplayConnection, atoms: &'a Atoms) -> QueryBatch<'a> {
        QueryBatch { connection, wire: connection.wire(), atoms }
    }

    pub(super) fn wire(&self) -> &'a Wire {
        self.wire
    }

    pub(super) fn root(&self) -> Window {
        self.connection.root()
    }

    /// Converts the error of a request that could not be sent.
    pub(super) fn sent<T>(&self, sent: Result<T, ConnectionError>) -> Result<T, DisplayError> {
        sent.map_err(|error| self.connection.failed(error))
    }

    /// Like [`QueryBatch::sent`]; returns `None` if the server lacks the request's extension.
    pub(super) fn sent_if_known<T>(
        &self,
        sent: Result<T, ConnectionError>,
    ) -> Result<Option<T>, DisplayError> {
        match sent {
            Err(ConnectionError::UnsupportedExtension) => Ok(None),
            other => self.sent(other).map(Some),
        }
    }

    /// Waits for a reply; returns `None` if the queried object is gone.
    pub(super) fn answer<R: TryParse>(
        &self,
        asked: Cookie<'_, Wire, R>,
    ) -> Result<Option<R>, DisplayError> {
        match asked.reply() {
            Ok(reply) => Ok(Some(reply)),
            Err(ReplyError::X11Error(_)) => Ok(None),
            Err(error) => Err(self.connection.failed(error)),
        }
    }

    /// Sends a request without a reply, whether or not its window still exists.
    fn send(
        &self,
        sent: Result<VoidCookie<'_, Wire>, ConnectionError>,
    ) -> Result<(), DisplayError> {
        self.sent(sent).map(VoidCookie::ignore_error)
    }

    pub(super) fn flush(&self) -> Result<(), DisplayError> {
        self.sent(self.wire.flush())
    }

    /// Makes the connection readable again soon, by the discarded reply to a query.
    pub(super) fn nudge(&self) -> Result<(), DisplayError> {
        self.sent(self.wire.get_input_focus())?.discard_reply_and_errors();
        self.flush()
    }

    /// Returns the next event if one has already arrived.
    pub(super) fn next_event(&self) -> Result<Option<Vec<u8>>, DisplayError> {
        self.sent(self.wire.poll_for_raw_event())
    }

    /// Parses an event; returns `None` if another client sent it or it is malformed.
    pub(super) fn parse(&self, raw: &[u8]) -> Option<Event> {
        self.wire.parse_event(raw).ok().filter(|event| !event.sent_event())
    }

    /// Selects events about new windows, changes of the manager, and a focus on no window.
    pub(super) fn listen_to_root(&self) -> Result<(), DisplayError> {
        let events =
            EventMask::SUBSTRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE | EventMask::FOCUS_CHANGE;
        let wanted = ChangeWindowAttributesAux::new().event_mask(events);
        self.send(self.wire.change_window_attributes(self.root(), &wanted))?;
        self.flush()
    }

    /// Selects the events of windows.
    ///
    /// The mask is the same for all: the last one set counts, and a window may be a client's, a
    /// frame and, by a client's claim, the manager's at once. For the same reason the root window
    /// is left out.
    pub(super) fn listen_to(
        &self,
        windows: impl IntoIterator<Item = Window>,
    ) -> Result<(), DisplayError> {
        let crossing = EventMask::ENTER_WINDOW | EventMask::LEAVE_WINDOW;
        let state =
            EventMask::STRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE | EventMask::VISIBILITY_CHANGE;
        let wanted =
            ChangeWindowAttributesAux::new().event_mask(crossing | state | EventMask::FOCUS_CHANGE);
        let mut windows = windows.into_iter().filter(|window| *window != self.root());
        windows
            .try_for_each(|window| self.send(self.wire.change_window_attributes(window, &wanted)))
    }

    fn property(
        &self,
        window: Window,
        name: Atom,
        kind: Atom,
        max: usize,
    ) -> Result<Cookie<'a, Wire, GetPropertyReply>, DisplayError> {
        self.sent(self.wire.get_property(false, window, name, kind, 0, max as u32))
    }

    fn ask_client(
        &self,
        window: Window,
    ) -> Result<Option<Cookie<'a, Wire, QueryClientIdsReply>>, DisplayError> {
        self.sent_if_known(ask_client(self.wire, window))
    }

    fn client(
        &self,
        asked: Option<Cookie<'_, Wire, QueryClientIdsReply>>,
    ) -> Result<Option<u32>, DisplayError> {
        let reply = asked.map(|asked| self.answer(asked)).transpose()?.flatten();
        Ok(reply.and_then(|reply| local_client_pid(&reply)).filter(|pid| is_pid(*pid)))
    }

    /// Returns the window manager that announces itself, if its window confirms that.
    pub(super) fn manager(&self) -> Result<Option<WindowManager>, DisplayError> {
        let (supporting, kind) = (self.atoms.supporting, AtomEnum::WINDOW.into());
        let first = self.answer(self.property(self.root(), supporting, kind, 1)?)?;
        let Some(window) = first.as_ref().and_then(first_number) else { return Ok(None) };
        self.listen_to([window])?;
        let (second, client) =
            (self.property(window, supporting, kind, 1)?, self.ask_client(window)?);
        let confirmed = self.answer(second)?.as_ref().and_then(first_number) == Some(window);
        let pid = self.client(client)?;
        Ok(confirmed.then_some(WindowManager { window, pid }))
    }

    /// Returns the manager's list of windows, or the root window's children if there is none.
    pub(super) fn listing(&self, managed: bool) -> Result<Listing, DisplayError> {
        if managed {
            let asked = self.property(
                self.root(),
                self.atoms.clients,
                AtomEnum::WINDOW.into(),
                WINDOWS_MAX,
            )?;
            let reply =
                self.answer(asked)?.filter(|reply| reply.type_ == u32::from(AtomEnum::WINDOW));
            if let Some(reply) = reply {
                let excess = reply.bytes_after / 4;
                return Ok(Listing { managed: true, windows: numbers(&reply).collect(), excess });
            }
        }
        self.children()
    }

    /// Returns the children of the root window that a window manager would manage.
    fn children(&self) -> Result<Listing, DisplayError> {
        let Some(tree) = self.answer(self.sent(self.wire.query_tree(self.root()))?)? else {
            return Ok(Listing::default());
        };
        let skipped = tree.children.len().saturating_sub(CHILDREN_MAX);
        let children = &tree.children[skipped..];
        let asked = children
            .iter()
            .map(|child| self.sent(self.wire.get_window_attributes(*child)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut listing = Listing { excess: skipped as u32, ..Listing::default() };
        for (child, asked) in children.iter().zip(asked) {
            if self.answer(asked)?.is_some_and(|attributes| is_managed(&attributes)) {
                listing.add(*child);
            }
        }
        Ok(listing)
    }

    /// Finds the child of the root window that contains each window, and selects its events too.
    pub(super) fn frames(&self, windows: &[Window]) -> Result<Vec<(Window, Window)>, DisplayError> {
        let mut found = Vec::new();
        let mut climbing: Vec<(Window, Window)> =
            windows.iter().map(|window| (*window, *window)).collect();
        for _ in 0..DEPTH_MAX {
            let parents = self.parents(climbing.iter().map(|(_, at)| *at))?;
            let mut higher = Vec::new();
            for ((window, at), parent) in climbing.into_iter().zip(parents) {
                match parent {
                    Some(parent) if parent != self.root() => higher.push((window, parent)),
                    _ => found.push((window, at)),
                }
            }
            climbing = higher;
        }
        found.extend(climbing);
        let frames = found.iter().filter(|(window, frame)| window != frame);
        self.listen_to(frames.map(|(_, frame)| *frame))?;
        Ok(found)
    }

    /// Returns the parent of each window; `None` for a destroyed one and for the root window.
    fn parents(
        &self,
        windows: impl Iterator<Item = Window>,
    ) -> Result<Vec<Option<Window>>, DisplayError> {
        let asked = windows
            .map(|window| self.sent(self.wire.query_tree(window)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut parents = Vec::new();
        for asked in asked {
            let parent = self.answer(asked)?.map(|tree| tree.parent);
            parents.push(parent.filter(|parent| *parent != x11rb::NONE));
        }
        Ok(parents)
    }

    /// Returns a window with its ancestors outward, without the root window; empty if it is nested
    /// too deeply or destroyed.
    pub(super) fn lineage(&self, window: Window) -> Result<Vec<Window>, DisplayError> {
        let mut lineage = Vec::new();
        let mut at = window;
        while at != self.root() {
            lineage.push(at);
            match self.parents([at].into_iter())?.first() {
                Some(Some(parent)) if lineage.len() < DEPTH_MAX => at = *parent,
                _ => return Ok(Vec::new()),
            }
        }
        Ok(lineage)
    }

    /// Returns the outermost window of a lineage that belongs to the same process as the innermost,
    /// and that process.
    pub(super) fn outermost(
        &self,
        lineage: &[Window],
    ) -> Result<Option<(Window, Option<u32>)>, DisplayError> {
        let asked =
            lineage.iter().map(|window| self.ask_client(*window)).collect::<Result<Vec<_>, _>>()?;
        let owners =
            asked.into_iter().map(|asked| self.client(asked)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = owners.first().copied() else { return Ok(None) };
        let own = lineage.iter().zip(owners).take_while(|(_, owner)| *owner == first);
        Ok(own.last().map(|(window, _)| (*window, first)))
    }

    /// Queries all windows at once; `None` for a destroyed one.
    pub(super) fn facts(
        &self,
        windows: &[Window],
    ) -> Result<Vec<(Window, Option<Facts>)>, DisplayError> {
        let asked =
            windows.iter().map(|window| self.ask(*window)).collect::<Result<Vec<_>, _>>()?;
        asked.into_iter().map(|asked| Ok((asked.window, self.facts_of(asked)?))).collect()
    }

    fn ask(&self, window: Window) -> Result<PendingQueries<'a>, DisplayError> {
        let cardinal = AtomEnum::CARDINAL.into();
        Ok(PendingQueries {
            window,
            attributes: self.sent(self.wire.get_window_attributes(window))?,
            state: self.property(window, self.atoms.state, self.atoms.state, 1)?,
            pid: self.property(window, self.atoms.pid, cardinal, 1)?,
            set: self.property(window, self.atoms.set, cardinal, HELPERS_MAX)?,
            client: self.ask_client(window)?,
        })
    }

    fn facts_of(&self, asked: PendingQueries<'_>) -> Result<Option<Facts>, DisplayError> {
        let attributes = self.answer(asked.attributes)?;
        let state = self.answer(asked.state)?.as_ref().and_then(first_number);
        let pid = self.answer(asked.pid)?.as_ref().and_then(first_number);
        let (set, client) = (self.answer(asked.set)?, self.client(asked.client)?);
        let Some(attributes) = attributes else { return Ok(None) };
        let (helpers, excess) =
            set.map_or((Vec::new(), 0), |set| (helpers(numbers(&set)), excess(&set)));
        let viewable = attributes.map_state == MapState::VIEWABLE;
        Ok(Some(Facts {
            owner: owner(client, pid),
            helpers,
            excess,
            viewable,
            iconic: state == Some(ICONIC),
        }))
    }

    /// Queries the focus.
    pub(super) fn focus(&self) -> Result<ServerFocus, DisplayError> {
        let keyboard = self.sent(self.wire.get_input_focus())?;
        let pointer = self.sent(self.wire.query_pointer(self.root()))?;
        let keyboard = self.answer(keyboard)?.map_or(NOWHERE, |reply| reply.focus);
        let pointer = self.answer(pointer)?.map_or(NOWHERE, |reply| reply.child);
        Ok(ServerFocus { keyboard, pointer })
    }

    /// Returns `true` if a compositing manager shows the windows, so that the server considers none
    /// obscured.
    pub(super) fn composited(&self) -> Result<bool, DisplayError> {
        let owner =
            self.answer(self.sent(self.wire.get_selection_owner(self.atoms.compositor))?)?;
        Ok(owner.is_some_and(|reply| reply.owner != x11rb::NONE))
    }

    /// Returns the milliseconds since the last input; `None` if the server does not know.
    pub(super) fn idle_ms(&self) -> Result<Option<u64>, DisplayError> {
        let asked = self.sent_if_known(self.wire.screensaver_query_info(self.root()))?;
        let reply = asked.map(|asked| self.answer(asked)).transpose()?.flatten();
        Ok(reply.map(|reply| u64::from(reply.ms_since_user_input)))
    }
}

impl Listing {
    fn add(&mut self, window: Window) {
        if self.windows.len() < WINDOWS_MAX {
            self.windows.push(window);
        } else {
            self.excess += 1;
        }
    }
}

/// Returns `true` if a window manager would frame such a child of the root window.
fn is_managed(attributes: &GetWindowAttributesReply) -> bool {
    let shown =
        attributes.map_state != MapState::UNMAPPED && attributes.class == WindowClass::INPUT_OUTPUT;
    shown && !attributes.override_redirect
}

/// Returns the numbers in a property reply; none if it is of another type than requested.
fn numbers(reply: &GetPropertyReply) -> impl Iterator<Item = u32> + '_ {
    reply.value32().into_iter().flatten()
}

fn first_number(reply: &GetPropertyReply) -> Option<u32> {
    numbers(reply).next()
}

/// Returns the number of values in the property beyond those requested.
fn excess(reply: &GetPropertyReply) -> u32 {
    if reply.value_len == 0 { 0 } else { reply.bytes_after / 4 }
}

/// Parses any reply as each of the properties; returns `true` if it has numbers.
pub(crate) fn read_any(reply: &GetPropertyReply) -> bool {
    let first = first_number(reply);
    drop((helpers(numbers(reply)), excess(reply), owner(first, numbers(reply).nth(1))));
    first.is_some()
}

fn is_pid(pid: u32) -> bool {
    (1..=PID_MAX).contains(&pid)
}

/// Returns the process ids among some numbers, without duplicates.
fn helpers(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut found = Vec::new();
    for pid in numbers.take(HELPERS_MAX).filter(|pid| is_pid(*pid)) {
        if !found.contains(&pid) {
            found.push(pid);
        }
    }
    found
}

/// Prefers the server's knowledge to a program's claim.
fn owner(client: Option<u32>, claimed: Option<u32>) -> Option<WindowOwner> {
    match client {
        Some(pid) => Some(WindowOwner { pid, how: PidSource::Server }),
        None => {
            Some(WindowOwner { pid: claimed.filter(|pid| is_pid(*pid))?, how: PidSource::Property })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_processes_and_few() {
        assert_eq!(helpers([7, 0, 7, u32::MAX, 9, PID_MAX + 1].into_iter()), vec![7, 9]);
        let many = helpers(1..1_000_000);
        assert_eq!((many.len(), many.last()), (HELPERS_MAX, Some(&(HELPERS_MAX as u32))));
    }

    #[test]
    fn the_server_knows_better_than_the_property() {
        let (server, property) = (PidSource::Server, PidSource::Property);
        assert_eq!(owner(Some(5), Some(6)), Some(WindowOwner { pid: 5, how: server }));
        assert_eq!(owner(None, Some(6)), Some(WindowOwner { pid: 6, how: property }));
        assert_eq!(
            [owner(None, Some(0)), owner(None, Some(u32::MAX)), owner(None, None)],
            [None; 3]
        );
    }
}
