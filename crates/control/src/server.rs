// SPDX-License-Identifier: MIT OR Apache-2.0
//! The side that answers.

use crate::MAX_LINE_BYTES;
use crate::daemon::Daemon;
use crate::message::{self, Recorder};
use rustix::net::SendFlags;
use rustix::net::sockopt::socket_peercred;
use serde::Serialize;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Connections that may be open at a time; further ones wait to be accepted.
pub const MAX_CONNECTIONS: usize = 16;
/// How long a connection may take to send its line.
pub const READ_PATIENCE: Duration = Duration::from_secs(2);
/// How long nothing is accepted after accepting failed, for want of descriptors for instance.
const DEAF: Duration = Duration::from_millis(200);

/// Why the socket cannot be made.
#[derive(Debug, Error)]
pub enum BindError {
    #[error("a {daemon} listens at {} already; stop it, or use another --state-dir", path.display())]
    Taken { daemon: &'static str, path: PathBuf },
    #[error("cannot listen at {}: {cause}; choose a --state-dir that can be written and has a short path", path.display())]
    Io { path: PathBuf, cause: io::Error },
}

/// Who asks, as the kernel says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    pub pid: u32,
    pub uid: u32,
}

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
    listener: UnixListener,
    path: PathBuf,
    allowed: Vec<u32>,
    connections: Vec<Connection>,
    deaf_until: Option<Instant>,
    daemon: PhantomData<D>,
}

impl<D: Daemon> ServerOf<D> {
    /// Listens at `path`. Root and the users `allowed` may call; everyone may connect, to be told so.
    /// A socket file that a killed daemon left is replaced.
    ///
    /// # Errors
    /// Where another process listens there, or the socket cannot be made.
    pub fn bind(path: &Path, allowed: &[u32]) -> Result<ServerOf<D>, BindError> {
        if UnixStream::connect(path).is_ok() {
            return Err(BindError::Taken { daemon: D::NAME, path: path.to_owned() });
        }
        let listener = listen(path).map_err(|cause| BindError::Io { path: path.to_owned(), cause })?;
        let (path, allowed) = (path.to_owned(), allowed.to_vec());
        Ok(ServerOf { listener, path, allowed, connections: Vec::new(), deaf_until: None, daemon: PhantomData })
    }

    /// Descriptors that become readable when there is something to do; call [`Server::calls`] then.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let hears = self.deaf_until.is_none() && self.connections.len() < MAX_CONNECTIONS;
        let listener = hears.then(|| self.listener.as_fd());
        listener.into_iter().chain(self.connections.iter().map(|connection| connection.stream.as_fd())).collect()
    }

    /// How long to wait for the descriptors before [`Server::calls`] is due anyway; `None`: for ever.
    pub fn timeout(&self, now: Instant) -> Option<Duration> {
        let deadlines = self.connections.iter().map(|connection| connection.deadline);
        deadlines.chain(self.deaf_until).min().map(|next| next.saturating_duration_since(now))
    }

    /// Accepts, reads, refuses and drops what there is to, without blocking, and returns the requests that are complete.
    pub fn calls(&mut self, now: Instant) -> Vec<CallOf<D>> {
        if self.deaf_until.is_some_and(|until| until <= now) {
            self.deaf_until = None;
        }
        self.accept(now);
        let mut calls = Vec::new();
        for mut connection in std::mem::take(&mut self.connections) {
            match connection.read(now) {
                Progress::Pending => self.connections.push(connection),
                Progress::Bad(why) => reply(&connection.stream, &D::refusal(why)),
                Progress::Whole(line) => match message::request(&line) {
                    Ok(request) => calls.push(CallOf { request, caller: connection.caller, stream: connection.stream }),
                    Err(why) => reply(&connection.stream, &D::refusal(why)),
                },
            }
        }
        calls
    }

    fn accept(&mut self, now: Instant) {
        while self.deaf_until.is_none() && self.connections.len() < MAX_CONNECTIONS {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream, now),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.deaf_until = Some(now + DEAF),
            }
        }
    }

    fn admit(&mut self, stream: UnixStream, now: Instant) {
        // Without credentials or without its non-blocking mode a connection cannot be served.
        let (Ok(peer), Ok(())) = (socket_peercred(&stream), stream.set_nonblocking(true)) else { return };
        let caller = Caller { pid: peer.pid.as_raw_nonzero().get().unsigned_abs(), uid: peer.uid.as_raw() };
        if caller.uid == 0 || self.allowed.contains(&caller.uid) {
            self.connections.push(Connection { stream, caller, line: Vec::new(), deadline: now + READ_PATIENCE });
        } else {
            reply(&stream, &D::refusal(D::stranger(caller.uid)));
        }
    }
}

impl<D> Drop for ServerOf<D> {
    fn drop(&mut self) {
        // A file that stays is replaced by the next daemon.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Sends one line and nothing more; an answer that does not fit into the socket's buffer is lost.
fn reply(stream: &UnixStream, response: &impl Serialize) {
    let _ = rustix::net::send(stream, &message::to_line(response), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

#[derive(Debug)]
struct Connection {
    stream: UnixStream,
    caller: Caller,
    /// What was read so far, at most [`MAX_LINE_BYTES`].
    line: Vec<u8>,
    deadline: Instant,
}

enum Progress {
    Pending,
    /// A line without its end.
    Whole(Vec<u8>),
    /// Why the connection is to be closed.
    Bad(String),
}

impl Connection {
    fn read(&mut self, now: Instant) -> Progress {
        let room = (MAX_LINE_BYTES - self.line.len()) as u64;
        let end = (&self.stream).take(room).read_to_end(&mut self.line);
        if let Some(length) = self.line.iter().position(|byte| *byte == b'\n') {
            return Progress::Whole(self.line[..length].to_vec());
        }
        let waits = matches!(&end, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        if self.line.len() >= MAX_LINE_BYTES {
            Progress::Bad(format!("the request has more than {MAX_LINE_BYTES} bytes"))
        } else if !waits {
            Progress::Bad("the request ends without a line end".into())
        } else if self.deadline <= now {
            Progress::Bad(format!("no request within {} s", READ_PATIENCE.as_secs()))
        } else {
            Progress::Pending
        }
    }
}
