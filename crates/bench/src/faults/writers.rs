// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that fills the queue of a disk.

use crate::worker::{millis, say_ready, word};
use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Threads that each keep one write in the disk's queue: enough to fill the queue of a loop device.
const WRITERS: usize = 128;
/// Bytes of one write.
const BLOCK_BYTES: usize = 1 << 20;
/// Blocks of each writer's scratch file, written over and over.
const BLOCKS: u64 = 2;
/// Bytes written in all, at most.
const TOTAL_BYTES_MAX: u64 = 256 << 30;
/// Buffers for direct writes begin at a multiple of this.
const ALIGNMENT: usize = 4096;

/// `writers FOLDER MS`: keeps a disk's queue full with direct writes, for a time.
pub(super) fn run(words: &[&str]) -> Result<()> {
    write(Path::new(word(words, 0)?), millis(words, 1)?)
}

/// Says that it is in place once every thread has written a block.
fn write(folder: &Path, time: Duration) -> Result<()> {
    let buffer = vec![0x5a; BLOCK_BYTES + ALIGNMENT];
    let skip = buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
    let block = buffer.get(skip..skip + BLOCK_BYTES).context("the buffer cannot be aligned")?;
    let files =
        (0..WRITERS).map(|number| scratch(folder, number)).collect::<Result<Vec<OwnedFd>>>()?;
    let (started, written, end) =
        (Barrier::new(WRITERS + 1), AtomicU64::new(0), Instant::now() + time);
    std::thread::scope(|scope| {
        for file in &files {
            let (started, written) = (&started, &written);
            scope.spawn(move || {
                let first = rustix::io::pwrite(file, block, 0);
                started.wait();
                first.is_ok() && keep_writing(file, block, end, written)
            });
        }
        started.wait();
        say_ready("")
    })
}

fn scratch(folder: &Path, number: usize) -> Result<OwnedFd> {
    let path = folder.join(format!("scratch.{number}"));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = open(&path, flags, Mode::RUSR | Mode::WUSR)
        .with_context(|| format!("cannot open {}", path.display()))?;
    fallocate(&file, FallocateFlags::empty(), 0, BLOCKS * BLOCK_BYTES as u64)
        .with_context(|| format!("cannot make room for {}", path.display()))?;
    std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    Ok(file)
}

/// Writes block after block until the time, the bound or the disk ends it.
fn keep_writing(file: &OwnedFd, block: &[u8], end: Instant, written: &AtomicU64) -> bool {
    for round in 0u64.. {
        let before = written.fetch_add(block.len() as u64, Ordering::Relaxed);
        if Instant::now() >= end || before >= TOTAL_BYTES_MAX {
            return true;
        }
        if rustix::io::pwrite(file, block, round % BLOCKS * block.len() as u64).is_err() {
            return false;
        }
    }
    true
}
