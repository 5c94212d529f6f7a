// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that measurements start: `tipme`, which records, marks, diagnoses and manages, and this
//! one itself.

use anyhow::{Context, Result};
use std::path::PathBuf;
use tipme_bench::driver::Programs;
use tipme_bench::worker::WorkerLauncher;
use tipme_command::program;

/// Returns the path of `tipme`.
pub fn tipme() -> Result<PathBuf> {
    program::find("tipme")?.context(
        "tipme is neither beside tipme-lab nor in PATH; \
             install the package tipme, or run make install",
    )
}

/// Returns the launcher of worker programs.
pub fn launcher() -> Result<WorkerLauncher> {
    Ok(WorkerLauncher(vec![program::own()?.into(), "worker".into()]))
}

/// Returns both, for a benchmark.
pub fn all() -> Result<Programs> {
    Ok(Programs { tipme: tipme()?, launcher: launcher()? })
}
