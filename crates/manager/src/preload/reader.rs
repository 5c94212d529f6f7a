// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading files ahead, out of everybody's way.
//!
//! The kernel is asked for a piece, and then asked without waiting whether it is there, with sleep in between. So this
//! thread is never among those that wait for a disk, and the pressure that the kernel tells of is that of others.

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

/// Bytes that are on their way at a time, and bytes of a request: of a longer one the kernel may leave the rest unread.
const PIECE_BYTES: u64 = 4 << 20;
const REQUEST_BYTES: u64 = 128 << 10;
/// From one look whether a piece is there to the next: it doubles up to the second.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(64);
/// From one look whether others wait to the next, while they do.
const PAUSE: Duration = Duration::from_millis(250);
/// After so long it is no longer ahead of anything, and ends.
const TIME_MAX: Nanos = Nanos::from_secs(300);

/// Reads ahead, and counts what it has read.
pub(crate) struct Reader<'a> {
    proc: &'a Path,
    mounts: &'a MountList,
    brake: &'a Brake,
    others: OthersWatch<'a>,
    begun: Nanos,
    told: PreloadStatus,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(proc: &'a Path, mounts: &'a MountList, brake: &'a Brake) -> Reader<'a> {
        let begun = clock::now();
        let others = OthersWatch::begin(proc, begun);
        Reader { proc, mounts, brake, others, begun, told: PreloadStatus::default() }
    }

    /// Reads these files, program by program, until it is stopped.
    pub(crate) fn read(mut self, programs: &[Vec<RememberedFile>]) -> PreloadStatus {
        let before = fetched(self.proc);
        let ended = programs.iter().try_for_each(|files| self.read_program(files));
        PreloadStatus {
            fetched_bytes: fetched(self.proc).saturating_sub(before),
            seconds: clock::now().since(self.begun).millis() / 1e3,
            state: ended.err().unwrap_or(PreloadState::Done),
            ..self.told
        }
    }

    fn read_program(&mut self, files: &[RememberedFile]) -> Result<(), PreloadState> {
        files.iter().try_for_each(|file| self.read_file(file))?;
        self.told.programs += 1;
        Ok(())
    }

    fn read_file(&mut self, file: &RememberedFile) -> Result<(), PreloadState> {
        self.wait_for_quiet()?;
        let Some(open) = mapped::open(self.mounts, file) else {
            self.told.skipped += 1;
            return Ok(());
        };
        let mut from = 0;
        while from < file.bytes {
            let end = file.bytes.min(from + PIECE_BYTES);
            self.wait_for_quiet()?;
            ask_for(&open, from, end);
            self.wait_for(&open, end - 1)?;
            from = end;
        }
        self.told.files += 1;
        self.told.bytes += file.bytes;
        Ok(())
    }

    /// Waits while others wait for disk or memory, or somebody has just started a program.
    fn wait_for_quiet(&mut self) -> Result<(), PreloadState> {
        while self.check()? {
            std::thread::sleep(PAUSE);
            self.told.paused_seconds += PAUSE.as_secs_f64();
        }
        Ok(())
    }

    /// Waits until the byte at this place is in memory.
    fn wait_for(&mut self, file: &File, at: u64) -> Result<(), PreloadState> {
        let mut look = FIRST_LOOK;
        while !is_there(file, at) {
            self.check()?;
            std::thread::sleep(look);
            look = LOOK_MAX.min(2 * look);
        }
        Ok(())
    }

    /// Whether it has to stand still; why it ends, if it does.
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

/// Has the kernel read these bytes; what it cannot, is not there later.
fn ask_for(file: &File, mut from: u64, end: u64) {
    while let Some(bytes) = NonZeroU64::new(REQUEST_BYTES.min(end - from)) {
        rustix::fs::fadvise(file, from, Some(bytes), Advice::WillNeed).ok();
        from += bytes.get();
    }
}

/// Whether the byte at this place can be read without waiting; also where that cannot be told.
fn is_there(file: &File, at: u64) -> bool {
    let mut byte = [0];
    preadv2(file, &mut [IoSliceMut::new(&mut byte)], at, ReadWriteFlags::NOWAIT) != Err(Errno::AGAIN)
}

/// Bytes that this thread has had read from disks; 0 where the kernel does not count.
fn fetched(proc: &Path) -> u64 {
    let text = std::fs::read_to_string(proc.join("thread-self/io")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
