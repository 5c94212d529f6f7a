// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory and files, a page at a time and in no order, so that nothing is read ahead.

use super::delay::Delay;
use anyhow::{Context, Result, ensure};
use rustix::fs::{Advice as FileAdvice, fadvise};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::{NonNull, null_mut};

/// Bytes of a page, or a part of one where pages are larger.
pub(in crate::selftest) const PAGE_BYTES: usize = 4096;
/// Memory that one mapping may have, at most.
const MAPPED_MAX: usize = 1 << 30;

/// Some mapped memory; unmapped when dropped.
pub(crate) struct MappedPages {
    begin: NonNull<c_void>,
    bytes: usize,
}

impl MappedPages {
    /// Maps a file for reading; what is touched is read alone.
    pub(crate) fn of(file: &File) -> Result<MappedPages> {
        let mapping = MappedPages::of_file(file, ProtFlags::READ)?;
        mapping.advise(Advice::Random).context("cannot switch off read-ahead")?;
        Ok(mapping)
    }

    /// Maps a file for reading and writing, as applications do: what lies around is read along.
    pub(crate) fn of_writable(file: &File) -> Result<MappedPages> {
        MappedPages::of_file(file, ProtFlags::READ | ProtFlags::WRITE)
    }

    fn of_file(file: &File, access: ProtFlags) -> Result<MappedPages> {
        let bytes = file.metadata()?.len() as usize;
        ensure!((1..=MAPPED_MAX).contains(&bytes), "a file of {bytes} bytes cannot be mapped");
        // SAFETY: a new mapping at a place that the kernel chooses touches nothing that exists.
        let begin = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED, file, 0) };
        Ok(MappedPages { begin: NonNull::new(begin.context("cannot map the file")?).context("mapped at zero")?, bytes })
    }

    /// Memory of which each page is alone, however large the machine likes them.
    pub(crate) fn of_small_pages(bytes: usize) -> Result<MappedPages> {
        let mapping = MappedPages::of_memory(bytes, false)?;
        // Where the kernel has no large pages, there is nothing to switch off.
        let _ = mapping.advise(Advice::LinuxNoHugepage);
        Ok(mapping)
    }

    fn advise(&self, advice: Advice) -> rustix::io::Result<()> {
        // SAFETY: the range is that of the mapping; advice changes how it is kept, not what is in it.
        unsafe { madvise(self.begin.as_ptr(), self.bytes, advice) }
    }

    /// Memory that is empty, and in place at once where it is `filled`.
    pub(in crate::selftest) fn of_memory(bytes: usize, filled: bool) -> Result<MappedPages> {
        ensure!((1..=MAPPED_MAX).contains(&bytes), "{bytes} bytes cannot be mapped");
        let flags = if filled { MapFlags::PRIVATE | MapFlags::POPULATE } else { MapFlags::PRIVATE };
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses touches nothing that exists.
        let begin = unsafe { mmap_anonymous(null_mut(), bytes, both, flags) }.context("cannot map memory")?;
        Ok(MappedPages { begin: NonNull::new(begin).context("mapped at zero")?, bytes })
    }

    pub(crate) fn pages(&self) -> usize {
        self.bytes.div_ceil(PAGE_BYTES)
    }

    /// Reads a byte of a page.
    pub(crate) fn touch(&self, page: usize) -> u8 {
        // SAFETY: the place is inside the mapping, which lives as long as `self` and can be read.
        unsafe { self.place(page).as_ptr().cast::<u8>().read_volatile() }
    }

    /// Writes a byte of a page of memory, or of a file that is mapped for writing.
    pub(crate) fn fill(&mut self, page: usize) {
        // SAFETY: the place is inside the mapping, which `self` alone refers to in this process; only what can be
        // written gets here by its callers.
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

/// Numbers in no order: each of the first ones up to a length, all of them before one comes again
/// where the length is a power of two.
pub(in crate::selftest) struct Shuffle {
    state: usize,
    mask: usize,
}

impl Shuffle {
    pub(in crate::selftest) fn below(length: usize) -> Shuffle {
        Shuffle { state: 1, mask: length.next_power_of_two() - 1 }
    }

    pub(in crate::selftest) fn next(&mut self) -> usize {
        self.state = self.state.wrapping_mul(0x5851_f42d).wrapping_add(0x1405_7b7f) & self.mask;
        self.state ^ self.state >> (self.mask.count_ones() / 2).max(1)
    }
}

/// Touches pages of a mapped file until that has delayed this thread long enough.
pub(in crate::selftest) fn touch_file(path: &str, delay: &Delay) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
    let mapping = MappedPages::of(&file).with_context(|| format!("cannot map {path}"))?;
    let mut pages = Shuffle::below(mapping.pages());
    while delay.goes_on() {
        mapping.touch(pages.next());
    }
    Ok(())
}

/// Reads pages of a file until that has delayed this thread long enough.
pub(in crate::selftest) fn read_file(path: &str, delay: &Delay) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot open {path}"))?;
    fadvise(&file, 0, None, FileAdvice::Random).with_context(|| format!("cannot switch off read-ahead of {path}"))?;
    let count = (file.metadata()?.len() as usize / PAGE_BYTES).max(1);
    let mut pages = Shuffle::below(count);
    let mut page = [0; PAGE_BYTES];
    while delay.goes_on() {
        let offset = pages.next() % count * PAGE_BYTES;
        file.read_at(&mut page, offset as u64).with_context(|| format!("cannot read {path}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::time::Duration;

    #[test]
    fn all_pages_come_before_one_comes_again() {
        for length in [1, 2, 64, 4096, 65_536] {
            let mut shuffle = Shuffle::below(length);
            let seen: BTreeSet<usize> = (0..length).map(|_| shuffle.next()).collect();
            assert_eq!(seen.len(), length);
            assert!(seen.last() < Some(&length));
        }
    }

    #[test]
    fn files_and_memory_can_be_touched_everywhere() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&[7; 3 * PAGE_BYTES + 1]).expect("room");
        let mapping = MappedPages::of(file.as_file()).expect("it can be mapped");
        assert_eq!((0..9).map(|page| u32::from(mapping.touch(page))).sum::<u32>(), 63);
        let mut memory = MappedPages::of_memory(2 * PAGE_BYTES, false).expect("memory");
        memory.fill(1);
        assert_eq!((memory.touch(0), memory.touch(1)), (0, 1));
        let path = file.path().to_str().expect("plain letters");
        read_file(path, &Delay::until(Duration::ZERO)).expect("it can be read");
        touch_file(path, &Delay::until(Duration::from_micros(1))).expect("it can be mapped");
    }
}
