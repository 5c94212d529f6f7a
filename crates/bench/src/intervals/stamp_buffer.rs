// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time stamps in shared memory: the measuring process writes nothing else.

use crate::shared_words::SharedWords;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Maximum number of stamps in a buffer: the papers use 10,000 intervals.
pub(crate) const STAMPS_MAX: usize = 100_001;

/// A counter and the stamps. The maker reads them, the process that opens them writes.
pub(crate) struct StampBuffer(SharedWords);

impl StampBuffer {
    /// Makes a buffer with all its memory in place, so that writing a stamp never waits for memory.
    pub(crate) fn make(stamps: usize) -> Result<StampBuffer> {
        ensure!(
            (2..=STAMPS_MAX).contains(&stamps),
            "{stamps} time stamps do not fit into a buffer"
        );
        let words = SharedWords::make("tipme-stamps", stamps + 1)?;
        (0..=stamps).for_each(|at| words.word(at).store(0, Ordering::Relaxed));
        Ok(StampBuffer(words))
    }

    /// Opens the buffer of another process of the same user, by its path.
    pub(crate) fn open(path: &Path) -> Result<StampBuffer> {
        let words = SharedWords::open(path, 3..=STAMPS_MAX + 1, "a buffer of time stamps")?;
        words.lock();
        Ok(StampBuffer(words))
    }

    /// Path for other processes of the same user while this one lives.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// Capacity in stamps.
    pub(crate) fn room(&self) -> usize {
        self.0.count() - 1
    }

    /// Adds a stamp; returns `false` if the buffer is full. Only one thread may write.
    pub(crate) fn stamp(&self, at_ns: u64) -> bool {
        let count = self.count();
        if count >= self.room() {
            return false;
        }
        self.0.word(count + 1).store(at_ns, Ordering::Relaxed);
        self.0.word(0).store(count as u64 + 1, Ordering::Release);
        true
    }

    /// Number of stamps.
    pub(crate) fn count(&self) -> usize {
        (self.0.word(0).load(Ordering::Acquire) as usize).min(self.room())
    }

    pub(crate) fn stamps(&self) -> Vec<u64> {
        (1..=self.count()).map(|at| self.0.word(at).load(Ordering::Relaxed)).collect()
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
