// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user attends to on an X display: who has the keyboard, who the pointer, which windows can be seen,
//! and whose they are.
//!
//! The display's events only tell that something changed; what it is now is asked of the server, once for
//! all events that came together. So events that are missed, come twice or are forged do no harm, and a
//! caller learns the last state of each window once. While nothing happens, nothing is sent and nothing is
//! looked at.
//!
//! Windows are those in the window manager's list, `_NET_CLIENT_LIST`. Where no manager keeps one they are
//! the mapped children of the root window that a manager would manage. A window that gets the keyboard
//! without being in the list is taken in as well.
//!
//! Other clients of the display are not trusted. Windows and helpers are bounded and what is beyond is
//! counted; events that a client sent instead of the server are left out; a window that goes between an event
//! and a question is a normal outcome. Two things are what programs say of themselves: a window's
//! `_TIPME_PROCESS_SET`, and who the window manager is. Whoever acts on them must judge them.
//!
//! Under a compositing manager no window counts as obscured: the server itself knows no better.

mod ask;
mod change;
mod stack;
mod view;

pub(crate) use ask::read_any;
pub use change::{AttentionChange, Core, Dropped, HELPERS_MAX, WINDOWS_MAX, WindowOwner, WindowState};

use crate::connect::{DisplayConnection, DisplayTarget};
use crate::error::DisplayError;
use ask::{Atoms, QueryBatch, ServerFocus};
use rustix::fd::BorrowedFd;
use std::cell::RefCell;
use view::AttentionView;
use x11rb::protocol::xproto::Window;

/// Times that one call asks again because of events that came while it asked.
const ROUNDS_MAX: usize = 4;
/// Events that one round takes in, at most.
const EVENTS_MAX: usize = 4096;

/// Follows the user's attention on one display.
///
/// After an error the connection is of no more use: open another one.
pub struct Attention {
    connection: DisplayConnection,
    atoms: Atoms,
    view: AttentionView,
    /// An event that came with the answer to another question.
    early: RefCell<Option<Vec<u8>>>,
    /// The last call told of the keyboard and left questions; so the next one asks them whatever comes, since
    /// a client that moves the focus without end must not keep everything else from being told.
    cut_short: bool,
}

impl Attention {
    /// Connects and asks for the root window's events; takes at most a few times the target's timeout.
    pub fn open(target: &DisplayTarget) -> Result<Attention, DisplayError> {
        let connection = DisplayConnection::open(target)?;
        let atoms = ask::atoms(&connection)?;
        let view = AttentionView::new(connection.root(), atoms);
        let attention = Attention { connection, atoms, view, early: RefCell::new(None), cut_short: false };
        attention.queries().listen_to_root()?;
        Ok(attention)
    }

    /// The number of the display.
    pub fn display(&self) -> u32 {
        self.connection.display()
    }

    /// Becomes readable when there may be changes; the first [`Attention::changes`] is due without it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.connection.fd()
    }

    /// What has changed since the last call; the whole state at the first one.
    ///
    /// Never blocks longer than the target's timeout: a server that does not answer is [`DisplayError::Hung`]. States of
    /// windows come before who has the focus, and windows that are gone come last. Another window with the
    /// keyboard is told at once; what must be asked at that time is asked in the next call, which is due then.
    pub fn changes(&mut self) -> Result<Vec<AttentionChange>, DisplayError> {
        let queries = QueryBatch::new(&self.connection, &self.atoms);
        let mut early = self.early.take();
        for _ in 0..ROUNDS_MAX {
            let drained = take_in(&queries, early.take(), &mut self.view)?;
            if drained && self.view.settled() {
                self.cut_short = false;
                return Ok(self.view.report());
            }
            self.cut_short = !self.cut_short && self.view.has_switched();
            if self.cut_short {
                break;
            }
            find_out(&queries, &mut self.view)?;
        }
        queries.nudge()?;
        Ok(self.view.report())
    }

    /// Milliseconds since the last input of the user; `None` where the server lacks MIT-SCREEN-SAVER.
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

    /// What was left out because of a bound.
    pub fn dropped(&self) -> Dropped {
        self.view.dropped()
    }

    fn queries(&self) -> QueryBatch<'_> {
        QueryBatch::new(&self.connection, &self.atoms)
    }
}

/// Takes in the events that are there; true when none is left.
fn take_in(queries: &QueryBatch<'_>, early: Option<Vec<u8>>, view: &mut AttentionView) -> Result<bool, DisplayError> {
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

/// Asks the server about everything that the view has marked.
fn find_out(queries: &QueryBatch<'_>, view: &mut AttentionView) -> Result<(), DisplayError> {
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
    let ServerFocus { keyboard, pointer } = queries.looks()?;
    let pointer = view.at(pointer);
    let keyboard = match keyboard {
        ask::NOWHERE => None,
        ask::UNDER_POINTER => pointer,
        window => focused(queries, view, window)?,
    };
    view.attend(keyboard, pointer);
    Ok(())
}

/// The followed window that `window` is in; one that is not in the list is taken in.
fn focused(queries: &QueryBatch<'_>, view: &mut AttentionView, window: Window) -> Result<Option<Window>, DisplayError> {
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
