// SPDX-License-Identifier: MIT OR Apache-2.0
//! The side that answers, where each connection has one request.

use crate::connection::{Caller, Connection, Progress, reply};
use crate::daemon::Daemon;
use crate::listener::{BindError, Listener};
use crate::message::{self, Recorder};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Connections that may be open at a time; further ones wait to be accepted.
pub const MAX_CONNECTIONS: usize = 16;
/// Connections that are accepted or refused between two looks at the others.
const ACCEPTED_MAX: usize = 16;
/// How long a connection may take to send its line.
pub const READ_PATIENCE: Duration = Duration::from_secs(2);

/// A request to the recorder.
pub type Call = CallOf<Recorder>;

/// A request that waits for its answer. Dropped without one, the caller sees a closed connection.
#[derive(Debug)]
pub struct CallOf<D: Daemon> {
    pub request: D::Request,
    pub caller: Caller,
    stream: UnixStream,
}

impl<D: Daemon> CallOf<D> {
    /// Sends the answer, and closes the connection. A caller that is gone, or does not read, misses it.
    pub fn answer(self, response: &D::Response) {
        reply(&self.stream, response);
    }
}

/// The recorder's socket.
pub type Server = ServerOf<Recorder>;

/// A daemon's socket. The file is removed with the value.
#[derive(Debug)]
pub struct ServerOf<D> {
    listener: Listener,
    allowed: Vec<u32>,
    connections: Vec<Connection>,
    daemon: PhantomData<D>,
}

impl<D: Daemon> ServerOf<D> {
    /// Listens at `path`. Root and the users `allowed` may call; everyone may connect, to be told so.
    /// A socket file that a killed daemon left is replaced.
    ///
    /// # Errors
    /// Where another process listens there, or the socket cannot be made.
    pub fn bind(path: &Path, allowed: &[u32]) -> Result<ServerOf<D>, BindError> {
        let listener = Listener::bind::<D>(path)?;
        Ok(ServerOf { listener, allowed: allowed.to_vec(), connections: Vec::new(), daemon: PhantomData })
    }

    /// Descriptors that become readable when there is something to do; call [`Server::calls`] then.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let listener = self.listener.fd().filter(|_| self.connections.len() < MAX_CONNECTIONS);
        listener.into_iter().chain(self.connections.iter().map(|connection| connection.stream.as_fd())).collect()
    }

    /// How long to wait for the descriptors before [`Server::calls`] is due anyway; `None`: for ever.
    pub fn timeout(&self, now: Instant) -> Option<Duration> {
        let deadlines = self.connections.iter().filter_map(|connection| connection.deadline);
        deadlines.chain(self.listener.deadline()).min().map(|next| next.saturating_duration_since(now))
    }

    /// Accepts, reads, refuses and drops what there is to, without blocking, and returns the requests that are complete.
    pub fn calls(&mut self, now: Instant) -> Vec<CallOf<D>> {
        self.accept(now);
        let mut calls = Vec::new();
        for mut connection in std::mem::take(&mut self.connections) {
            match connection.read(now) {
                Progress::Pending => self.connections.push(connection),
                Progress::Ended => {}
                Progress::Bad(why) => connection.refuse(D::refusal(why)),
                Progress::Whole(line) => match message::request(&line) {
                    Ok(request) => calls.push(CallOf { request, caller: connection.caller, stream: connection.stream }),
                    Err(why) => connection.refuse(D::refusal(why)),
                },
            }
        }
        calls
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED_MAX {
            if self.connections.len() >= MAX_CONNECTIONS {
                return;
            }
            let Some((stream, caller)) = self.listener.accept(now) else { return };
            if caller.uid == 0 || self.allowed.contains(&caller.uid) {
                self.connections.push(Connection::new(stream, caller, Some(now + READ_PATIENCE)));
            } else {
                reply(&stream, &D::refusal(D::stranger(caller.uid)));
            }
        }
    }
}
