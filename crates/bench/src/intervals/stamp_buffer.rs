// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time stamps in shared memory: the measuring process writes nothing else, and its parent can read
//! them at any time, also after it was killed.

use anyhow::{Context, Result, ensure};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mlock, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of stamps in a buffer: the papers use 10,000 intervals.
pub(crate) const STAMPS_MAX: usize = 100_001;
const WORD_BYTES: usize = size_of::<u64>();

/// A counter and the stamps. The maker reads them, the process that opens them writes.
pub(crate) struct StampBuffer {
    file: File,
    begin: NonNull<c_void>,
    bytes: usize,
}

impl StampBuffer {
    /// Makes a buffer with all its memory in place, so that writing a stamp never waits for memory.
    pub(crate) fn make(stamps: usize) -> Result<StampBuffer> {
        ensure!(
            (2..=STAMPS_MAX).contains(&stamps),
            "{stamps} time stamps do not fit into a buffer"
        );
        let file = memfd_create("tipme-stamps", MemfdFlags::CLOEXEC)
            .context("cannot make memory to share")?;
        let bytes = (stamps + 1) * WORD_BYTES;
        ftruncate(&file, bytes as u64).context("cannot make room for time stamps")?;
        let stamp_buffer = StampBuffer::map(File::from(file), bytes)?;
        (0..=stamps).for_each(|at| stamp_buffer.word(at).store(0, Ordering::Relaxed));
        Ok(stamp_buffer)
    }

    /// Opens the buffer of another process of the same user, by its path.
    pub(crate) fn open(path: &Path) -> Result<StampBuffer> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let bytes = file.metadata()?.len() as usize;
        let words = bytes / WORD_BYTES;
        ensure!(
            (3..=STAMPS_MAX + 1).contains(&words),
            "{} is not a buffer of time stamps",
            path.display()
        );
        let stamp_buffer = StampBuffer::map(file, bytes)?;
        // SAFETY: the range is that of the mapping. Without the right to lock it, the memory is
        // still likely to stay resident.
        let _ = unsafe { mlock(stamp_buffer.begin.as_ptr(), bytes) };
        Ok(stamp_buffer)
    }

    fn map(file: File, bytes: usize) -> Result<StampBuffer> {
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses affects no existing memory.
        let begin = unsafe {
            mmap(null_mut(), bytes, both, MapFlags::SHARED | MapFlags::POPULATE, &file, 0)
        };
        let begin =
            NonNull::new(begin.context("cannot map memory to share")?).context("mapped at zero")?;
        Ok(StampBuffer { file, begin, bytes })
    }

    /// Path for other processes of the same user while this one lives.
    pub(crate) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// Capacity in stamps.
    pub(crate) fn room(&self) -> usize {
        self.bytes / WORD_BYTES - 1
    }

    /// Adds a stamp; returns `false` if the buffer is full. Only one thread may write.
    pub(crate) fn stamp(&self, at_ns: u64) -> bool {
        let count = self.count();
        if count >= self.room() {
            return false;
        }
        self.word(count + 1).store(at_ns, Ordering::Relaxed);
        self.word(0).store(count as u64 + 1, Ordering::Release);
        true
    }

    /// Number of stamps.
    pub(crate) fn count(&self) -> usize {
        (self.word(0).load(Ordering::Acquire) as usize).min(self.room())
    }

    pub(crate) fn stamps(&self) -> Vec<u64> {
        (1..=self.count()).map(|at| self.word(at).load(Ordering::Relaxed)).collect()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        let offset = at.min(self.room()) * WORD_BYTES;
        // SAFETY: the address is inside the mapping, which lives as long as `self`, is aligned to a
        // page, and is only accessed as atomic words, by this process and by others.
        unsafe { self.begin.byte_add(offset).cast::<AtomicU64>().as_ref() }
    }
}

impl Drop for StampBuffer {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        let _ = unsafe { munmap(self.begin.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_writes_the_other_reads_until_it_is_full() {
        let made = StampBuffer::make(3).expect("memory");
        let opened = StampBuffer::open(&made.path()).expect("the same process may open it");
        assert_eq!((made.room(), opened.room(), made.count()), (3, 3, 0));
        assert!([5, 7, 9].into_iter().all(|at| opened.stamp(at)));
        assert!(!opened.stamp(11));
        assert_eq!(made.stamps(), [5, 7, 9]);
    }

    #[test]
    fn other_files_are_no_stamp_buffers() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(StampBuffer::open(file.path()).is_err());
        assert!(StampBuffer::make(STAMPS_MAX + 1).is_err() && StampBuffer::make(1).is_err());
    }
}
