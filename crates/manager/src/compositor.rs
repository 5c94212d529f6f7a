// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keyboard focus on a Wayland compositor, as reported by the recorder. No Wayland protocol links a
//! window to a process, but the client that receives `keyboard.enter` has the focus.
//!
//! A client counts as one window. The visibility of clients without the focus is unknown: they
//! count as hidden. While the recorder is away, the focus stays as it was.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvFlags, recv};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tipme_control::{CallError, Client, Following, RecorderRequest, RecorderResponse};
use tipme_desktop::attention::{
    AttentionChange, Core, Dropped, WINDOWS_MAX, WindowOwner, WindowState,
};
use tipme_desktop::{DisplayError, PidSource};
use tipme_policy::Identity;
use tipme_sched::processes;

/// Timeout for the recorder's confirmation of the subscription.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Number of looks between two attempts to reach a missing recorder.
const ASK_EVERY: u32 = 10;

pub(crate) struct CompositorFocus {
    proc: PathBuf,
    socket: PathBuf,
    recorder: PathBuf,
    /// Open but silent connection: it closes with the compositor.
    connection: UnixStream,
    server_pid: u32,
    following: Option<Following>,
    /// Clients that had the focus, each with its window number.
    windows: BTreeMap<Identity, u32>,
    focused: Option<Identity>,
    numbers: u32,
    looks: u32,
    dropped: Dropped,
}

impl CompositorFocus {
    pub(crate) fn open(
        socket: &Path,
        recorder: &Path,
        proc: &Path,
    ) -> Result<CompositorFocus, DisplayError> {
        let (connection, server_pid, following) = connect(socket, recorder)
            .map_err(|reason| DisplayError::NoCompositor { socket: socket.to_owned(), reason })?;
        Ok(CompositorFocus {
            proc: proc.to_owned(),
            socket: socket.to_owned(),
            recorder: recorder.to_owned(),
            connection,
            server_pid,
            following: Some(following),
            windows: BTreeMap::new(),
            focused: None,
            numbers: 0,
            looks: 0,
            dropped: Dropped::default(),
        })
    }

    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let following = self.following.as_ref().map(Following::fd);
        [self.connection.as_fd()].into_iter().chain(following).collect()
    }

    pub(crate) fn core(&self) -> Core {
        Core { server_pid: self.server_pid, manager: Some(self.server_pid) }
    }

    pub(crate) fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Returns the changes since the last call.
    ///
    /// # Errors
    /// Fails if the compositor is gone.
    pub(crate) fn changes(&mut self) -> Result<Vec<AttentionChange>, DisplayError> {
        self.check_connection()?;
        let news = self.following.as_mut().map_or(Ok(Vec::new()), Following::news);
        let news = news.unwrap_or_else(|_| {
            self.following = None;
            Vec::new()
        });
        // Only the last of several focus changes counts.
        let last = news.iter().rev().find_map(|response| match response {
            RecorderResponse::Focus(focus) if focus.server == self.server_pid => Some(focus.client),
            _ => None,
        });
        Ok(last.map(|client| self.move_focus(client)).unwrap_or_default())
    }

    /// Finds clients that have ended, and now and then retries to reach a missing recorder.
    ///
    /// # Errors
    /// Fails if the compositor is gone.
    pub(crate) fn look(&mut self) -> Result<Vec<AttentionChange>, DisplayError> {
        let mut changes = Vec::new();
        self.looks = self.looks.wrapping_add(1);
        if self.following.is_none() && self.looks.is_multiple_of(ASK_EVERY) {
            self.following = follow(&self.recorder).ok();
            changes = self.changes()?;
        }
        let proc = &self.proc;
        self.windows.retain(|client, window| {
            let lives = processes::lives(proc, *client);
            changes.extend((!lives).then_some(AttentionChange::Gone(*window)));
            lives
        });
        self.focused = self.focused.filter(|client| self.windows.contains_key(client));
        Ok(changes)
    }

    /// Moves the focus to a process, or to no known one.
    fn move_focus(&mut self, client: Option<u32>) -> Vec<AttentionChange> {
        let client = client.and_then(|pid| processes::identity(&self.proc, pid));
        let client = client.filter(|client| self.has_room(*client));
        let before =
            std::mem::replace(&mut self.focused, client).filter(|before| Some(*before) != client);
        let mut changes: Vec<AttentionChange> =
            before.and_then(|before| self.window(before, false)).into_iter().collect();
        changes.extend(client.and_then(|client| self.window(client, true)));
        changes.push(AttentionChange::Keyboard(
            client.and_then(|client| self.windows.get(&client).copied()),
        ));
        changes
    }

    fn has_room(&mut self, client: Identity) -> bool {
        if self.windows.contains_key(&client) {
            return true;
        }
        if self.windows.len() >= WINDOWS_MAX {
            self.dropped.windows += 1;
            return false;
        }
        self.numbers += 1;
        self.windows.insert(client, self.numbers);
        true
    }

    fn window(&self, client: Identity, visible: bool) -> Option<AttentionChange> {
        let owner = Some(WindowOwner { pid: client.pid, how: PidSource::Server });
        let window = *self.windows.get(&client)?;
        Some(AttentionChange::Window(WindowState {
            window,
            owner,
            helpers: Vec::new(),
            visible,
            iconic: false,
        }))
    }

    /// Detects a closed connection: a compositor sends nothing to a client without requests.
    fn check_connection(&self) -> Result<(), DisplayError> {
        let ended = recv(&self.connection, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT)
            .map(|(read, _)| read)
            == Ok(0);
        if ended { Err(self.gone("it has ended".to_owned())) } else { Ok(()) }
    }

    pub(crate) fn gone(&self, reason: String) -> DisplayError {
        DisplayError::NoCompositor { socket: self.socket.clone(), reason }
    }
}

/// Connects to the compositor and follows its focus; also returns the compositor's PID.
fn connect(socket: &Path, recorder: &Path) -> Result<(UnixStream, u32, Following), String> {
    let connection = UnixStream::connect(socket).map_err(|error| error.to_string())?;
    let peer = socket_peercred(&connection).map_err(|error| error.to_string())?;
    let following = follow(recorder).map_err(|error| error.to_string())?;
    Ok((connection, peer.pid.as_raw_nonzero().get().unsigned_abs(), following))
}

fn follow(recorder: &Path) -> Result<Following, CallError> {
    Following::begin(Client::new(recorder).with_timeout(TIMEOUT), &RecorderRequest::Follow)
}
