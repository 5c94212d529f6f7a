// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and SIGTERM as a flag that workers check, so that they end and clean up.
//!
//! SIGTERM never ends the process at once: no sender wants leftovers, and some send it twice
//! (`timeout` signals the process and its group). A second Ctrl-C may come from a user in a hurry,
//! or before the cleanup is visible: it prints a message, and only the third ends the process at
//! once.

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Maximum time between two checks of the flag in a sleep.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Number of Ctrl-C presses that end the process at once, without cleanup.
pub const PRESSES: u32 = 3;

/// Message on the press before that.
const LAST_WARNING: &[u8] = b"\ncleaning up; press once more to end at once without that\n";

/// A flag set by signals.
#[derive(Clone, Default)]
pub struct InterruptFlag(Arc<AtomicBool>);

impl InterruptFlag {
    /// Makes SIGINT and SIGTERM set the flag. The third SIGINT ends the process at once; SIGTERM
    /// never does.
    pub fn install() -> Result<InterruptFlag> {
        let interrupt = InterruptFlag::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&interrupt.0)).context("cannot handle signals")?;
        }
        let presses = AtomicU32::new(0);
        // SAFETY: the action calls nothing but an atomic, write(2), and functions that signal-hook
        // offers to signal handlers; it neither allocates nor locks nor panics.
        unsafe {
            low_level::register(SIGINT, move || {
                pressed(presses.fetch_add(1, Ordering::Relaxed).saturating_add(1));
            })
        }
        .context("cannot handle signals")?;
        Ok(interrupt)
    }

    /// Returns a socket that becomes readable on the first SIGINT or SIGTERM, for use in `poll`,
    /// and its other end, which allows other wakeups.
    pub fn wakeup(&self) -> Result<(UnixStream, UnixStream)> {
        let (wakeup, waker) = UnixStream::pair().context("cannot make a socket")?;
        for signal in [SIGINT, SIGTERM] {
            let waker = waker.try_clone().context("cannot make a socket")?;
            low_level::pipe::register(signal, waker).context("cannot handle signals")?;
        }
        Ok((wakeup, waker))
    }

    /// Fails once the flag is set.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            bail!("interrupted; everything that was started has been ended");
        }
        Ok(())
    }

    /// Sets the flag like a signal.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Waits for `time`, and fails early when the flag is set.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }
}

/// Handles a press of Ctrl-C beyond setting the flag. Runs in the signal handler.
fn pressed(presses: u32) {
    if presses == PRESSES - 1 {
        // A failed write cannot be reported.
        let _ = rustix::io::write(std::io::stderr(), LAST_WARNING);
    }
    if presses >= PRESSES {
        // Returns only for an unknown signal.
        let _ = low_level::emulate_default_handler(SIGINT);
    }
}
