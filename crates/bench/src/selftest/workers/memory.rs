// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that takes most of the memory of its control group.

use super::pages::MappedPages;
use super::work::{limit_life, number, word};
use crate::worker::say_ready;
use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::Duration;

/// Memory and file, at most.
const MIB_MAX: u64 = 256;
/// Bytes written at a time.
const BLOCK_BYTES: usize = 1 << 20;
/// Blocks written in all, at most.
const BLOCKS_MAX: u64 = 20_000;
/// Between two walks over the memory.
const REST: Duration = Duration::from_millis(20);

/// `memory-hog MIB` or `memory-hog MIB FILE FILE_MIB`: takes memory and keeps it in use, and writes a
/// file over and over, which fills what is left of the group's memory with pages to be written.
///
/// It is the one to be killed where the group's memory does not suffice.
pub(super) fn hog(words: &[&str]) -> Result<()> {
    limit_life();
    std::fs::write("/proc/self/oom_score_adj", "1000").context("cannot offer myself to be killed")?;
    let mut memory = MappedPages::of_memory((number(words, 0)?.clamp(1, MIB_MAX) << 20) as usize, false)?;
    walk(&mut memory);
    match words.get(1) {
        Some(path) => keep_dirty(path, number(words, 2)?.clamp(1, MIB_MAX)),
        None => keep_in_use(&mut memory),
    }
}

fn walk(memory: &mut MappedPages) {
    (0..memory.pages()).for_each(|page| memory.fill(page));
}

/// Until the end of its life.
fn keep_in_use(memory: &mut MappedPages) -> Result<()> {
    say_ready("")?;
    loop {
        sleep(REST);
        walk(memory);
    }
}

fn keep_dirty(path: &str, blocks: u64) -> Result<()> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.with_context(|| format!("cannot open {path}"))?;
    let block = vec![0x5a; BLOCK_BYTES];
    for at in 0..BLOCKS_MAX {
        if at == blocks {
            say_ready("")?;
        }
        let offset = at % blocks * BLOCK_BYTES as u64;
        file.write_all_at(&block, offset).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

/// `warm FILE`: reads a file, so that its pages count for the group that this process is in.
pub(super) fn warm(words: &[&str]) -> Result<()> {
    limit_life();
    let path = word(words, 0)?;
    let mut file = File::open(path).with_context(|| format!("cannot open {path}"))?;
    std::io::copy(&mut file, &mut std::io::sink()).with_context(|| format!("cannot read {path}"))?;
    say_ready("")
}
