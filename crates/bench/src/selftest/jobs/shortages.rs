// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that take CPU time, memory or the disk from others, by name.

use super::{disk, flood, hogs, memory, realtime};
use anyhow::{Context, Result};
use std::ffi::OsString;

type Program = fn(&[&str]) -> Result<()>;

const PROGRAMS: &[(&str, Program)] = &[
    ("neighbour", hogs::neighbour),
    ("realtime-hog", realtime::once),
    ("realtime-turns", realtime::turns),
    ("memory-hog", memory::hog),
    ("warm", memory::warm),
    ("reader-service", disk::service),
    ("lock-reader", disk::lock_reader),
    ("dirtier", disk::dirtier),
    ("rewriter", disk::rewriter),
    ("flood", flood::flood),
];

/// Runs one of them with its words; `None` where none has the name that comes first.
pub(crate) fn run(words: &[OsString]) -> Option<Result<()>> {
    let (name, rest) = words.split_first()?;
    let (_, program) = PROGRAMS.iter().find(|(known, _)| name == known)?;
    let rest = rest.iter().map(|word| word.to_str()).collect::<Option<Vec<&str>>>();
    Some(rest.context("a word is not UTF-8 text").and_then(|rest| program(&rest)))
}
