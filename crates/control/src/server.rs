// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server side, with one request per connection.

use crate::connection::{Caller, Connection, Progress, READ_TIMEOUT, reply};
use crate::daemon::Daemon;
use crate::gate::{Entitled, Gate};
use crate::listener::{BindError, SocketListener};
use crate::message::{self, RecorderSocket};
use crate::rates::Rates;
use rustix::net::{RecvFlags, recv};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum number of open connections; beyond that, those of root wait to be accepted and others
/// are refused.
pub const MAX_CONNECTIONS: usize = 16;
/// Maximum number of those per user other than root.
pub(crate) const USER_CONNECTIONS: usize = 4;
/// Number of those reserved for root.
const ROOT_CONNECTIONS: usize = 4;
/// Maximum number of those that wait for the authority.
const ASKED_MAX: usize = 4;
/// Maximum number of connections accepted or refused before the others are served.
const ACCEPTED_MAX: usize = 64;
/// Pause of accepting after a refusal, which limits refusals to a few thousand per second.
const REFUSED_REST: Duration = Duration::from_millis(20);
/// Maximum burst of requests by one user other than root, and the time after which one more is
/// allowed.
const REQUESTS_BURST: u32 = 50;
const REQUEST_EVERY: Duration = Duration::from_millis(50);

/// A request to the recorder.
pub type Call = CallOf<RecorderSocket>;

/// A follower of the recorder.
pub type Follower = FollowerOf<RecorderSocket>;

/// A request that waits for its answer. If it is dropped without one, the caller sees a closed
/// connection.
#[derive(Debug)]
pub struct CallOf<D: Daemon> {
    pub request: D::Request,
    pub caller: Caller,
    /// Reason for which the caller may call.
    pub entitled: Entitled,
    stream: UnixStream,
}

impl<D: Daemon> CallOf<D> {
    /// Keeps the connection for notifications to the caller.
    pub fn follow(self) -> FollowerOf<D> {
        FollowerOf { caller: self.caller, stream: self.stream, daemon: PhantomData }
    }

    /// Sends the answer, and closes the connection. A caller that is gone or does not read misses
    /// it.
    pub fn answer(self, response: &D::Response) {
        reply(&self.stream, response);
    }
}

/// A caller that receives notifications until its connection ends.
#[derive(Debug)]
pub struct FollowerOf<D> {
    pub caller: Caller,
    stream: UnixStream,
    daemon: PhantomData<D>,
}

impl<D: Daemon> FollowerOf<D> {
    /// Sends a notification without blocking; returns `false` if the caller is gone or has not read
    /// earlier ones.
    pub fn tell(&self, response: &D::Response) -> bool {
        reply(&self.stream, response)
    }

    /// Returns `true` while the caller keeps the connection open; it sends nothing more.
    pub fn is_there(&self) -> bool {
        let mut byte = [0];
        let read = recv(&self.stream, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(read, Err(error) if error == rustix::io::Errno::AGAIN)
    }
}

/// The recorder's socket.
pub type Server = ServerOf<RecorderSocket>;

/// A daemon's socket. The file is removed on drop.
#[derive(Debug)]
pub struct ServerOf<D> {
    listener: SocketListener,
    /// Also holds connections that are not read until their authorization is decided.
    gate: Gate<Caller, Connection>,
    connections: Vec<(Entitled, Connection)>,
    /// Rate limits of users other than root.
    rates: Rates,
    daemon: PhantomData<D>,
}

impl<D: Daemon> ServerOf<D> {
    /// Listens at `path`. Any user may connect, but only those admitted by the gate may call;
    /// others get a refusal. Replaces a socket file left by a killed daemon.
    ///
    /// # Errors
    /// If another process listens there, or the socket cannot be created.
    pub fn bind(path: &Path, gate: Gate<Caller, Connection>) -> Result<ServerOf<D>, BindError> {
        let listener = SocketListener::bind::<D>(path)?;
        let rates = Rates::new(REQUESTS_BURST, REQUEST_EVERY);
        Ok(ServerOf { listener, gate, connections: Vec::new(), rates, daemon: PhantomData })
    }

    /// Returns descriptors that become readable when there is work; call [`Server::calls`] then.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let listener = self.listener.fd().filter(|_| self.open() < MAX_CONNECTIONS);
        let connections = self.connections.iter().map(|(_, connection)| connection.stream.as_fd());
        listener.into_iter().chain(self.gate.fd()).chain(connections).collect()
    }

