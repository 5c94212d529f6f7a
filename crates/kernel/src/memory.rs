// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the memory is shared out, and the mapped pools.

use anyhow::{Context, Result, ensure};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use tipme_record::{CHUNK_BYTES, ChunkEntry, ChunkHead, Nanos, RingClass, entries};
use zerocopy::FromBytes;

/// Chunks of a class at most; the queue in the kernel has this many places.
pub(crate) const CHUNKS_MAX: usize = 16384;

/// Memory that the stack table, the command lines and the wait table take, in bytes.
const TABLES_BYTES: u64 = 10 << 20;

/// Chunks per class, in the order of [`RingClass::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shares(pub [u32; 3]);

impl Shares {
    /// Shares out `memory` bytes: of what the tables leave a sixteenth goes to the identities of the dead; of the rest three
    /// fifths go to switches and wake-ups, and two to rare records. Needs two chunks per CPU and class.
    pub fn of(memory: u64, cpus: usize) -> Result<Shares> {
        let chunks = memory.saturating_sub(TABLES_BYTES) / CHUNK_BYTES as u64;
        let least = 2 * cpus as u64 + 4;
        let exits = (chunks / 16).max(least);
        let rest = chunks.saturating_sub(exits);
        // The two fifths for rare records are the smaller share.
        let needed = ((least + (least * 5).div_ceil(2)) * CHUNK_BYTES as u64 + TABLES_BYTES).div_ceil(1 << 20);
        ensure!(rest * 2 / 5 >= least, "too little memory for {cpus} CPUs: give --memory {needed}M or more");
        Ok(Shares([rest * 3 / 5, rest * 2 / 5, exits].map(|share| share.min(CHUNKS_MAX as u64) as u32)))
    }

    /// Chunks of one class.
    pub fn chunks(self, class: RingClass) -> u32 {
        self.0[class as usize]
    }
}

/// A pool of chunks, mapped read-only while the kernel writes to it.
pub(crate) struct Pool {
    base: NonNull<u8>,
    chunks: usize,
}

impl Pool {
    /// Maps the pool behind a map's file descriptor.
    pub(crate) fn map(fd: BorrowedFd<'_>, chunks: u32) -> Result<Pool> {
        let chunks = chunks as usize;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of ours.
        let base =
            unsafe { mmap(std::ptr::null_mut(), chunks * CHUNK_BYTES, ProtFlags::READ, MapFlags::SHARED, fd, 0) }
                .context("cannot map a ring")?;
        let base = NonNull::new(base.cast()).context("a ring was mapped at address 0")?;
        Ok(Pool { base, chunks })
    }

    /// Reads a chunk's head as it is now; the kernel may write to it meanwhile.
    fn head(&self, index: usize) -> ChunkHead {
        let mut bytes = [0u8; size_of::<ChunkHead>()];
        self.copy_bytes(index, &mut bytes);
        ChunkHead::read_from_bytes(&bytes).unwrap_or(ChunkHead {
            taken: 0,
            opened: Nanos(0),
            cpu: 0,
            class: 0,
            closed: Nanos(0),
        })
    }

    fn copy_bytes(&self, index: usize, to: &mut [u8]) {
        assert!(index < self.chunks && to.len() <= CHUNK_BYTES, "chunk out of range");
        // SAFETY: the range lies inside the mapping, which lives as long as `self`; the kernel writes to it
        // concurrently, and the generation of every record tells whether it was whole.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr().add(index * CHUNK_BYTES), to.as_mut_ptr(), to.len()) }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Copies a chunk, so that every record that is valid in the copy is whole.
    fn copy_chunk(&self, index: usize, to: &mut [u8], again: &mut [u8]) {
        self.copy_bytes(index, to);
        self.copy_bytes(index, again);
        if to != again {
            complete(to, again);
        }
    }

    /// Copies all chunks that hold records from `from` on. A chunk that is taken again during its copy
    /// held the oldest records of all and is left out.
    pub(crate) fn copy_since(&self, from: Nanos) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.chunks * CHUNK_BYTES);
        let mut again = vec![0; CHUNK_BYTES];
        for index in 0..self.chunks {
            let head = self.head(index);
            let too_old = head.closed != Nanos(0) && head.closed < from;
            if head.taken == 0 || too_old {
                continue;
            }
            let start = out.len();
            out.resize(start + CHUNK_BYTES, 0);
            self.copy_chunk(index, &mut out[start..], &mut again);
            if self.head(index).taken != head.taken {
                out.truncate(start);
            }
        }
        out
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this size and nothing borrows from it.
        if let Err(error) = unsafe { munmap(self.base.as_ptr().cast(), self.chunks * CHUNK_BYTES) } {
            debug_assert!(false, "cannot unmap a ring: {error}");
        }
    }
}

