// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench timer --show`: prints earlier results.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tipme_bench::experiment::Experiment;
use tipme_bench::timer::Timer;
use tipme_measure::timer::TimerDetails;
use tipme_measure::{Document, SCHEMA};
use tipme_report::timer::side_by_side;

/// Prints the tables of several results.
pub fn show(paths: &[PathBuf]) -> Result<ExitCode> {
    let files =
        paths.iter().map(|path| Ok((stem(path), read(path)?))).collect::<Result<Vec<_>>>()?;
    print!("{}", side_by_side(&files));
    Ok(ExitCode::SUCCESS)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<Document<TimerDetails>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let document: Document<TimerDetails> = serde_json::from_str(&text).with_context(|| {
        format!("{} is not a result of tipme bench timer --json", path.display())
    })?;
    if document.schema != SCHEMA || document.kind != Timer::NAME {
        bail!("{} is a result of another kind or version: measure again", path.display());
    }
    Ok(document)
}
