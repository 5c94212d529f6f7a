// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory and mapped files, a page at a time.

use anyhow::{Context, Result, ensure};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::ptr::{NonNull, null_mut};

/// Size of a page, or of a part of one if pages are larger.
const PAGE_BYTES: usize = 4096;
/// Maximum size of one mapping.
const MAPPED_MAX: usize = 1 << 30;

/// A memory mapping; unmapped on drop.
pub(crate) struct MappedPages {
    begin: NonNull<c_void>,
    bytes: usize,
}

impl MappedPages {
    /// Maps a file for reading, without read-ahead around the touched page.
    pub(crate) fn of_read_only(file: &File) -> Result<MappedPages> {
        let mapping = MappedPages::of_file(file, ProtFlags::READ)?;
        mapping.advise(Advice::Random).context("cannot switch off read-ahead")?;
        Ok(mapping)
    }

    /// Maps a file for reading and writing like applications do, with the usual read-around.
    pub(crate) fn of_writable(file: &File) -> Result<MappedPages> {
        MappedPages::of_file(file, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn of_file(file: &File, access: ProtFlags) -> Result<MappedPages> {
        let bytes = file.metadata()?.len() as usize;
        ensure!((1..=MAPPED_MAX).contains(&bytes), "a file of {bytes} bytes cannot be mapped");
        // SAFETY: a new mapping at an address that the kernel chooses affects no existing memory.
        let begin = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED, file, 0) };
        Ok(MappedPages {
            begin: NonNull::new(begin.context("cannot map the file")?).context("mapped at zero")?,
            bytes,
        })
    }

    /// Maps memory without huge pages.
    pub(crate) fn of_small_pages(bytes: usize) -> Result<MappedPages> {
        ensure!((1..=MAPPED_MAX).contains(&bytes), "{bytes} bytes cannot be mapped");
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses affects no existing memory.
        let begin = unsafe { mmap_anonymous(null_mut(), bytes, both, MapFlags::PRIVATE) }
            .context("cannot map memory")?;
        let mapping = MappedPages { begin: NonNull::new(begin).context("mapped at zero")?, bytes };
        // A kernel without huge pages has nothing to switch off.
        let _ = mapping.advise(Advice::LinuxNoHugepage);
        Ok(mapping)
    }

    fn advise(&self, advice: Advice) -> rustix::io::Result<()> {
        // SAFETY: the range is that of the mapping; the advice does not change its contents.
        unsafe { madvise(self.begin.as_ptr(), self.bytes, advice) }
    }

    pub(crate) fn pages(&self) -> usize {
        self.bytes.div_ceil(PAGE_BYTES)
    }

    /// Reads a byte of a page.
    pub(crate) fn touch(&self, page: usize) -> u8 {
        // SAFETY: the address is inside the mapping, which lives as long as `self` and is readable.
        unsafe { self.place(page).as_ptr().cast::<u8>().read_volatile() }
    }

    /// Writes a byte of a page of memory, or of a file that is mapped for writing.
    pub(crate) fn fill(&mut self, page: usize) {
        // SAFETY: the address is inside the mapping, which only `self` refers to in this process;
        // callers pass writable mappings only.
        unsafe { self.place(page).as_ptr().cast::<u8>().write_volatile(1) }
    }

    fn place(&self, page: usize) -> NonNull<c_void> {
        let offset = page % self.pages() * PAGE_BYTES;
        // SAFETY: the offset is less than the length of the mapping.
        unsafe { self.begin.byte_add(offset) }
    }
}

impl Drop for MappedPages {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        let _ = unsafe { munmap(self.begin.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn files_and_memory_can_be_touched_everywhere() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[7; 3 * PAGE_BYTES + 1]).expect("room");
        let mapping = MappedPages::of_read_only(file.as_file()).expect("it can be mapped");
        assert_eq!((0..9).map(|page| u32::from(mapping.touch(page))).sum::<u32>(), 63);
        let mut memory = MappedPages::of_small_pages(2 * PAGE_BYTES).expect("memory");
        memory.fill(1);
        assert_eq!((memory.touch(0), memory.touch(1)), (0, 1));
    }
}
