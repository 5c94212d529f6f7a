// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and SIGTERM: seen by those who work, so that they end and clean up.
//!
//! Nobody sends SIGTERM to have things left behind, and some send it twice (`timeout` does, to the process and to
//! its group): it never ends the process at once. A person who presses Ctrl-C again may be short, or may not see
//! that the end has begun: the second press says so, and only the third ends the process as it stands.

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The longest that a sleeper does not look at the flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// So many presses of Ctrl-C end the process at once, and nothing is cleaned up.
pub const PRESSES: u32 = 3;

/// What the press before that says.
const LAST_WARNING: &[u8] = b"\nending what was started; once more ends at once and leaves it behind\n";

/// A flag that a signal sets.
#[derive(Clone, Default)]
pub struct InterruptFlag(Arc<AtomicBool>);

impl InterruptFlag {
    /// From now on SIGINT and SIGTERM set the flag. The third SIGINT ends the process at once, a SIGTERM never does.
    pub fn install() -> Result<InterruptFlag> {
        let interrupt = InterruptFlag::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&interrupt.0)).context("cannot handle signals")?;
        }
        let presses = AtomicU32::new(0);
        let press = move || pressed(presses.fetch_add(1, Ordering::Relaxed).saturating_add(1));
        // SAFETY: the action calls nothing but an atomic, write(2), and what signal-hook offers to signal handlers;
        // it neither allocates nor locks nor panics.
        unsafe { low_level::register(SIGINT, press) }.context("cannot handle signals")?;
        Ok(interrupt)
    }

    /// A socket that can be read from the first SIGINT or SIGTERM on, for whoever waits for several
    /// things at once, and its other end, by which others wake them.
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

    /// Sets the flag as a signal would.
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

/// What a press of Ctrl-C does beyond setting the flag; runs in the signal's handler.
fn pressed(presses: u32) {
    if presses == PRESSES - 1 {
        // Nothing can be done where nobody reads it.
        let _ = rustix::io::write(std::io::stderr(), LAST_WARNING);
    }
    if presses >= PRESSES {
        // It returns only where the signal is unknown.
        let _ = low_level::emulate_default_handler(SIGINT);
    }
}
