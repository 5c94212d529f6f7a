// SPDX-License-Identifier: MIT OR Apache-2.0
//! One fault at a time on this machine: two would delay each other's terminals.

use crate::interrupt::Interrupt;
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long another one may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// The right to disturb the machine; given back when dropped.
pub struct Alone {
    _lock: File,
}

impl Alone {
    /// Waits until no other process has the right, at most for five minutes.
    ///
    /// `waiting` is called once where there is a wait.
    pub fn wait(interrupt: &Interrupt, waiting: impl FnOnce()) -> Result<Alone> {
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
        Ok(Alone { _lock: lock })
    }
}
