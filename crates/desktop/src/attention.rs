// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user's attention on an X display: the windows with the keyboard focus and under the pointer,
//! the visible windows, and their processes.
//!
//! Events only signal that something changed. The current state is queried from the server, once
//! for all events that arrived together. So missed, repeated or forged events do no harm, and the
//! caller gets only the latest state of each window. An idle display causes no requests.
//!
//! Windows are those in the window manager's list, `_NET_CLIENT_LIST`. Without a manager that keeps
//! one, they are the mapped children of the root window that a manager would manage. A window that
//! gets the keyboard focus without being listed is added.
//!
//! Other clients of the display are not trusted. Windows and helpers are bounded, and the excess is
//! counted; events that a client sent instead of the server are ignored; a window that disappears
//! between an event and a query is a normal outcome. Two facts are claims of programs: a window's
//! `_TIPME_PROCESS_SET`, and the window manager's identity. Callers must judge these before they
//! act on them.
//!
//! Under a compositing manager no window counts as obscured: the server itself does not know.

mod ask;
mod change;
mod stack;
mod view;

pub(crate) use ask::read_any;
pub use change::{
    AttentionChange, Core, Dropped, HELPERS_MAX, WINDOWS_MAX, WindowOwner, WindowState,
};

use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use ask::{Atoms, QueryBatch, ServerFocus};
use rustix::fd::BorrowedFd;
use std::cell::RefCell;
use view::AttentionView;
use x11rb::protocol::xproto::Window;

/// Maximum number of query rounds of one call, if events arrive during the queries.
const ROUNDS_MAX: usize = 4;
/// Maximum number of events that one round handles.
const EVENTS_MAX: usize = 4096;

/// Follows the user's attention on one display.
///
/// After an error the connection is unusable: open another one.
pub struct Attention {
    connection: DisplayConnection,
    atoms: Atoms,
    view: AttentionView,
    /// An event that arrived with the reply to a query.
    early: RefCell<Option<Vec<u8>>>,
    /// The last call reported the keyboard focus and postponed its queries. The next call sends
    /// them in any case, so that a client that keeps moving the focus cannot suppress other
    /// reports.
    cut_short: bool,
}

impl Attention {
    /// Connects and selects the root window's events; takes at most a few times the target's
    /// timeout.
    pub fn open(target: &DisplayTarget) -> Result<Attention, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        let atoms = ask::atoms(&connection)?;
        let view = AttentionView::new(connection.root(), atoms);
        let attention =
            Attention { connection, atoms, view, early: RefCell::new(None), cut_short: false };
        attention.queries().listen_to_root()?;
        Ok(attention)
    }

    /// The number of the display.
    pub fn display(&self) -> u32 {
        self.connection.display()
    }

    /// Becomes readable when there may be changes; the first [`Attention::changes`] is due without
    /// it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.connection.fd()
    }

    /// Returns the changes since the last call; at the first call the whole state.
    ///
    /// Never blocks longer than the target's timeout: a server that does not answer is
    /// [`DisplayError::Hung`]. States of windows come before the focus, and destroyed windows come
    /// last. A change of the keyboard focus is reported at once; other queries that are due then
    /// are left to the next call, which is due immediately.
    pub fn changes(&mut self) -> Result<Vec<AttentionChange>, DisplayError> {
        let queries = QueryBatch::new(&self.connection, &self.atoms);
        let mut early = self.early.take();
        for _ in 0..ROUNDS_MAX {
            let drained = handle_events(&queries, early.take(), &mut self.view)?;
            if drained && self.view.settled() {
                self.cut_short = false;
                return Ok(self.view.report());
            }
            self.cut_short = !self.cut_short && self.view.has_switched();
            if self.cut_short {
                break;
            }
            run_due_queries(&queries, &mut self.view)?;
        }
        queries.nudge()?;
        Ok(self.view.report())
    }

    /// Milliseconds since the last input of the user; `None` if the server lacks MIT-SCREEN-SAVER.
    pub fn idle_ms(&self) -> Result<Option<u64>, DisplayError> {
        let queries = self.queries();
        let idle = queries.idle_ms()?;
        let mut early = self.early.borrow_mut();
        if early.is_none() {
            *early = queries.next_event()?;
        }
        if early.is_some() {
            queries.nudge()?;
        }
        Ok(idle)
    }

    /// The display server and, as of the last [`Attention::changes`], the window manager.
    pub fn core(&self) -> Core {
        Core { server_pid: self.connection.server_pid, manager: self.view.manager_pid() }
    }

    /// Excess that was ignored because of a bound.
    pub fn dropped(&self) -> Dropped {
        self.view.dropped()
    }

    fn queries(&self) -> QueryBatch<'_> {
        QueryBatch::new(&self.connection, &self.atoms)
    }
}

/// Handles the pending events; returns `true` if none is left.
fn handle_events(
    queries: &QueryBatch<'_>,
    early: Option<Vec<u8>>,
    view: &mut AttentionView,
) -> Result<bool, DisplayError> {
    let mut next = early;
    for _ in 0..EVENTS_MAX {
        if next.is_none() {
            next = queries.next_event()?;
        }
        let Some(raw) = next.take() else { return Ok(true) };
        if let Some(event) = queries.parse(&raw) {
            view.handle(&event);
        }
    }
    Ok(false)
}

/// Queries everything that the view has marked.
fn run_due_queries(queries: &QueryBatch<'_>, view: &mut AttentionView) -> Result<(), DisplayError> {
    if view.take_listing_due() {
        let manager = queries.manager()?;
        let listing = queries.listing(manager.is_some())?;
        view.relist(manager, listing);
    }
    let new = view.take_unheard();
    queries.listen_to(new.iter().copied())?;
    for (window, frame) in queries.frames(&view.unframed())? {
        view.frame(window, frame);
    }
    for (window, facts) in queries.facts(&view.take_stale())? {
        view.learn(window, facts);
    }
    let frames = view.frames_of(&new);
    if !frames.is_empty() {
        view.cover(&new, &stack::hidden_windows(queries, &frames)?);
    }
    if view.take_focus_due() {
        find_focus(queries, view)?;
    }
    queries.flush()
}

fn find_focus(queries: &QueryBatch<'_>, view: &mut AttentionView) -> Result<(), DisplayError> {
    let ServerFocus { keyboard, pointer } = queries.focus()?;
    let pointer = view.at(pointer);
    let keyboard = match keyboard {
        ask::NOWHERE => None,
        ask::UNDER_POINTER => pointer,
        window => focused(queries, view, window)?,
    };
    view.attend(keyboard, pointer);
    Ok(())
}

/// Returns the followed window that contains `window`; follows one that is not listed.
fn focused(
    queries: &QueryBatch<'_>,
    view: &mut AttentionView,
    window: Window,
) -> Result<Option<Window>, DisplayError> {
    if let Some(known) = view.at(window) {
        return Ok(Some(known));
    }
    let lineage = queries.lineage(window)?;
    if let Some(known) = lineage.iter().find_map(|ancestor| view.at(*ancestor)) {
        return Ok(Some(known));
    }
    let Some((outermost, owner)) = queries.outermost(&lineage)? else { return Ok(None) };
    if owner.is_some() && owner == view.manager_pid() {
        return Ok(None);
    }
    view.adopt(outermost);
    Ok(Some(outermost))
}
