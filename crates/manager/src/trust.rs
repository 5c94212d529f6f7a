// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which claims of windows are believed.
//!
//! A set gets the favour of the attention that a window has, so a window must not be able to name somebody
//! else's processes. What the display server says of who is connected is believed. What a window says of
//! itself is not, where the server could have said it: the client is on another machine then, or the number
//! belongs to another name space. In any case only processes of the user whose display this is get a favour.

use crate::connections::are_connected;
use std::path::Path;
use tipme_desktop::PidSource;
use tipme_desktop::attention::WindowOwner;
use tipme_policy::Identity;
use tipme_sched::processes::{self, Stat};

/// Why a claim is not believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClaimRefusal {
    /// Nobody says which process made the window.
    Unknown,
    /// There is no such process, or no longer.
    Gone,
    /// It belongs to a user who is not the display's.
    OtherUser(u32),
    /// The window says so itself, and the server, which knows its clients, does not.
    OwnWords,
    /// The window says so itself, and another client is that process.
    OtherClient,
    /// It has no connection to the display server: the client has ended, and its number was used again.
    NotConnected,
    /// It belongs to the session: the display server or the window manager.
    Core,
}

/// What claims are held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimContext<'a> {
    pub(crate) proc: &'a Path,
    /// The user whose display it is.
    pub(crate) user: u32,
    /// The server says of its clients which processes they are.
    pub(crate) server_knows: bool,
    /// The process in which connections of clients end, where that can be seen.
    pub(crate) server: Option<u32>,
}

impl ClaimContext<'_> {
    /// The process that made a window. `is_client` knows those that the server named.
    pub(crate) fn owner(
        &self,
        owner: Option<&WindowOwner>,
        is_client: impl Fn(Identity) -> bool,
    ) -> Result<Identity, ClaimRefusal> {
        let owner = owner.ok_or(ClaimRefusal::Unknown)?;
        let own_words = owner.how == PidSource::Property;
        if own_words && self.server_knows {
            return Err(ClaimRefusal::OwnWords);
        }
        let process = self.process(owner.pid)?;
        if own_words && is_client(process.identity) {
            return Err(ClaimRefusal::OtherClient);
        }
        if !own_words && self.server.is_some_and(|server| are_connected(self.proc, owner.pid, server) == Some(false)) {
            return Err(ClaimRefusal::NotConnected);
        }
        Ok(process.identity)
    }

    /// Those of the processes that a window names as its helpers which are there and belong to the user.
    /// The second number counts the others.
    pub(crate) fn helpers(&self, pids: &[u32]) -> (Vec<Identity>, u64) {
        let believed: Vec<Identity> = pids.iter().filter_map(|pid| Some(self.process(*pid).ok()?.identity)).collect();
        let refused = (pids.len() - believed.len()) as u64;
        (believed, refused)
    }

    fn process(&self, pid: u32) -> Result<Stat, ClaimRefusal> {
        let process = processes::read(self.proc, pid).ok_or(ClaimRefusal::Gone)?;
        if process.uid == self.user { Ok(process) } else { Err(ClaimRefusal::OtherUser(process.uid)) }
    }
}
