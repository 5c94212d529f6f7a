// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client side of notifications over a persistent connection.

use crate::client::{CallError, ClientOf};
use crate::connection::{Caller, Connection, Progress};
use crate::daemon::Daemon;
use crate::message::{self, RecorderSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// Notifications of the recorder.
pub type Following = FollowingOf<RecorderSocket>;

/// Notifications of a daemon. Each line is subject to the same limits as a request.
#[derive(Debug)]
pub struct FollowingOf<D> {
    client: ClientOf<D>,
    connection: Connection,
}

impl<D: Daemon> FollowingOf<D> {
    /// Requests notifications from a daemon, and waits for its consent.
    ///
    /// # Errors
    /// Those of [`ClientOf::call`].
    pub fn begin(client: ClientOf<D>, request: &D::Request) -> Result<FollowingOf<D>, CallError> {
        let asked = client
            .connect()
            .and_then(|stream| (&stream).write_all(&message::to_line(request)).map(|()| stream));
        let stream = asked.map_err(|error| client.error(error))?;
        stream.set_nonblocking(true).map_err(|error| client.error(error))?;
        let daemon = Caller { pid: 0, uid: 0 };
        let mut following =
            FollowingOf { connection: Connection::new(stream, daemon, None), client };
        loop {
            if let Some(granted) = following.next()? {
                return D::granted(granted).map(|_| following).map_err(CallError::Refused);
            }
            following.wait()?;
        }
    }

    /// Returns a descriptor that becomes readable on a notification; call [`FollowingOf::news`]
    /// once before the first one.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.connection.stream.as_fd()
    }

    /// Returns the notifications since the last call, without blocking.
    ///
    /// # Errors
    /// If the daemon is gone, or sends an invalid line; nothing follows then.
    pub fn news(&mut self) -> Result<Vec<D::Response>, CallError> {
        let mut news = Vec::new();
        while let Some(response) = self.next()? {
            news.push(response);
        }
        Ok(news)
    }

    fn next(&mut self) -> Result<Option<D::Response>, CallError> {
        match self.connection.read(Instant::now()) {
            Progress::Pending => Ok(None),
            Progress::Whole(line) => {
                message::parse_response(&line).map(Some).map_err(|why| self.client.foreign(why))
            }
            Progress::Ended => Err(self.client.closed()),
            Progress::Bad(why) => Err(self.client.foreign(why)),
        }
    }

    fn wait(&self) -> Result<(), CallError> {
        let timeout = Timespec::try_from(self.client.timeout).ok();
        match poll(&mut [PollFd::from_borrowed_fd(self.fd(), PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => Err(self.client.error(io::ErrorKind::TimedOut.into())),
            Err(error) if error != rustix::io::Errno::INTR => Err(self.client.error(error.into())),
            _ => Ok(()),
        }
    }
}
