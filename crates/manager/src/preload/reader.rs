// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads files ahead with the least possible disturbance of others.
//!
//! The thread requests a piece asynchronously, then polls for its arrival with non-blocking reads
//! and sleeps in between. The thread itself thus never waits for a disk, and the kernel's pressure
//! figures show only the waits of others.

use crate::preload::brake::Brake;
use crate::preload::mapped;
use crate::preload::mounts::MountList;
use crate::preload::others::OthersWatch;
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;
use tipme_control::manager::{PreloadState, PreloadStatus};
use tipme_desktop::clock;
use tipme_policy::preload::RememberedFile;
use tipme_record::Nanos;

/// Bytes in flight, and bytes per request: the kernel may skip part of a longer one.
const PIECE_BYTES: u64 = 4 << 20;
const REQUEST_BYTES: u64 = 128 << 10;
/// First poll interval for a piece; it doubles up to the second value.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(64);
/// Poll interval of the pressure while others wait.
const PAUSE: Duration = Duration::from_millis(250);
/// Time after which reading ahead is useless and ends.
const TIME_MAX: Nanos = Nanos::from_secs(300);

/// Reads ahead and counts.
pub(crate) struct Reader<'a> {
    proc: &'a Path,
    mounts: &'a MountList,
    brake: &'a Brake,
    others: OthersWatch<'a>,
    begun: Nanos,
    status: PreloadStatus,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(proc: &'a Path, mounts: &'a MountList, brake: &'a Brake) -> Reader<'a> {
        let begun = clock::now();
        let others = OthersWatch::begin(proc, begun);
        Reader { proc, mounts, brake, others, begun, status: PreloadStatus::default() }
    }

    /// Reads these files program by program until it is stopped.
    pub(crate) fn read(mut self, programs: &[Vec<RememberedFile>]) -> PreloadStatus {
        let before = fetched(self.proc);
        let ended = programs.iter().try_for_each(|files| self.read_program(files));
        PreloadStatus {
            fetched_bytes: fetched(self.proc).saturating_sub(before),
            seconds: clock::now().since(self.begun).millis() / 1e3,
            state: ended.err().unwrap_or(PreloadState::Done),
            ..self.status
        }
    }

    fn read_program(&mut self, files: &[RememberedFile]) -> Result<(), PreloadState> {
        files.iter().try_for_each(|file| self.read_file(file))?;
        self.status.programs += 1;
        Ok(())
    }

    fn read_file(&mut self, file: &RememberedFile) -> Result<(), PreloadState> {
        self.wait_for_quiet()?;
        let Some(open) = mapped::open(self.mounts, file) else {
            self.status.skipped += 1;
            return Ok(());
        };
        let mut from = 0;
        while from < file.bytes {
            let end = file.bytes.min(from + PIECE_BYTES);
            self.wait_for_quiet()?;
            request(&open, from, end);
            self.wait_for(&open, end - 1)?;
            from = end;
        }
        self.status.files += 1;
        self.status.bytes += file.bytes;
        Ok(())
    }

    /// Waits while others wait for disk or memory, or a program has just been started.
    fn wait_for_quiet(&mut self) -> Result<(), PreloadState> {
        while self.check()? {
            std::thread::sleep(PAUSE);
            self.status.paused_seconds += PAUSE.as_secs_f64();
        }
        Ok(())
    }

    /// Waits until the byte at this offset is in memory.
    fn wait_for(&mut self, file: &File, at: u64) -> Result<(), PreloadState> {
        let mut look = FIRST_LOOK;
        while !is_cached(file, at) {
            self.check()?;
            std::thread::sleep(look);
            look = LOOK_MAX.min(2 * look);
        }
        Ok(())
    }

    /// Returns `true` if reading has to pause; an error is the reason to end.
    fn check(&mut self) -> Result<bool, PreloadState> {
        let now = clock::now();
        if self.brake.is_stopped() {
            return Err(PreloadState::Off);
        }
        if now.since(self.begun) >= TIME_MAX {
            return Err(PreloadState::OutOfTime);
        }
        Ok(self.others.wait(now) || self.brake.holds(now))
    }
}

/// Requests readahead of these bytes; failures show up as pages that never arrive.
fn request(file: &File, mut from: u64, end: u64) {
    while let Some(bytes) = NonZeroU64::new(REQUEST_BYTES.min(end - from)) {
        rustix::fs::fadvise(file, from, Some(bytes), Advice::WillNeed).ok();
        from += bytes.get();
    }
}

/// Returns `true` if the byte at this offset can be read without blocking, or if that is unknown.
fn is_cached(file: &File, at: u64) -> bool {
    let mut byte = [0];
    preadv2(file, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT)
        != Err(Errno::AGAIN)
}

/// Bytes that this thread fetched from disks; 0 if the kernel does not count them.
fn fetched(proc: &Path) -> u64 {
    let text = std::fs::read_to_string(proc.join("thread-self/io")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
