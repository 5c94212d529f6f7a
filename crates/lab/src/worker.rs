// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme-lab worker`: this program started again as a worker.

use crate::arguments;
use anyhow::Result;
use std::process::ExitCode;
use tipme_bench::worker_programs;

/// Runs a worker program.
pub fn run(arguments: arguments::Worker) -> Result<ExitCode> {
    let words: Vec<_> = arguments.words.into_iter().map(Into::into).collect();
    worker_programs::run(&words).map(|()| ExitCode::SUCCESS)
}
