// SPDX-License-Identifier: MIT OR Apache-2.0
//! All worker programs by name: of the demo, the self-test, the benchmarks and loads.

use crate::faults;
use crate::fork;
use crate::idle;
use crate::intervals;
use crate::load;
use crate::memory;
use crate::pagein;
use crate::system;
use crate::timer;
use crate::truth;
use crate::worker::{self, WorkerProgram};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::Path;

/// Programs of the benchmarks.
const PROGRAMS: &[(&str, WorkerProgram)] = &[
    ("cleanup", |_| intervals::run_cleanup()),
    ("memory-timer", memory::run_timer),
    ("memory-children", memory::run_children),
    ("fork-timer", fork::run_timer),
    ("fork-load", fork::run_load),
];

/// Runs a worker program: `truth-client DISPLAY AUTHORITY KEYS FILE`, the job of a fault, or a
/// process of a benchmark.
pub fn run(words: &[OsString]) -> Result<()> {
    let text = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let number = |at: usize| {
        text(at).parse::<u32>().with_context(|| format!("invalid number \"{}\"", text(at)))
    };
    match text(0) {
        "truth-client" => {
            truth::client(number(1)?, Path::new(text(2)), number(3)?, Path::new(text(4)))
        }
        "idle-work" => idle::work(text(1), text(2)),
        "load" => load::run(text(1)),
        "build" => system::run_build(text(1)),
        "pagein" => pagein::run_program(
            number(1)?,
            number(2)?,
            number(3)?,
            Path::new(text(4)),
            Path::new(text(5)),
        ),
        "timer-culprit" => timer::culprit::run(&[text(1), text(2), text(3), text(4)]),
        other => {
            let tables = [faults::workers::PROGRAMS, PROGRAMS];
            let run = tables.iter().find_map(|table| worker::run_named(table, words));
            run.with_context(|| format!("there is no worker program \"{other}\""))?
        }
    }
}
