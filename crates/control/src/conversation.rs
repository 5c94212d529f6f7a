// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connection that lasts: many requests, one after the other, for as long as the caller lives.
//!
//! Both sides wait, so a daemon gives each conversation a thread of its own, and a caller that is slow or
//! means harm holds up nobody else. The next request is read only after the last one was answered: who
//! floods fills the kernel's buffer of its own socket and then waits.

use crate::connection::{Caller, Connection, Progress};
use crate::daemon::Daemon;
use crate::message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::marker::PhantomData;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The side that answers.
#[derive(Debug)]
pub struct Conversation<D> {
    connection: Connection,
    daemon: PhantomData<D>,
}

impl<D> Drop for Conversation<D> {
    /// The caller sees the end, though the daemon may have kept the stream in hand besides.
    fn drop(&mut self) {
        self.connection.stream.shutdown(Shutdown::Both).ok();
    }
}

/// What came of waiting for a request.
#[derive(Debug)]
pub enum Received<R> {
    Request(R),
    /// Why the conversation is to end.
    Bad(String),
    /// Nothing came in the time that was given.
    Nothing,
    /// The caller has closed the connection, or was killed.
    Gone,
}

impl<D: Daemon> Conversation<D> {
    /// Goes on with a stream that does not block, as [`Listener::accept`](crate::Listener::accept) gives it.
    pub fn new(stream: UnixStream, caller: Caller) -> Conversation<D> {
        Conversation { connection: Connection::new(stream, caller, None), daemon: PhantomData }
    }

    pub fn caller(&self) -> Caller {
        self.connection.caller
    }

    /// Waits for the next request, so long at most; `None`: for as long as the caller lives. What has come of a line
    /// by then is kept for the next time. What a caller that is gone has still asked for is not heard.
    pub fn hear(&mut self, timeout: Option<Duration>) -> Received<D::Request> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let now = Instant::now();
            let progress = if self.wait(Some(Duration::ZERO)) { self.connection.read(now) } else { Progress::Ended };
            match progress {
                Progress::Ended => return Received::Gone,
                Progress::Bad(why) => return Received::Bad(why),
                Progress::Whole(line) => return message::request(&line).map_or_else(Received::Bad, Received::Request),
                Progress::Pending if until.is_some_and(|until| until <= now) => return Received::Nothing,
                Progress::Pending => {}
            }
            let next = until.into_iter().chain(self.connection.deadline).min();
            self.wait(next.map(|next| next.saturating_duration_since(now)));
        }
    }

    /// Sends the answer; false where it does not fit into the socket's buffer, since the caller does not read.
    pub fn answer(&self, response: &D::Response) -> bool {
        self.connection.reply(response)
    }

    /// Waits so long, and no longer than the caller lives; false where it does not.
    pub fn pause(&self, time: Duration) -> bool {
        self.watch(PollFlags::empty(), Some(time))
    }

    fn wait(&self, time: Option<Duration>) -> bool {
        self.watch(PollFlags::IN, time)
    }

    /// Waits for something of the connection; false where the other end is closed.
    fn watch(&self, flags: PollFlags, time: Option<Duration>) -> bool {
        let timeout = time.and_then(|time| Timespec::try_from(time).ok());
        let mut fds = [PollFd::new(&self.connection.stream, flags)];
        // An interruption and a failure are as good as a wait that was short.
        let _ = poll(&mut fds, timeout.as_ref());
        !fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}
