// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that hold something up: a file's lock, or another process as a whole.

use super::work::{limit_life, millis, number, word};
use crate::worker::say_ready;
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::thread::sleep;

/// `lock-holder FILE flock|record MS`: sleeps with the file locked.
pub(super) fn lock_holder(words: &[&str]) -> Result<()> {
    limit_life();
    let path = word(words, 0)?;
    let file = File::options().read(true).write(true).open(path).with_context(|| format!("cannot open {path}"))?;
    match word(words, 1)? {
        "flock" => flock(&file, FlockOperation::LockExclusive)?,
        "record" => fcntl_lock(&file, FlockOperation::LockExclusive)?,
        other => bail!("no lock \"{other}\" is known"),
    }
    say_ready("")?;
    sleep(millis(words, 2)?);
    Ok(())
}

/// A process that is stopped until this is dropped.
pub(in crate::selftest) struct Stopped(OwnedFd);

impl Stopped {
    /// Stops a process by a signal.
    fn stop(pid: u32) -> Result<Stopped> {
        let stopped = Stopped(open(pid)?);
        pidfd_send_signal(&stopped.0, Signal::STOP).with_context(|| format!("cannot stop process {pid}"))?;
        Ok(stopped)
    }

    /// Stands for a process that another one is going to stop.
    pub(in crate::selftest) fn by_another(pid: u32) -> Result<Stopped> {
        open(pid).map(Stopped)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // One that has ended needs no signal.
        let _ = pidfd_send_signal(&self.0, Signal::CONT);
    }
}

fn open(pid: u32) -> Result<OwnedFd> {
    let raw = Pid::from_raw(pid as i32).with_context(|| format!("{pid} is not a process"))?;
    pidfd_open(raw, PidfdFlags::empty()).with_context(|| format!("cannot find process {pid}"))
}

/// `stopper PID MS`: stops a process for a time.
pub(super) fn stopper(words: &[&str]) -> Result<()> {
    limit_life();
    let pid = number(words, 0)? as u32;
    let stopped = Stopped::stop(pid)?;
    say_ready("")?;
    sleep(millis(words, 1)?);
    drop(stopped);
    Ok(())
}
