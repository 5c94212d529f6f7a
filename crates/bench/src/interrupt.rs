// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and SIGTERM: seen by those who work, so that they end and clean up.

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest that a sleeper does not look at the flag.
const GLANCE: Duration = Duration::from_millis(50);

/// A flag that a signal sets.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM set the flag; a second one ends the process at once.
    pub fn install() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&interrupt.0)).context("cannot handle signals")?;
            flag::register(signal, Arc::clone(&interrupt.0)).context("cannot handle signals")?;
        }
        Ok(interrupt)
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
            std::thread::sleep(left.min(GLANCE));
        }
    }
}
