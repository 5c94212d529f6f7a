// SPDX-License-Identifier: MIT OR Apache-2.0
//! All worker programs, by their names: of the demo, the self-test, the benchmarks and loads.

use crate::fork;
use crate::idle;
use crate::intervals;
use crate::load;
use crate::memory;
use crate::pagein;
use crate::selftest::{patient, workers};
use crate::system;
use crate::timer;
use crate::truth;
use crate::worker::{self, WorkerProgram};
use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Those of the benchmarks.
const PROGRAMS: &[(&str, WorkerProgram)] = &[
    ("cleanup", |_| intervals::run_cleanup()),
    ("memory-timer", memory::run_timer),
    ("memory-children", memory::run_children),
    ("fork-timer", fork::run_timer),
    ("fork-load", fork::run_load),
];

/// Runs a worker program: `writers FOLDER SECONDS`, `truth-client DISPLAY AUTHORITY KEYS FILE`, an application
/// of the self-test, or one of those around it, or a process of a benchmark.
pub fn run(words: &[OsString]) -> Result<()> {
    let text = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let number = |at: usize| text(at).parse::<u32>().with_context(|| format!("invalid number \"{}\"", text(at)));
    match text(0) {
        "writers" => Writers { folder: PathBuf::from(text(1)), seconds: number(2)?.min(60) }.run(),
        "truth-client" => truth::client(number(1)?, Path::new(text(2)), number(3)?, Path::new(text(4))),
        "idle-work" => idle::work(text(1), text(2)),
        "load" => load::run(text(1)),
        "build" => system::run_build(text(1)),
        "pagein" => pagein::run_program(number(1)?, number(2)?, number(3)?, Path::new(text(4)), Path::new(text(5))),
        "patient" => patient::window(number(1)?, Path::new(text(2)), Path::new(text(3))),
        "timer-culprit" => timer::culprit::run(&[text(1), text(2), text(3), text(4)]),
        "tty-patient" => patient::terminal(Path::new(text(1))),
        other => {
            let tables = [workers::WAITS, workers::SHORTAGES, PROGRAMS];
            let run = tables.iter().find_map(|table| worker::run_named(table, words));
            run.with_context(|| format!("there is no worker program \"{other}\""))?
        }
    }
}

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

/// Keeps a disk's queue full with direct writes, for a time.
struct Writers {
    folder: PathBuf,
    seconds: u32,
}

impl Writers {
    /// Says that it is in place once every thread has written a block.
    fn run(&self) -> Result<()> {
        let buffer = vec![0x5a; BLOCK_BYTES + ALIGNMENT];
        let skip = buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let block = buffer.get(skip..skip + BLOCK_BYTES).context("the buffer cannot be aligned")?;
        let files = (0..WRITERS).map(|number| self.scratch(number)).collect::<Result<Vec<OwnedFd>>>()?;
        let started = Barrier::new(WRITERS + 1);
        let written = AtomicU64::new(0);
        let end = Instant::now() + Duration::from_secs(self.seconds.into());
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
            worker::say_ready("")
        })
    }

    fn scratch(&self, number: usize) -> Result<OwnedFd> {
        let path = self.folder.join(format!("scratch.{number}"));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::DIRECT | OFlags::CLOEXEC;
        let file =
            open(&path, flags, Mode::RUSR | Mode::WUSR).with_context(|| format!("cannot open {}", path.display()))?;
        fallocate(&file, FallocateFlags::empty(), 0, BLOCKS * BLOCK_BYTES as u64)
            .with_context(|| format!("cannot make room for {}", path.display()))?;
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        Ok(file)
    }
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
