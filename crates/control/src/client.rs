// SPDX-License-Identifier: MIT OR Apache-2.0
//! The side that asks.

use crate::{DEFAULT_STATE_DIR, MAX_LINE_BYTES, Request, Response, SOCKET_NAME};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// How long a recorder may take to answer: a mark is written within a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum CallError {
    #[error("no recorder listens at {}; start one with: sudo tipme record{}", .0.display(), state_dir_option(.0))]
    NoRecorder(PathBuf),
    #[error("the recorder at {} did not answer within {patience:?}; see whether it is stopped or the disk hangs", path.display())]
    Silent { path: PathBuf, patience: Duration },
    #[error("cannot talk to the recorder at {}: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error("the recorder at {} closed the connection without an answer; see its messages", .0.display())]
    Closed(PathBuf),
    #[error("the recorder at {} is of another version: {why}; restart it", path.display())]
    Foreign { path: PathBuf, why: String },
    #[error("the request has more than {MAX_LINE_BYTES} bytes; shorten the text")]
    TooLong,
    /// The recorder's own words.
    #[error("{0}")]
    Refused(String),
}

/// A recorder's socket, seen from outside. Nothing is connected between calls.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
    patience: Duration,
}

impl Client {
    /// The recorder with this state directory.
    pub fn new(state_dir: &Path) -> Client {
        Client { path: state_dir.join(SOCKET_NAME), patience: PATIENCE }
    }

    /// As it is, but waiting for each step of a call only so long; not zero.
    pub fn with_patience(self, patience: Duration) -> Client {
        Client { patience, ..self }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// Where there is no answer; a [`Response::Error`] becomes [`CallError::Refused`].
    pub fn call(&self, request: &Request) -> Result<Response, CallError> {
        let line = request.to_line();
        if line.len() > MAX_LINE_BYTES {
            return Err(CallError::TooLong);
        }
        let mut stream = self.connect().map_err(|error| self.error(error))?;
        // A recorder that refuses the caller answers without reading, so a failure to send is told only without an answer.
        let sent = stream.write_all(&line);
        let answer = self.answer(stream);
        match (answer, sent) {
            (Ok(Response::Error(why)), _) => Err(CallError::Refused(why)),
            (Err(CallError::Closed(_)), Err(error)) => Err(self.error(error)),
            (answer, _) => answer,
        }
    }

    fn connect(&self) -> io::Result<UnixStream> {
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Send, Some(self.patience))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(self.patience))?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(&self.path)?)?;
        Ok(UnixStream::from(socket))
    }

    fn answer(&self, stream: UnixStream) -> Result<Response, CallError> {
        let mut line = Vec::new();
        let mut reader = BufReader::new(stream.take(MAX_LINE_BYTES as u64 + 1));
        let read = reader.read_until(b'\n', &mut line);
        match read {
            // The connection is reset where the recorder closes it with part of the request unread.
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(self.error(error)),
            _ if line.is_empty() => Err(CallError::Closed(self.path.clone())),
            _ => Response::parse(&line).map_err(|why| CallError::Foreign { path: self.path.clone(), why }),
        }
    }

    fn error(&self, cause: io::Error) -> CallError {
        let path = self.path.clone();
        match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => CallError::NoRecorder(path),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => CallError::Silent { path, patience: self.patience },
            _ => CallError::Io { path, cause },
        }
    }
}

/// What to add to the command where the socket is not at its usual place.
fn state_dir_option(path: &Path) -> String {
    match path.parent() {
        Some(dir) if dir != Path::new(DEFAULT_STATE_DIR) => format!(" --state-dir {}", dir.display()),
        _ => String::new(),
    }
}
