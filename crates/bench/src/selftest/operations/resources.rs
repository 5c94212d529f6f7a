// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders to use a CPU, memory or a disk until that has taken much longer than it should.
//!
//! Each leaves in a file, its first word, how long it did not get on; that is at least the second
//! word, in milliseconds, unless three seconds pass or all memory asked for is there before.

use super::waits::Operation;
use crate::selftest::workers::{
    Delay, MappedPages, compute, millis, note, number, read_file, spin_rounds, touch_file, use_cpu_time, word,
};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tipme_record::Nanos;

/// By name, with the words that follow the two.
pub(super) const OPERATIONS: &[(&str, Operation)] = &[
    ("work", work),
    ("rounds", count_work), // PICOSECONDS
    ("touch-file", |words| until_blocked(words, |delay| touch_file(word(words, 2)?, delay))), // FILE
    ("read-file", |words| until_blocked(words, |delay| read_file(word(words, 2)?, delay))), // FILE
    ("fill-memory", fill_memory), // MIB
    ("sync", sync),         // FILE
    ("append", append),     // FILE
    ("remap", remap),       // MIB
    ("spend", spend),       // MS
    ("poke", poke),         // PIPE
];

/// A turn of computing, between two looks at the clock.
const TURN: Duration = Duration::from_micros(500);
/// Rounds of counted work between two looks at the clock.
const ROUNDS: u64 = 20_000;
/// Pages that are filled between two looks at the clock.
const CLOCK_EVERY: usize = 32;
/// Memory that is filled or mapped, at most.
const MIB_MAX: u64 = 512;
/// Bytes that are written at a time.
const LINE: [u8; 4096] = [b'a'; 4096];

/// Carries out something that lasts until it is delayed enough, and notes the delay.
fn until(words: &[&str], operation: impl FnOnce(&Delay) -> Result<()>) -> Result<()> {
    noting(words, Delay::until(millis(words, 1)?), operation)
}

/// The same, where waits for a CPU do not count.
fn until_blocked(words: &[&str], operation: impl FnOnce(&Delay) -> Result<()>) -> Result<()> {
    noting(words, Delay::blocked_until(millis(words, 1)?), operation)
}

fn noting(words: &[&str], delay: Delay, operation: impl FnOnce(&Delay) -> Result<()>) -> Result<()> {
    operation(&delay)?;
    note(word(words, 0)?, delay.so_far())
}

fn mebibytes(words: &[&str]) -> Result<usize> {
    Ok((number(words, 2)?.clamp(1, MIB_MAX) << 20) as usize)
}

fn file(path: &str) -> Result<File> {
    let file = File::options().create(true).append(true).open(path);
    file.with_context(|| format!("cannot open {path}"))
}

/// Computes; delayed by whatever else has the CPU.
fn work(words: &[&str]) -> Result<()> {
    until(words, |delay| {
        while delay.goes_on() {
            compute(TURN);
        }
        Ok(())
    })
}

/// Computes until it has had so much CPU time.
fn spend(words: &[&str]) -> Result<()> {
    let time = millis(words, 2)?;
    until(words, |_| {
        use_cpu_time(time);
        Ok(())
    })
}

/// Computes rounds that are known to take a time each: interrupts count as delays, too.
fn count_work(words: &[&str]) -> Result<()> {
    let (goal, each) = (millis(words, 1)?, number(words, 2)?);
    let (clock, mut rounds) = (Delay::until(goal), 0);
    let late = |rounds: u64| Nanos(clock.passed().0.saturating_sub(rounds * each / 1000));
    while late(rounds) < Nanos(goal.as_nanos() as u64) && clock.may_go_on() {
        spin_rounds(ROUNDS);
        rounds += ROUNDS;
    }
    note(word(words, 0)?, late(rounds))
}

/// Takes memory once and keeps it until it was delayed enough: every page must come from what others have.
/// It does not start over, where the delay is too short, since what it gives back is free for it.
fn fill_memory(words: &[&str]) -> Result<()> {
    let mut memory = MappedPages::of_memory(mebibytes(words)?, false)?;
    until_blocked(words, |delay| {
        (0..memory.pages())
            .take_while(|page| page % CLOCK_EVERY != 0 || delay.goes_on())
            .for_each(|page| memory.fill(page));
        Ok(())
    })
}

/// Writes a little and has it put on the disk.
fn sync(words: &[&str]) -> Result<()> {
    let mut file = file(word(words, 2)?)?;
    until_blocked(words, |delay| {
        while delay.goes_on() {
            file.write_all(b"saved\n").context("cannot write")?;
            file.sync_all().context("cannot sync")?;
        }
        Ok(())
    })
}

/// Writes to the end of a file.
fn append(words: &[&str]) -> Result<()> {
    let path = word(words, 2)?;
    let mut file = file(path)?;
    until_blocked(words, |delay| {
        while delay.goes_on() {
            file.write_all(&LINE).with_context(|| format!("cannot write {path}"))?;
        }
        Ok(())
    })
}

/// Maps a page and unmaps it, while another thread fills much memory and gives it back.
fn remap(words: &[&str]) -> Result<()> {
    let (bytes, done) = (mebibytes(words)?, AtomicBool::new(false));
    std::thread::scope(|scope| {
        let filler = std::thread::Builder::new().name("filler".to_string());
        filler.spawn_scoped(scope, || {
            while !done.load(Ordering::Relaxed) {
                drop(MappedPages::of_memory(bytes, true));
            }
        })?;
        let delayed = until_blocked(words, |delay| {
            while delay.goes_on() {
                drop(MappedPages::of_memory(LINE.len(), true)?);
            }
            Ok(())
        });
        done.store(true, Ordering::Relaxed);
        delayed
    })
}

/// Writes a byte to a pipe whose reader has a higher priority.
fn poke(words: &[&str]) -> Result<()> {
    let path = word(words, 2)?;
    until(words, |_| {
        let pipe = File::options().write(true).open(path).with_context(|| format!("cannot open {path}"));
        pipe?.write_all(b"!").with_context(|| format!("nobody reads {path}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::workers::noted;

    #[test]
    fn each_notes_its_delay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("plain letters").to_string();
        std::fs::write(path("file"), [1; 40_000]).expect("room");
        for (name, operation) in OPERATIONS.iter().filter(|(name, _)| !["poke", "rounds"].contains(name)) {
            let third = if ["fill-memory", "remap", "spend"].contains(name) { "4".to_string() } else { path("file") };
            operation(&[&path(name), "0", &third]).expect("it can be carried out");
            assert!(noted(&folder.path().join(name)).expect("a number").is_some(), "{name}");
        }
    }

    #[test]
    fn counted_work_knows_what_it_should_take() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rounds");
        count_work(&[path.to_str().expect("plain letters"), "5", "0"]).expect("it can be carried out");
        let late = noted(&path).expect("a number").expect("a note");
        assert!(late >= Nanos::from_millis(5), "{late}");
    }
}
