// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that measurements start: `tipme`, which records, marks, diagnoses and manages, and this one itself.

use anyhow::{Context, Result};
use std::path::PathBuf;
use tipme_bench::interrupt::Interrupt;
use tipme_bench::intervals::SidecarRecorder;
use tipme_bench::worker::WorkerLauncher;
use tipme_command::program;

/// The file of `tipme`.
pub fn tipme() -> Result<PathBuf> {
    program::find("tipme")?
        .context("tipme is not installed beside tipme-lab, nor in PATH; install the package tipme, or run make install")
}

/// How this program starts worker programs.
pub fn launcher() -> Result<WorkerLauncher> {
    Ok(WorkerLauncher(vec![program::own()?.into(), "worker".into()]))
}

/// Both, for a benchmark.
pub struct Programs {
    pub tipme: PathBuf,
    pub launcher: WorkerLauncher,
}

impl Programs {
    pub fn find() -> Result<Programs> {
        Ok(Programs { tipme: tipme()?, launcher: launcher()? })
    }

    /// A recorder, or why there is none.
    pub fn sidecar(
        &self,
        unwanted: bool,
        details: &[&str],
        interrupt: &Interrupt,
    ) -> Result<Result<SidecarRecorder, String>> {
        if unwanted {
            return Ok(Err("--no-trace was given".to_owned()));
        }
        let sidecar = SidecarRecorder::start(&self.tipme, &self.launcher, details, interrupt);
        interrupt.check()?;
        Ok(sidecar.map_err(|error| format!("{error:#}")))
    }
}
