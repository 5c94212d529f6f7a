// SPDX-License-Identifier: MIT OR Apache-2.0
//! Validation of windows' claims about their processes.
//!
//! A set is favoured for the attention that a window has, so a window must not be able to claim
//! processes of another user. Information from the display server about its clients is trusted. A
//! window's own claim is not, if the server could have confirmed it: the client is on another
//! machine then, or the PID belongs to another namespace. In any case only processes of the
//! display's user are favoured.

use crate::connections::are_connected;
use std::path::Path;
use tipme_desktop::PidSource;
use tipme_desktop::attention::WindowOwner;
use tipme_policy::Identity;
use tipme_sched::processes::{self, Stat};

/// Reason why a claim is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClaimRefusal {
    /// The process of the window is unknown.
    Unknown,
    /// The process does not exist, or no longer.
    Gone,
    /// The process belongs to another user than the display.
    OtherUser(u32),
    /// Claimed by the window alone, although the server knows its clients.
    OwnWords,
    /// Claimed by the window alone, and another client is that process.
    OtherClient,
    /// The process has no connection to the display server: the client has ended, and its PID was
    /// reused.
    NotConnected,
    /// The process is part of the session: the display server or the window manager.
    Core,
}

/// Facts against which claims are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimContext<'a> {
    pub(crate) proc: &'a Path,
    /// Owner of the display.
    pub(crate) user: u32,
    /// The server identifies the processes of its clients.
    pub(crate) server_knows: bool,
    /// Process that accepts connections of clients, if that is visible.
    pub(crate) server: Option<u32>,
}

impl ClaimContext<'_> {
    /// Returns the process that created a window. `is_client` identifies those that the server
    /// confirmed.
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
        if !own_words
            && self
                .server
                .is_some_and(|server| are_connected(self.proc, owner.pid, server) == Some(false))
        {
            return Err(ClaimRefusal::NotConnected);
        }
        Ok(process.identity)
    }

    /// Returns the processes listed by a window as its helpers that exist and belong to the user,
    /// and the number of the others.
    pub(crate) fn helpers(&self, pids: &[u32]) -> (Vec<Identity>, u64) {
        let believed: Vec<Identity> =
            pids.iter().filter_map(|pid| Some(self.process(*pid).ok()?.identity)).collect();
        let refused = (pids.len() - believed.len()) as u64;
        (believed, refused)
    }

    fn process(&self, pid: u32) -> Result<Stat, ClaimRefusal> {
        let process = processes::read(self.proc, pid).ok_or(ClaimRefusal::Gone)?;
        if process.uid == self.user {
            Ok(process)
        } else {
            Err(ClaimRefusal::OtherUser(process.uid))
        }
    }
}