    /// Returns the maximum time to wait for the descriptors before [`Server::calls`] is due; `None`
    /// for no limit.
    pub fn timeout(&self, now: Instant) -> Option<Duration> {
        let deadlines = self.all().filter_map(|connection| connection.deadline);
        let rest = self.listener.deadline().filter(|_| self.open() < MAX_CONNECTIONS);
        deadlines
            .chain(rest)
            .chain(self.gate.deadline())
            .min()
            .map(|next| next.saturating_duration_since(now))
    }

    fn all(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().map(|(_, connection)| connection).chain(self.gate.waiting())
    }

    fn open(&self) -> usize {
        self.all().count()
    }

    /// Accepts, reads, refuses and drops connections without blocking, and returns the complete
    /// requests.
    pub fn calls(&mut self, now: Instant) -> Vec<CallOf<D>> {
        self.accept(now);
        self.settle(now);
        let mut calls = Vec::new();
        for (entitled, mut connection) in std::mem::take(&mut self.connections) {
            match connection.read(now) {
                Progress::Pending => self.connections.push((entitled, connection)),
                Progress::Ended => {}
                Progress::Bad(why) => refuse::<D>(&connection, why),
                Progress::Whole(line) => match message::parse_request(&line) {
                    Ok(request) => {
                        let Connection { caller, stream, .. } = connection;
                        calls.push(CallOf { request, caller, entitled, stream });
                    }
                    Err(why) => refuse::<D>(&connection, why),
                },
            }
        }
        calls
    }

    fn accept(&mut self, now: Instant) {
        let mut refused = false;
        for _ in 0..ACCEPTED_MAX {
            if self.open() >= MAX_CONNECTIONS {
                break;
            }
            let Some((stream, caller)) = self.listener.accept(now) else { break };
            if let Err((why, connection)) = self.admit(Connection::new(stream, caller, None), now) {
                refused = true;
                refuse::<D>(&connection, why);
            }
        }
        if refused {
            self.listener.rest_for(now, REFUSED_REST);
        }
    }

    /// Admits a caller, or asks the authority about it.
    ///
    /// # Errors
    /// The reason why this user may not call now, with the connection.
    fn admit(&mut self, connection: Connection, now: Instant) -> Result<(), (String, Connection)> {
        let uid = connection.caller.uid;
        if let Some(why) = self.crowd(uid) {
            return Err((why, connection));
        }
        match self.gate.judge(uid, connection.caller, connection, now) {
            None => Ok(()),
            Some((connection, Err(why))) => Err((D::not_allowed_because(uid, &why), connection)),
            Some((connection, Ok(entitled))) => match self.rate_refusal(uid, now) {
                Some(why) => Err((why, connection)),
                None => {
                    self.let_in(entitled, connection, now);
                    Ok(())
                }
            },
        }
    }

    fn let_in(&mut self, entitled: Entitled, mut connection: Connection, now: Instant) {
        connection.deadline = Some(now + READ_TIMEOUT);
        self.connections.push((entitled, connection));
    }

    /// Returns the reason why this user cannot have another connection.
    fn crowd(&self, uid: u32) -> Option<String> {
        if uid == 0 {
            return None;
        }
        let own = self.all().filter(|connection| connection.caller.uid == uid).count();
        let others = self.all().filter(|connection| connection.caller.uid != 0).count();
        let unknown = self.gate.waiting().count() >= ASKED_MAX && self.gate.known(uid).is_none();
        let full =
            own >= USER_CONNECTIONS || others >= MAX_CONNECTIONS - ROOT_CONNECTIONS || unknown;
        full.then(|| {
            let at_most = MAX_CONNECTIONS - ROOT_CONNECTIONS;
            format!(
                "too many ask at once: user {uid} has {own} connections open (at most \
                 {USER_CONNECTIONS}), and all users {others} (at most {at_most}); wait until they \
                 have their answers"
            )
        })
    }

    /// Returns the reason why this user has to wait.
    fn rate_refusal(&mut self, uid: u32, now: Instant) -> Option<String> {
        let wait = Some(uid).filter(|uid| *uid != 0).and_then(|uid| self.rates.take(uid, now))?;
        Some(format!("user {uid} asks too often; try again in {} s", wait.as_secs() + 1))
    }

    /// Admits or refuses callers that the authority has decided on, or that have timed out.
    fn settle(&mut self, now: Instant) {
        for (connection, judged) in self.gate.settled(now) {
            match judged {
                Ok(entitled) => self.let_in(entitled, connection, now),
                Err(why) => {
                    let why = D::not_allowed_because(connection.caller.uid, &why);
                    refuse::<D>(&connection, why);
                }
            }
        }
    }
}

/// Sends a refusal to a caller, which may miss it.
fn refuse<D: Daemon>(connection: &Connection, why: String) {
    connection.reply(&D::refusal(why));
}
