// SPDX-License-Identifier: MIT OR Apache-2.0
//! Division of the memory, and the mapped pool.

use anyhow::{Context, Result, ensure};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism};
use tipme_record::{CHUNK_BYTES, ChunkHead, Nanos, RingClass, entries};
use zerocopy::FromBytes;

/// Maximum number of chunks, the size of the queues in the kernel.
const CHUNKS_MAX: u64 = 16384;

/// Maximum number of CPUs, the size of the table of places in the kernel programs.
pub const CPUS_MAX: usize = 1024;

/// Memory of the stack table, the command lines and the wait table, in bytes.
const TABLES_BYTES: u64 = 10 << 20;

/// Initial number of chunks per class, in the order of [`RingClass::ALL`]: the kernel programs lend
/// unneeded ones to another class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shares(pub(crate) [u32; 3]);

impl Shares {
    /// Divides `memory` bytes. Of the memory left by the tables, 1/16 is for ended processes; of
    /// the rest, 3/5 is for scheduler records and 2/5 for rare records. Each class has at least
    /// [`least_chunks`].
    pub(crate) fn of(memory: u64, cpus: usize) -> Result<Shares> {
        let chunks = (memory.saturating_sub(TABLES_BYTES) / CHUNK_BYTES as u64).min(CHUNKS_MAX);
        let least = least_chunks(cpus);
        ensure!(
            cpus <= CPUS_MAX,
            "this machine can have up to {cpus} CPUs, and no more than {CPUS_MAX} can be recorded"
        );
        let needed = least_memory(cpus);
        ensure!(
            memory >= needed,
            "too little memory for {cpus} CPUs: give --memory {}M or more",
            needed >> 20
        );
        let exits = (chunks / 16).max(least);
        let rare = ((chunks - exits) * 2 / 5).max(least);
        Ok(Shares([chunks - exits - rare, rare, exits].map(|share| share as u32)))
    }

    /// Number of chunks of all classes.
    pub(crate) fn total(self) -> u32 {
        self.0.iter().sum()
    }
}

/// Returns the minimum memory for the rings of `cpus` CPUs: whole MiB, in bytes.
pub(crate) fn least_memory(cpus: usize) -> u64 {
    (3 * least_chunks(cpus) * CHUNK_BYTES as u64 + TABLES_BYTES).next_multiple_of(1 << 20)
}

/// Returns the minimum number of chunks per class: one per possible CPU, and those being exchanged.
pub(crate) fn least_chunks(cpus: usize) -> u64 {
    cpus as u64 + cpus as u64 / 16 + 4
}

/// Number of chunks copied at a time.
const BLOCK_CHUNKS: usize = 16;

/// Maximum number of copying threads.
const COPY_THREADS: usize = 4;

/// Chunks of all classes, mapped read-only while the kernel writes to them.
pub(crate) struct Pool {
    base: NonNull<u8>,
    chunks: usize,
}

