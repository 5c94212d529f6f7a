// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words in memory that several processes of a user share. Any of them can read the words at any
//! time without asking the writers, also after these were killed.

use anyhow::{Context, Result, ensure};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mlock, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU64;

const WORD_BYTES: usize = size_of::<u64>();

/// A mapping of atomic words.
pub(crate) struct SharedWords {
    file: File,
    begin: NonNull<c_void>,
    count: usize,
}

// SAFETY: the memory is only accessed as atomic words, and stays mapped for any thread that owns
// the value.
unsafe impl Send for SharedWords {}

impl SharedWords {
    /// Makes words that are 0, with all their memory in place.
    pub(crate) fn make(name: &str, count: usize) -> Result<SharedWords> {
        let file =
            memfd_create(name, MemfdFlags::CLOEXEC).context("cannot make memory to share")?;
        ftruncate(&file, (count * WORD_BYTES) as u64).context("cannot make memory to share")?;
        SharedWords::map(File::from(file), count)
    }

    /// Opens the shared words of another process of the same user, by path.
    pub(crate) fn open(
        path: &Path,
        counts: RangeInclusive<usize>,
        what: &str,
    ) -> Result<SharedWords> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let count = file.metadata()?.len() as usize / WORD_BYTES;
        ensure!(counts.contains(&count), "{} is not {what}", path.display());
        SharedWords::map(file, count)
    }

    fn map(file: File, count: usize) -> Result<SharedWords> {
        let (both, bytes) = (ProtFlags::READ | ProtFlags::WRITE, count * WORD_BYTES);
        // SAFETY: a new mapping at an address that the kernel chooses affects no existing memory.
        let begin = unsafe {
            mmap(null_mut(), bytes, both, MapFlags::SHARED | MapFlags::POPULATE, &file, 0)
        };
        let begin =
            NonNull::new(begin.context("cannot map memory to share")?).context("mapped at zero")?;
        Ok(SharedWords { file, begin, count })
    }

    /// Keeps the words resident if allowed; without that they are still likely to stay so.
    pub(crate) fn lock(&self) {
        // SAFETY: the range is that of the mapping; locking changes none of its bytes.
        let _ = unsafe { mlock(self.begin.as_ptr(), self.count * WORD_BYTES) };
    }

    /// Path for other processes of the same user while this one lives.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns a word; the last one for an index beyond it.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        let offset = at.min(self.count - 1) * WORD_BYTES;
        // SAFETY: the address is inside the mapping, which lives as long as `self`, is aligned to a
        // page, and is only accessed as atomic words, by this process and by others.
        unsafe { self.begin.byte_add(offset).cast::<AtomicU64>().as_ref() }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        let _ = unsafe { munmap(self.begin.as_ptr(), self.count * WORD_BYTES) };
    }
}
