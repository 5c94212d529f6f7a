// SPDX-License-Identifier: MIT OR Apache-2.0
//! A persistent connection: many requests, one after the other, while the caller lives.
//!
//! Both sides block, so a daemon serves each conversation in its own thread, and a slow or hostile
//! caller blocks no other. The next request is read only after the last one was answered: a flood
//! of requests fills the kernel's buffer and then blocks the sender.

use crate::connection::{Caller, Connection, Progress};
use crate::daemon::Daemon;
use crate::message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::marker::PhantomData;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The server side.
#[derive(Debug)]
pub struct Conversation<D> {
    connection: Connection,
    daemon: PhantomData<D>,
}

impl<D> Drop for Conversation<D> {
    /// Shuts the connection down, even if the daemon still holds another handle of the stream.
    fn drop(&mut self) {
        self.connection.stream.shutdown(Shutdown::Both).ok();
    }
}

/// Result of waiting for a request.
#[derive(Debug)]
pub enum Received<R> {
    Request(R),
    /// Reason to end the conversation.
    Bad(String),
    /// No request within the timeout.
    Nothing,
    /// The caller has closed the connection, or was killed.
    Gone,
}

impl<D: Daemon> Conversation<D> {
    /// Creates a conversation on a non-blocking stream from
    /// [`SocketListener::accept`](crate::SocketListener::accept).
    pub fn new(stream: UnixStream, caller: Caller) -> Conversation<D> {
        Conversation { connection: Connection::new(stream, caller, None), daemon: PhantomData }
    }

    pub fn caller(&self) -> Caller {
        self.connection.caller
    }

    /// Waits for the next request, at most for `timeout`, or without a limit while the caller
    /// lives. An incomplete line is kept for the next call. Requests left by a caller that is gone
    /// are ignored.
    pub fn receive(&mut self, timeout: Option<Duration>) -> Received<D::Request> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let now = Instant::now();
            let progress = if self.wait(Some(Duration::ZERO)) {
                self.connection.read(now)
            } else {
                Progress::Ended
            };
            match progress {
                Progress::Ended => return Received::Gone,
                Progress::Bad(why) => return Received::Bad(why),
                Progress::Whole(line) => {
                    return message::parse_request(&line)
                        .map_or_else(Received::Bad, Received::Request);
                }
                Progress::Pending if until.is_some_and(|until| until <= now) => {
                    return Received::Nothing;
                }
                Progress::Pending => {}
            }
            let next = until.into_iter().chain(self.connection.deadline).min();
            self.wait(next.map(|next| next.saturating_duration_since(now)));
        }
    }

    /// Sends the answer; returns `false` if it does not fit into the socket's buffer, since the
    /// caller does not read.
    pub fn answer(&self, response: &D::Response) -> bool {
        self.connection.reply(response)
    }

    /// Waits for `time` while the caller lives; returns `false` once it is gone.
    pub fn pause(&self, time: Duration) -> bool {
        self.watch(PollFlags::empty(), Some(time))
    }

    fn wait(&self, time: Option<Duration>) -> bool {
        self.watch(PollFlags::IN, time)
    }

    /// Waits for events of the connection; returns `false` if the other end is closed.
    fn watch(&self, flags: PollFlags, time: Option<Duration>) -> bool {
        let timeout = time.and_then(|time| Timespec::try_from(time).ok());
        let mut fds = [PollFd::new(&self.connection.stream, flags)];
        // An interruption or an error counts as a short wait.
        let _ = poll(&mut fds, timeout.as_ref());
        !fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}
