// SPDX-License-Identifier: MIT OR Apache-2.0
//! The side that answers, where each connection has one request.

use crate::connection::{Caller, Connection, Progress, reply};
use crate::daemon::Daemon;
use crate::listener::{BindError, Listener};
use crate::message::{self, Recorder};
use crate::rates::Rates;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Connections that may be open at a time; further ones of root wait to be accepted, those of others are refused.
pub const MAX_CONNECTIONS: usize = 16;
/// Of these, connections that one user who is not root may have.
pub const USER_CONNECTIONS: usize = 4;
/// Of these, connections that are left to root.
const ROOT_CONNECTIONS: usize = 4;
/// Connections that are accepted or refused between two looks at the others.
const ACCEPTED_MAX: usize = 64;
/// How long nobody is accepted after somebody was refused: a few thousand refusals a second are all that is made.
const REFUSED_REST: Duration = Duration::from_millis(20);
/// Requests that one user who is not root may make at once, and how often one more.
const REQUESTS_BURST: u32 = 50;
const REQUEST_EVERY: Duration = Duration::from_millis(50);
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
    /// Of users who are not root.
    rates: Rates,
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
        let rates = Rates::new(REQUESTS_BURST, REQUEST_EVERY);
        Ok(ServerOf { listener, allowed: allowed.to_vec(), connections: Vec::new(), rates, daemon: PhantomData })
    }

    /// Descriptors that become readable when there is something to do; call [`Server::calls`] then.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let listener = self.listener.fd().filter(|_| self.connections.len() < MAX_CONNECTIONS);
        listener.into_iter().chain(self.connections.iter().map(|connection| connection.stream.as_fd())).collect()
    }

    /// How long to wait for the descriptors before [`Server::calls`] is due anyway; `None`: for ever.
    pub fn timeout(&self, now: Instant) -> Option<Duration> {
        let deadlines = self.connections.iter().filter_map(|connection| connection.deadline);
        let rest = self.listener.deadline().filter(|_| self.connections.len() < MAX_CONNECTIONS);
        deadlines.chain(rest).min().map(|next| next.saturating_duration_since(now))
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
        let mut refused = false;
        for _ in 0..ACCEPTED_MAX {
            if self.connections.len() >= MAX_CONNECTIONS {
                break;
            }
            let Some((stream, caller)) = self.listener.accept(now) else { break };
            match self.refusal(caller.uid, now) {
                None => self.connections.push(Connection::new(stream, caller, Some(now + READ_PATIENCE))),
                Some(why) => {
                    refused = true;
                    reply(&stream, &D::refusal(why));
                }
            }
        }
        if refused {
            self.listener.rest_for(now, REFUSED_REST);
        }
    }

    /// Why this user may not call now.
    fn refusal(&mut self, uid: u32, now: Instant) -> Option<String> {
        if uid == 0 {
            return None;
        }
        if !self.allowed.contains(&uid) {
            return Some(D::stranger(uid));
        }
        let own = self.connections.iter().filter(|connection| connection.caller.uid == uid).count();
        let others = self.connections.iter().filter(|connection| connection.caller.uid != 0).count();
        if own >= USER_CONNECTIONS || others >= MAX_CONNECTIONS - ROOT_CONNECTIONS {
            return Some(format!("user {uid} has {own} connections open, and users {others}; close some, or wait"));
        }
        let wait = self.rates.take(uid, now)?;
        Some(format!("user {uid} asks too often; try again in {} s", wait.as_secs() + 1))
    }
}