impl Pool {
    /// Maps the pool of a BPF map.
    pub(crate) fn map(fd: BorrowedFd<'_>, chunks: u32) -> Result<Pool> {
        let chunks = chunks as usize;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of ours.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                chunks * CHUNK_BYTES,
                ProtFlags::READ,
                MapFlags::SHARED,
                fd,
                0,
            )
        }
        .context("cannot map a ring")?;
        let base = NonNull::new(base.cast()).context("a ring was mapped at address 0")?;
        Ok(Pool { base, chunks })
    }

    /// Reads a chunk's current head; the kernel may write to it meanwhile.
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
        // SAFETY: the range lies inside the mapping, which lives as long as `self`; the kernel
        // writes to it concurrently, and the generation of every record shows if it was complete.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.base.as_ptr().add(index * CHUNK_BYTES),
                to.as_mut_ptr(),
                to.len(),
            )
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Copies a chunk such that every valid record in the copy is complete.
    fn copy_chunk(&self, index: usize, to: &mut [u8], again: &mut [u8]) {
        self.copy_bytes(index, to);
        self.copy_bytes(index, again);
        if to != again {
            complete(to, again);
        }
    }

    /// Copies all chunks of a class with records since `from`, oldest first. Passes them to `take`
    /// in blocks, from several threads at once. A chunk that is reused during its copy held the
    /// oldest records of all and is left out.
    pub(crate) fn copy_since(&self, class: RingClass, from: Nanos, take: &(dyn Fn(&[u8]) + Sync)) {
        let wanted = self.chunks_since(class, from);
        let next = AtomicUsize::new(0);
        let threads = available_parallelism().map_or(1, usize::from).min(COPY_THREADS);
        let others = wanted.len().div_ceil(BLOCK_CHUNKS).clamp(1, threads) - 1;
        std::thread::scope(|scope| {
            for _ in 0..others {
                // Without more threads, this one copies alone.
                Builder::new().spawn_scoped(scope, || self.copy_blocks(&wanted, &next, take)).ok();
            }
            self.copy_blocks(&wanted, &next, take);
        });
    }

    /// Copies blocks of the wanted chunks from the `next` one on, which other threads advance too.
    fn copy_blocks(&self, wanted: &[(usize, u64)], next: &AtomicUsize, take: &dyn Fn(&[u8])) {
        let mut copied = Vec::with_capacity(BLOCK_CHUNKS * CHUNK_BYTES);
        while let Some(block) =
            wanted.chunks(BLOCK_CHUNKS).nth(next.fetch_add(1, Ordering::Relaxed))
        {
            self.copy_block(block, &mut copied);
            take(&copied);
        }
    }

    /// Copies these chunks unless they have been reused.
    fn copy_block(&self, block: &[(usize, u64)], out: &mut Vec<u8>) {
        let mut again = vec![0; CHUNK_BYTES];
        out.clear();
        for (index, taken) in block {
            let start = out.len();
            out.resize(start + CHUNK_BYTES, 0);
            self.copy_chunk(*index, &mut out[start..], &mut again);
            if self.head(*index).taken != *taken {
                out.truncate(start);
            }
        }
    }

    /// Returns the chunks with such records, oldest first: index, and number of uses.
    fn chunks_since(&self, class: RingClass, from: Nanos) -> Vec<(usize, u64)> {
        let heads = (0..self.chunks).map(|index| (index, self.head(index)));
        let used = heads.filter(|(_, head)| head.taken != 0 && head.class == class as u32);
        let wanted = used.filter(|(_, head)| head.closed == Nanos(0) || head.closed >= from);
        let mut wanted: Vec<(usize, ChunkHead)> = wanted.collect();
        wanted.sort_by_key(|(_, head)| head.opened);
        wanted.into_iter().map(|(index, head)| (index, head.taken)).collect()
    }
}

// SAFETY: the mapping is read-only, and each read copies its bytes despite concurrent writes.
unsafe impl Sync for Pool {}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this size and nothing borrows from it.
        if let Err(error) = unsafe { munmap(self.base.as_ptr().cast(), self.chunks * CHUNK_BYTES) }
        {
            debug_assert!(false, "cannot unmap a ring: {error}");
        }
    }
}

/// Completes the records of a chunk's copy from a later copy, in whatever order their bytes were
/// read: a record that was valid in the first copy, if perhaps torn, had been written by then, so
/// the later one has all of it.
fn complete(copy: &mut [u8], later: &[u8]) {
    let begin = copy.as_ptr() as usize;
    let valid: Vec<Range<usize>> = entries(copy)
        .map(|entry| {
            let at = entry.bytes.as_ptr() as usize - begin;
            at..at + entry.bytes.len()
        })
        .collect();
    for range in valid {
        copy[range.clone()].copy_from_slice(&later[range]);
    }
}

#[cfg(test)]
mod tests {
    mod simulated;

    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc::{TryRecvError, channel};
    use tipme_record::packed::WORD_BYTES;
    use tipme_record::records::Rename;

    #[test]
    fn memory_holds_forty_seconds_of_its_event_rate() {
        for (mib, rate) in [(32, 25_000), (64, 80_000), (128, 200_000)] {
            let shares = Shares::of(mib << 20, 2).unwrap();
            let room = (CHUNK_BYTES - 512 - size_of::<ChunkHead>()) / WORD_BYTES;
            let records = u64::from(shares.0[RingClass::Sched as usize]) * room as u64;
            assert!(records >= 40 * rate, "{records} in {mib} MiB");
            assert!(u64::from(shares.total()) * CHUNK_BYTES as u64 + TABLES_BYTES <= mib << 20);
        }
    }

