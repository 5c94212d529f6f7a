// SPDX-License-Identifier: MIT OR Apache-2.0
//! One measurement at a time on this machine, be it a fault, a benchmark or a script: two would delay each other.

use crate::interrupt::InterruptFlag;
use crate::progress::ProgressListener;
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long another one may take.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Waits of a measurement, one after the other, at most.
const WAITS_MAX: u32 = 6;
/// How long all of them take.
pub(crate) const OTHERS_MAX: Duration = TIMEOUT.saturating_mul(WAITS_MAX);

/// The right to disturb the machine; given back when dropped.
pub struct MachineLock {
    _lock: File,
}

impl MachineLock {
    /// Waits until no other process has the right, at most for five minutes.
    ///
    /// `waiting` is called once where there is a wait.
    pub fn wait(interrupt: &InterruptFlag, waiting: impl FnOnce()) -> Result<MachineLock> {
        let path = Path::new("/tmp/tipme-fault.lock");
        let open = File::options().create(true).append(true).open(path);
        let lock = open.with_context(|| {
            format!("cannot open {}; where another user left it, remove it as root", path.display())
        })?;
        let deadline = Instant::now() + TIMEOUT;
        let mut waiting = Some(waiting);
        while let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            if error != Errno::WOULDBLOCK || Instant::now() >= deadline {
                bail!("cannot lock {}: another demonstration or test holds it", path.display());
            }
            if let Some(waiting) = waiting.take() {
                waiting();
            }
            interrupt.sleep(Duration::from_millis(100))?;
        }
        Ok(MachineLock { _lock: lock })
    }

    /// The same for a measurement, which waits somewhat longer than tests do: many short ones may come before.
    pub(crate) fn wait_in_turn(interrupt: &InterruptFlag, progress: &mut dyn ProgressListener) -> Result<MachineLock> {
        let mut wait =
            || MachineLock::wait(interrupt, || progress.line("waiting for another measurement or test to end"));
        for _ in 1..WAITS_MAX {
            match wait() {
                Ok(alone) => return Ok(alone),
                Err(_) => interrupt.check()?,
            }
        }
        wait()
    }
}