/// Completes the records of a chunk's copy from a later copy, in whatever order the bytes of each were read: what was
/// valid in the first, if perhaps torn, had been written by then, and the later one has all of it.
fn complete(copy: &mut [u8], later: &[u8]) {
    let begin = copy.as_ptr() as usize;
    let range = |entry: ChunkEntry<'_>| {
        let at = entry.bytes.as_ptr() as usize - begin;
        at..at + entry.bytes.len()
    };
    let valid: Vec<Range<usize>> = entries(copy).map(range).collect();
    for range in valid {
        copy[range.clone()].copy_from_slice(&later[range]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tipme_record::packed::WORD_BYTES;
    use tipme_record::records::Rename;

    #[test]
    fn forty_seconds_are_held_of_25000_events_in_32_mib_and_of_200000_in_128() {
        for (mib, rate) in [(32, 25_000), (64, 80_000), (128, 200_000)] {
            let shares = Shares::of(mib << 20, 2).unwrap();
            let room = (CHUNK_BYTES - 512 - size_of::<ChunkHead>()) / WORD_BYTES;
            let records = u64::from(shares.chunks(RingClass::Sched)) * room as u64;
            assert!(records >= 40 * rate, "{records} in {mib} MiB");
            let total: u64 = shares.0.iter().map(|chunks| u64::from(*chunks)).sum();
            assert!(total * CHUNK_BYTES as u64 + TABLES_BYTES <= mib << 20);
        }
    }

    /// Chunks of the pool that is written while it is read, and how often the writer takes one.
    const RACED: u32 = 6;
    const TAKEN: u64 = 30_000;
    /// Words of a record that names a thread: head and name.
    const WORDS: u64 = (Rename::SIZE / 8) as u64;

    /// A pool that can be written through the second value, as the kernel writes it.
    fn raced() -> (Pool, &'static [AtomicU64]) {
        let memory = rustix::fs::memfd_create("pool", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let bytes = RACED as usize * CHUNK_BYTES;
        rustix::fs::ftruncate(&memory, bytes as u64).unwrap();
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of ours.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, both, MapFlags::SHARED, &memory, 0) }.unwrap();
        // SAFETY: the mapping is never taken back, is aligned to pages, and is used through atomics only.
        let words = unsafe { std::slice::from_raw_parts(base.cast::<AtomicU64>(), bytes / 8) };
        (Pool::map(std::os::fd::AsFd::as_fd(&memory), RACED).unwrap(), words)
    }

    /// Takes a chunk, fills it and gives it back, in the order of `ring.h`; the names of records tell their times.
    fn fill(chunk: &[AtomicU64], taken: u64, ts: &mut u64) {
        chunk[0].store(taken, Ordering::Release);
        chunk[1].store(*ts, Ordering::Release);
        chunk[3].store(0, Ordering::Release);
        let head_words = size_of::<ChunkHead>() / 8;
        let last = (CHUNK_BYTES - 512) / 8;
        for at in (head_words..last).step_by(WORDS as usize) {
            *ts += 1;
            chunk[at + 2].store(*ts, Ordering::Release);
            chunk[at + 3].store(!*ts, Ordering::Release);
            chunk[at].store(*ts, Ordering::Release);
            let kind = (Rename::SIZE as u64) << 32 | u64::from(Rename::KIND as u8) << 48;
            chunk[at + 1].store((*ts & 0xffff_ffff) | kind | taken << 56, Ordering::Release);
        }
        chunk[3].store(*ts, Ordering::Release);
    }

    #[test]
    fn a_record_whose_end_was_read_too_early_is_completed_from_a_later_copy() {
        let words: Vec<AtomicU64> = (0..CHUNK_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        fill(&words, 1, &mut 1_000);
        let later: Vec<u8> = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let (first, record) = (size_of::<ChunkHead>(), WORDS as usize * 8);
        let mut copy = later.clone();
        // The name of the first was read before it was written, and the second was not there yet.
        copy[first + 16..first + record].fill(7);
        copy[first + record..].fill(0);
        complete(&mut copy, &later);
        assert_eq!(copy[..first + record], later[..first + record]);
        assert_eq!(tipme_record::entries(&copy).count(), 1);
    }

    #[test]
    fn what_is_copied_while_it_is_written_holds_whole_records_only() {
        let (pool, words) = raced();
        let writer = std::thread::spawn(move || {
            let mut ts = 1 << 30;
            for turn in 0..TAKEN {
                let index = (turn % u64::from(RACED)) as usize;
                let chunk = &words[index * CHUNK_BYTES / 8..][..CHUNK_BYTES / 8];
                fill(chunk, turn / u64::from(RACED) + 1, &mut ts);
            }
        });
        let (mut copies, mut records) = (0, 0u64);
        while !writer.is_finished() || copies < 3 {
            let copied = pool.copy_since(Nanos(0));
            for chunk in copied.chunks(CHUNK_BYTES) {
                let mut last = 0;
                for entry in tipme_record::entries(chunk) {
                    let name = Rename::read_from_bytes(entry.bytes).unwrap().comm;
                    let word = |at: usize| u64::from_le_bytes(name[at..at + 8].try_into().unwrap());
                    let ts = entry.head.ts.0;
                    assert_eq!((word(0), word(8), entry.head.tid.0), (ts, !ts, ts as u32), "a torn record");
                    assert!(ts > last, "records of two lives");
                    (last, records) = (ts, records + 1);
                }
            }
            copies += 1;
        }
        writer.join().unwrap();
        assert!(records > 3 * u64::from(RACED) * 2_000, "{records} records in {copies} copies");
    }

    #[test]
    fn too_little_memory_names_what_is_needed() {
        let error = Shares::of(10 << 20, 64).unwrap_err().to_string();
        assert!(error.contains("--memory 39M"), "{error}");
        assert!(Shares::of(39 << 20, 64).is_ok() && Shares::of(38 << 20, 64).is_err());
    }
}
