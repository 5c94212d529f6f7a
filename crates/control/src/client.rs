// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client side.

use crate::connection::Caller;
use crate::daemon::Daemon;
use crate::listener::peer;
use crate::message::{self, RecorderSocket};
use crate::{DEFAULT_STATE_DIR, MAX_LINE_BYTES};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::marker::PhantomData;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Maximum time for a daemon to answer: a mark is written within a second on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reason for a missing answer. `daemon` is the name of the daemon called, as in "recorder".
#[derive(Debug, Error)]
pub enum CallError {
    #[error(
        "no {daemon} listens at {}; start one with: {start}{}",
        path.display(), state_dir_option(path)
    )]
    Nobody { daemon: &'static str, start: &'static str, path: PathBuf },
    #[error(
        "the {daemon} at {} did not answer within {timeout:?}; check whether it or the disk \
         hangs: what was asked for is done when it goes on", path.display()
    )]
    Silent { daemon: &'static str, path: PathBuf, timeout: Duration },
    #[error("cannot talk to the {daemon} at {}: {cause}", path.display())]
    Io { daemon: &'static str, path: PathBuf, cause: io::Error },
    #[error(
        "the {daemon} at {} was stopped or failed before it answered; try again, and see its \
         messages in its terminal or with: journalctl -u 'tipme*'", path.display()
    )]
    Closed { daemon: &'static str, path: PathBuf },
    #[error("the {daemon} at {} has another version: {why}; restart it", path.display())]
    Foreign { daemon: &'static str, path: PathBuf, why: String },
    #[error("the request has more than {MAX_LINE_BYTES} bytes; shorten the text")]
    TooLong,
    /// The daemon's own message.
    #[error("{0}")]
    Refused(String),
}

/// Client of the recorder's socket.
pub type Client = ClientOf<RecorderSocket>;

/// Client of a daemon's socket. It is not connected between calls.
#[derive(Clone, Debug)]
pub struct ClientOf<D> {
    path: PathBuf,
    pub(crate) timeout: Duration,
    daemon: PhantomData<D>,
}

impl<D: Daemon> ClientOf<D> {
    /// Returns a client for the daemon with this state directory.
    pub fn new(state_dir: &Path) -> ClientOf<D> {
        ClientOf { path: state_dir.join(D::SOCKET), timeout: TIMEOUT, daemon: PhantomData }
    }

    /// Limits each step of a call to this timeout, which must not be zero.
    pub fn with_timeout(self, timeout: Duration) -> ClientOf<D> {
        ClientOf { timeout, ..self }
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// If there is no answer; a refusal becomes [`CallError::Refused`].
    pub fn call(&self, request: &D::Request) -> Result<D::Response, CallError> {
        let stream = self.connect().map_err(|error| self.error(error))?;
        self.exchange(&stream, request)
    }

    /// Opens a connection for many requests, to a daemon that accepts more than one.
    ///
    /// # Errors
    /// If no daemon listens.
    pub fn converse(self) -> Result<Dialogue<D>, CallError> {
        let connected = self.connect().and_then(|stream| Ok((peer(&stream)?, stream)));
        let (server, stream) = connected.map_err(|error| self.error(error))?;
        Ok(Dialogue { client: self, stream, server })
    }

    pub(crate) fn closed(&self) -> CallError {
        CallError::Closed { daemon: D::NAME, path: self.path.clone() }
    }

    fn exchange(
        &self,
        mut stream: &UnixStream,
        request: &D::Request,
    ) -> Result<D::Response, CallError> {
        let line = message::to_line(request);
        if line.len() > MAX_LINE_BYTES {
            return Err(CallError::TooLong);
        }
        // A daemon that refuses the caller answers without reading, so a failed send only matters
        // without an answer.
        let sent = stream.write_all(&line);
        let answer = self.answer(stream);
        match (answer, sent) {
            (Ok(response), _) => D::granted(response).map_err(CallError::Refused),
            (Err(CallError::Closed { .. }), Err(error)) => Err(self.error(error)),
            (Err(error), _) => Err(error),
        }
    }

    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        set_socket_timeout(&socket, Timeout::Send, Some(self.timeout))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(self.timeout))?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(&self.path)?)?;
        Ok(UnixStream::from(socket))
    }

    fn answer(&self, stream: &UnixStream) -> Result<D::Response, CallError> {
        let mut line = Vec::new();
        let mut reader = BufReader::new(stream.take(MAX_LINE_BYTES as u64 + 1));
        let read = reader.read_until(b'\n', &mut line);
        match read {
            // The connection is reset if the daemon closes it with part of the request unread.
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(self.error(error)),
            _ if line.is_empty() => Err(self.closed()),
            _ => message::parse_response(&line).map_err(|why| self.foreign(why)),
        }
    }

    pub(crate) fn foreign(&self, why: String) -> CallError {
        CallError::Foreign { daemon: D::NAME, path: self.path.clone(), why }
    }

    pub(crate) fn error(&self, cause: io::Error) -> CallError {
        let (daemon, path) = (D::NAME, self.path.clone());
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                CallError::Nobody { daemon, start: D::START, path }
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                CallError::Silent { daemon, path, timeout: self.timeout }
            }
            _ => CallError::Io { daemon, path, cause },
        }
    }
}

/// Returns the option to add to the command if the socket is not at its usual place.
fn state_dir_option(path: &Path) -> String {
    match path.parent() {
        Some(dir) if dir != Path::new(DEFAULT_STATE_DIR) => {
            format!(" --state-dir {}", dir.display())
        }
        _ => String::new(),
    }
}

/// A persistent connection to a daemon.
#[derive(Debug)]
pub struct Dialogue<D> {
    client: ClientOf<D>,
    stream: UnixStream,
    server: Caller,
}

impl<D: Daemon> Dialogue<D> {
    /// Returns the listening process, as reported by the kernel.
    pub fn server(&self) -> Caller {
        self.server
    }

    /// Sends a request, and waits for the answer. After an error other than [`CallError::Refused`],
    /// the connection is unusable.
    ///
    /// # Errors
    /// If there is no answer; a refusal becomes [`CallError::Refused`].
    pub fn ask(&mut self, request: &D::Request) -> Result<D::Response, CallError> {
        self.client.exchange(&self.stream, request)
    }
}
