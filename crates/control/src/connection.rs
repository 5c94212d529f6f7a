// SPDX-License-Identifier: MIT OR Apache-2.0
//! One caller's connection: received lines and replies.

use crate::MAX_LINE_BYTES;
use crate::message;
use rustix::net::SendFlags;
use serde::Serialize;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Maximum time for a connection to send its line.
pub const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Caller's process and user, from the kernel's peer credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    pub pid: u32,
    pub uid: u32,
}

/// A non-blocking stream, with the received part of the next line.
#[derive(Debug)]
pub struct Connection {
    pub(crate) stream: UnixStream,
    pub(crate) caller: Caller,
    /// Bytes read so far, at most [`MAX_LINE_BYTES`].
    line: Vec<u8>,
    /// Time by which the line must be complete; `None` while none is expected.
    pub(crate) deadline: Option<Instant>,
}

pub(crate) enum Progress {
    Pending,
    /// A line without its newline.
    Whole(Vec<u8>),
    /// The caller has closed its side, without an incomplete line.
    Ended,
    /// Reason to close the connection.
    Bad(String),
}

impl Connection {
    pub(crate) fn new(stream: UnixStream, caller: Caller, deadline: Option<Instant>) -> Connection {
        Connection { stream, caller, line: Vec::new(), deadline }
    }

    /// Reads the available bytes, up to the end of one line. A line must be complete within
    /// [`READ_TIMEOUT`] of its first byte.
    pub(crate) fn read(&mut self, now: Instant) -> Progress {
        if let Some(line) = self.take_line(0) {
            return Progress::Whole(line);
        }
        let known = self.line.len();
        let end = (&self.stream).take((MAX_LINE_BYTES - known) as u64).read_to_end(&mut self.line);
        if let Some(line) = self.take_line(known) {
            return Progress::Whole(line);
        }
        if !self.line.is_empty() {
            self.deadline.get_or_insert(now + READ_TIMEOUT);
        }
        let waits = matches!(&end, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        if self.line.len() >= MAX_LINE_BYTES {
            Progress::Bad(format!("the request has more than {MAX_LINE_BYTES} bytes"))
        } else if !waits && self.line.is_empty() {
            Progress::Ended
        } else if !waits {
            Progress::Bad("the request ends without a line end".into())
        } else if self.deadline.is_some_and(|deadline| deadline <= now) {
            Progress::Bad(format!("no request within {} s", READ_TIMEOUT.as_secs()))
        } else {
            Progress::Pending
        }
    }

    /// Removes a complete line from the buffer if its newline is at `from` or later.
    fn take_line(&mut self, from: usize) -> Option<Vec<u8>> {
        let length = from + self.line[from..].iter().position(|byte| *byte == b'\n')?;
        let rest = self.line.split_off(length + 1);
        let mut line = std::mem::replace(&mut self.line, rest);
        line.truncate(length);
        self.deadline = None;
        Some(line)
    }

    /// Sends a reply like [`reply`].
    pub(crate) fn reply(&self, response: &impl Serialize) -> bool {
        reply(&self.stream, response)
    }
}

/// Sends one line without blocking; returns `true` if it fits into the socket's buffer. Otherwise
/// the rest is lost.
pub(crate) fn reply(stream: &UnixStream, response: &impl Serialize) -> bool {
    let line = message::to_line(response);
    rustix::net::send(stream, &line, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) == Ok(line.len())
}
