// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that are slow because of a disk, or make others slow by it.

use super::delay::Delay;
use super::pages::{PAGE_BYTES, read_file};
use super::work::{limit_life, millis, number, word};
use crate::worker::say_ready;
use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;

/// Bytes written at a time by who writes in small portions.
const PORTION_BYTES: usize = 256 << 10;
/// What one call may write, and a file may grow to.
const MIB_MAX: u64 = 256;
/// Rounds, at most; a program's life ends before.
const ROUNDS_MAX: usize = 1000;

/// `reader-service SOCKET FILE MS`: answers one request, after reads that delay it for a time.
pub(super) fn service(words: &[&str]) -> Result<()> {
    limit_life();
    let (path, file, time) = (word(words, 0)?, word(words, 1)?, millis(words, 2)?);
    let listener = UnixListener::bind(path).with_context(|| format!("cannot listen at {path}"))?;
    say_ready("")?;
    let (mut stream, _) = listener.accept()?;
    stream.read_exact(&mut [0])?;
    read_file(file, &Delay::blocked_until(time))?;
    stream.write_all(b"!").context("nobody waits for the answer")
}

/// `lock-reader LOCK FILE MS`: locks a file, and reads another one before it lets go.
pub(super) fn lock_reader(words: &[&str]) -> Result<()> {
    limit_life();
    let (path, file, time) = (word(words, 0)?, word(words, 1)?, millis(words, 2)?);
    let lock = File::options().read(true).write(true).open(path).with_context(|| format!("cannot open {path}"))?;
    flock(&lock, FlockOperation::LockExclusive).with_context(|| format!("cannot lock {path}"))?;
    say_ready("")?;
    read_file(file, &Delay::blocked_until(time))
}

/// `dirtier FILE MIB`: writes a new file through the page cache, from the start again and again.
pub(super) fn dirtier(words: &[&str]) -> Result<()> {
    limit_life();
    let (path, bytes) = (word(words, 0)?, number(words, 1)?.clamp(1, MIB_MAX) << 20);
    let portion = vec![0x5a; PORTION_BYTES];
    for round in 0..ROUNDS_MAX {
        let file = File::create(path).with_context(|| format!("cannot write {path}"))?;
        for offset in (0..bytes).step_by(PORTION_BYTES) {
            file.write_all_at(&portion, offset).with_context(|| format!("cannot write {path}"))?;
        }
        if round == 0 {
            say_ready("")?;
        }
    }
    Ok(())
}

/// `rewriter FILE MIB`: makes a file longer by one large direct write, and cuts it off, again and again.
///
/// The file cannot be written by others during such a write.
pub(super) fn rewriter(words: &[&str]) -> Result<()> {
    limit_life();
    let (path, bytes) = (word(words, 0)?, (number(words, 1)?.clamp(1, MIB_MAX) << 20) as usize);
    let buffer = vec![0x5a; bytes + PAGE_BYTES];
    let skip = buffer.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
    let block = buffer.get(skip..skip + bytes).context("the buffer cannot be aligned")?;
    let file = File::options().write(true).custom_flags(libc::O_DIRECT).open(path);
    let file = file.with_context(|| format!("cannot open {path}"))?;
    for round in 0..ROUNDS_MAX {
        file.set_len(0).with_context(|| format!("cannot cut off {path}"))?;
        if round == 1 {
            say_ready("")?;
        }
        file.write_all_at(block, 0).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}
