// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions about users that somebody else answers, who may take a while: a thread asks, and nobody waits for it.

use std::fmt;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Questions that wait for their turn, at most.
const WAITING_MAX: usize = 8;

/// What an authority says of a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    Yes,
    /// No, and why, for people.
    No(String),
    /// There is none, or it does not answer; the reason, for people.
    Nothing(String),
}

/// A thread that asks, one question after the other. It starts with the first one: by then a daemon has given up what
/// it does not need, and so its threads have.
#[derive(Debug)]
pub struct Authority<Q> {
    questions: SyncSender<(u64, Q)>,
    answers: Receiver<(u64, Said)>,
    wake: UnixStream,
    next: u64,
    start: Option<Start>,
}

/// Starts the thread.
struct Start(Box<dyn FnOnce() -> std::io::Result<()> + Send>);

impl fmt::Debug for Start {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Start")
    }
}

impl<Q: Send + 'static> Authority<Q> {
    /// Its thread calls `ask`.
    ///
    /// # Errors
    /// Where the kernel has no descriptors left.
    pub fn new(ask: impl Fn(Q) -> Said + Send + 'static) -> std::io::Result<Authority<Q>> {
        let ((questions, asked), (answer, answers)) = (sync_channel(WAITING_MAX), channel());
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let serve = move || serve(&asked, &answer, &waker, ask);
        let start = move || std::thread::Builder::new().name("authority".into()).spawn(serve).map(drop);
        Ok(Authority { questions, answers, wake, next: 0, start: Some(Start(Box::new(start))) })
    }

    /// Asks; the number comes back with the answer. `None` where too many questions wait already, or no thread starts.
    pub fn ask(&mut self, question: Q) -> Option<u64> {
        if let Some(Start(start)) = self.start.take() {
            start().ok()?;
        }
        self.next += 1;
        self.questions.try_send((self.next, question)).ok().map(|()| self.next)
    }

    /// Readable when there are answers.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The answers that have come since the last call.
    pub fn answers(&self) -> impl Iterator<Item = (u64, Said)> {
        // What is left in there makes it readable once more.
        let _ = (&self.wake).read(&mut [0; 2 * WAITING_MAX]);
        self.answers.try_iter()
    }
}

fn serve<Q>(asked: &Receiver<(u64, Q)>, answer: &Sender<(u64, Said)>, mut waker: &UnixStream, ask: impl Fn(Q) -> Said) {
    for (number, question) in asked.iter() {
        if answer.send((number, ask(question))).is_err() {
            return;
        }
        // A full buffer wakes as well as one more byte.
        let _ = waker.write(&[1]);
    }
}
