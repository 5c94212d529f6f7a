// SPDX-License-Identifier: MIT OR Apache-2.0
//! End of the agent: a signal, or the end of its session. Sleeping threads watch the session's bus
//! and compositor; a socket wakes the other threads.

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;
use tipme_control::interrupt::InterruptFlag;
use tipme_control::journal;
use tipme_desktop::session_end;

pub struct AgentEnd {
    interrupt: InterruptFlag,
    /// Becomes readable on a signal or at the end of the session.
    wakeup: UnixStream,
    session: Arc<OnceLock<&'static str>>,
}

impl AgentEnd {
    /// Starts to watch for signals and for the end of the session.
    pub fn watch() -> Result<AgentEnd> {
        let interrupt = InterruptFlag::install()?;
        let (wakeup, waker) = interrupt.wakeup()?;
        let session = Arc::<OnceLock<&'static str>>::default();
        let end = AgentEnd { interrupt, wakeup, session };
        end.watch_for("message bus", session_end::wait_for_bus, &waker)?;
        end.watch_for("compositor", session_end::wait_for_compositor, &waker)?;
        Ok(end)
    }

    /// Watches a part of the session on a thread, which wakes all waiting threads at its end.
    fn watch_for(&self, part: &'static str, wait: fn() -> bool, waker: &UnixStream) -> Result<()> {
        let (session, mut waker) =
            (Arc::clone(&self.session), waker.try_clone().context("cannot watch the session")?);
        std::thread::spawn(move || {
            if wait() {
                session.get_or_init(|| part);
                // A full socket wakes as well.
                let _ = waker.write(&[0]);
            }
        });
        Ok(())
    }

    /// Returns `true` if the agent must end now.
    pub fn is_due(&self) -> bool {
        self.session.get().is_some() || self.interrupt.check().is_err()
    }

    /// Returns a socket that becomes readable when the agent must end.
    pub fn wakeup(&self) -> Result<OwnedFd> {
        Ok(self.wakeup.try_clone().context("cannot watch the session")?.into())
    }

    /// Waits until the agent must end, or for `timeout` if it is set. Returns `true` if it must
    /// end.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = [PollFd::from_borrowed_fd(self.wakeup.as_fd(), PollFlags::IN)];
        // A signal interrupts the wait and is seen below.
        let _ = poll(&mut fds, timeout.as_ref());
        self.is_due()
    }

    /// Reports the reason of the end, unless it was a signal.
    pub fn log_reason(&self) {
        if let Some(part) = self.session.get() {
            journal::info(format!("the session's {part} is gone; the agent ends with it")).tell();
        }
    }
}
