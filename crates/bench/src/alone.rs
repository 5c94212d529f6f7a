// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serializes faults, benchmarks and scripts on this machine: two at a time would delay each other.

use crate::interrupt::InterruptFlag;
use crate::progress::ProgressListener;
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum wait for another measurement.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of consecutive waits of one measurement.
const WAITS_MAX: u32 = 6;

/// Exclusive right to disturb the machine; released on drop.
pub struct MachineLock {
    _lock: File,
}

impl MachineLock {
    /// Waits up to five minutes until no other process holds the lock.
    ///
    /// Calls `waiting` once if it has to wait.
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

    /// Waits like [`MachineLock::wait`], but longer: a measurement may be queued behind many short
    /// tests.
    pub(crate) fn wait_in_turn(
        interrupt: &InterruptFlag,
        progress: &mut dyn ProgressListener,
    ) -> Result<MachineLock> {
        let mut waits = 0;
        loop {
            let lock = MachineLock::wait(interrupt, || {
                progress.line("waiting for another measurement or test to end")
            });
            waits += 1;
            if lock.is_ok() || waits == WAITS_MAX {
                return lock;
            }
            interrupt.check()?;
        }
    }
}
