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
use crate::worker::{self, WorkerProgram, word};
use anyhow::{Context, Result};
use std::ffi::OsString;

/// Programs of the benchmarks.
const PROGRAMS: &[(&str, WorkerProgram)] = &[
    ("build", |words| system::run_build(word(words, 0)?)),
    ("cleanup", |_| intervals::run_cleanup()),
    ("fork-load", fork::run_load),
    ("fork-timer", fork::run_timer),
    ("idle-work", |words| idle::work(word(words, 0)?, word(words, 1)?)),
    ("load", |words| load::run(word(words, 0)?)),
    ("memory-children", memory::run_children),
    ("memory-timer", memory::run_timer),
    ("pagein", pagein::run_program),
    ("timer-culprit", timer::culprit::run),
    ("truth-client", truth::client),
];

/// Runs a worker program: the job of a fault, or a process of a benchmark or a test.
pub fn run(words: &[OsString]) -> Result<()> {
    let tables = [faults::workers::PROGRAMS, PROGRAMS];
    let run = tables.iter().find_map(|table| worker::run_named(table, words));
    run.with_context(|| format!("there is no worker program {:?}", words.first()))?
}
