// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asynchronous queries about users to an authority that may be slow: a thread asks, and no caller
//! blocks.

use std::fmt;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Maximum number of queued questions.
const WAITING_MAX: usize = 8;

/// Answer of an authority about a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    Yes,
    /// Denied, with a reason for the user; it may be empty.
    No(String),
    /// No authority, or no answer from it, with a reason for the user.
    Nothing(String),
}

/// A thread that asks one question after the other. It starts with the first one, when a daemon has
/// dropped its unneeded privileges, so the thread lacks them too.
#[derive(Debug)]
pub struct Authority<Q> {
    questions: SyncSender<(u64, Q)>,
    answers: Receiver<(u64, Said)>,
    wake: UnixStream,
    next: u64,
    start: Option<Start>,
}

/// Function that starts the thread.
struct Start(Box<dyn FnOnce() -> std::io::Result<()> + Send>);

impl fmt::Debug for Start {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Start")
    }
}

impl<Q: Send + 'static> Authority<Q> {
    /// Creates an authority with a thread that calls `ask`.
    ///
    /// # Errors
    /// If there are no file descriptors left.
    pub fn new(ask: impl Fn(Q) -> Said + Send + 'static) -> std::io::Result<Authority<Q>> {
        let ((questions, asked), (answer, answers)) = (sync_channel(WAITING_MAX), channel());
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let start = Box::new(move || {
            let thread = std::thread::Builder::new().name("authority".into());
            thread.spawn(move || serve(&asked, &answer, &waker, ask)).map(drop)
        });
        Ok(Authority { questions, answers, wake, next: 0, start: Some(Start(start)) })
    }

    /// Queues a question, and returns the number that its answer will have. Returns `None` if the
    /// queue is full or the thread cannot start.
    pub fn ask(&mut self, question: Q) -> Option<u64> {
        if let Some(Start(start)) = self.start.take() {
            start().ok()?;
        }
        self.next += 1;
        self.questions.try_send((self.next, question)).ok().map(|()| self.next)
    }

    /// Returns a descriptor that becomes readable when there are answers.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Returns the answers since the last call.
    pub fn answers(&self) -> impl Iterator<Item = (u64, Said)> {
        // Bytes left in there make it readable again.
        let _ = (&self.wake).read(&mut [0; 2 * WAITING_MAX]);
        self.answers.try_iter()
    }
}

fn serve<Q>(
    asked: &Receiver<(u64, Q)>,
    answer: &Sender<(u64, Said)>,
    mut waker: &UnixStream,
    ask: impl Fn(Q) -> Said,
) {
    for (number, question) in asked.iter() {
        if answer.send((number, ask(question))).is_err() {
            return;
        }
        // A full buffer wakes the reader as well as one more byte.
        let _ = waker.write(&[1]);
    }
}