    #[test]
    fn each_of_many_cpus_has_a_chunk_of_each_class() {
        for (mib, cpus) in [(16, 2), (32, 64), (64, 256), (128, 512), (512, 1024)] {
            let shares = Shares::of(mib << 20, cpus).unwrap();
            let least = *shares.0.iter().min().unwrap();
            assert!(u64::from(least) >= least_chunks(cpus), "{least} in {mib} MiB for {cpus} CPUs");
            assert!(u64::from(shares.total()) * CHUNK_BYTES as u64 + TABLES_BYTES <= mib << 20);
        }
        for (mib, cpus, refusal) in [
            (64, 512, "too little memory for 512 CPUs: give --memory 113M or more"),
            (
                512,
                1025,
                "this machine can have up to 1025 CPUs, and no more than 1024 can be recorded",
            ),
        ] {
            assert_eq!(Shares::of(mib << 20, cpus).unwrap_err().to_string(), refusal);
        }
        assert!(Shares::of(113 << 20, 512).is_ok());
        assert_eq!(Shares::of(64 << 30, 8).unwrap().total(), 16_384);
    }

    /// Number of chunks in the pool that is written while it is read, and of records to read.
    const RACED: u32 = 6;
    const RECORDS: u64 = 1_000_000;
    /// Words of a rename record: head and name.
    const WORDS: u64 = (Rename::SIZE / 8) as u64;

    /// Returns a pool that can be written through the second value, like the kernel does.
    fn raced() -> (Pool, &'static [AtomicU64]) {
        let memory = rustix::fs::memfd_create("pool", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let bytes = RACED as usize * CHUNK_BYTES;
        rustix::fs::ftruncate(&memory, bytes as u64).unwrap();
        let both = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing of ours.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, both, MapFlags::SHARED, &memory, 0) }
            .unwrap();
        // SAFETY: the mapping is never unmapped, is page-aligned, and is only accessed through
        // atomics.
        let words = unsafe { std::slice::from_raw_parts(base.cast::<AtomicU64>(), bytes / 8) };
        (Pool::map(std::os::fd::AsFd::as_fd(&memory), RACED).unwrap(), words)
    }

    /// Takes a chunk, fills it and gives it back, in the order of `ring.h`; the names in the
    /// records hold their times.
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

    /// Returns all chunks of a class.
    fn copied(pool: &Pool, class: RingClass) -> Vec<u8> {
        let copied = Mutex::new(Vec::new());
        pool.copy_since(class, Nanos(0), &|block| copied.lock().unwrap().extend_from_slice(block));
        copied.into_inner().unwrap()
    }

    #[test]
    fn a_torn_record_is_completed_from_a_later_copy() {
        let words: Vec<AtomicU64> = (0..CHUNK_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        fill(&words, 1, &mut 1_000);
        let later: Vec<u8> =
            words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let (first, record) = (size_of::<ChunkHead>(), WORDS as usize * 8);
        let mut copy = later.clone();
        // The first name was read before it was written, and the second record was not there yet.
        copy[first + 16..first + record].fill(7);
        copy[first + record..].fill(0);
        complete(&mut copy, &later);
        assert_eq!(copy[..first + record], later[..first + record]);
        assert_eq!(tipme_record::entries(&copy).count(), 1);
    }

    #[test]
    fn what_is_copied_while_it_is_written_holds_whole_records_only() {
        let (pool, words) = raced();
        let (enough, is_enough) = channel::<()>();
        let writer = std::thread::spawn(move || {
            let mut ts = 1 << 30;
            for turn in (0..).take_while(|_| is_enough.try_recv() == Err(TryRecvError::Empty)) {
                let index = (turn % u64::from(RACED)) as usize;
                let chunk = &words[index * CHUNK_BYTES / 8..][..CHUNK_BYTES / 8];
                fill(chunk, turn / u64::from(RACED) + 1, &mut ts);
            }
        });
        let mut records = 0;
        while records < RECORDS {
            let copied = copied(&pool, RingClass::Sched);
            for chunk in copied.chunks(CHUNK_BYTES) {
                let mut last = 0;
                for entry in tipme_record::entries(chunk) {
                    let name = Rename::read_from_bytes(entry.bytes).unwrap().comm;
                    let ts = entry.head.ts.0;
                    let whole = [ts.to_le_bytes(), (!ts).to_le_bytes()].concat();
                    assert_eq!((&name[..], entry.head.tid.0), (&whole[..], ts as u32), "torn");
                    assert!(ts > last, "records of two lives");
                    (last, records) = (ts, records + 1);
                }
            }
        }
        drop(enough);
        writer.join().unwrap();
    }

    #[test]
    fn too_little_memory_names_what_is_needed() {
        let error = Shares::of(10 << 20, 64).unwrap_err().to_string();
        assert!(error.contains("--memory 24M"), "{error}");
        assert!(Shares::of(24 << 20, 64).is_ok() && Shares::of(23 << 20, 64).is_err());
    }
}
