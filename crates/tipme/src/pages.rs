// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shell completions and man pages, made from the arguments.

use crate::arguments::Arguments;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::path::Path;
use std::process::ExitCode;

/// Writes completions for one shell to standard output.
pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode> {
    clap_complete::generate(shell, &mut Arguments::command(), "tipme", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}

/// Writes one man page per verb into a folder.
pub fn man(dir: &Path) -> Result<ExitCode> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    clap_mangen::generate_to(Arguments::command(), dir)
        .with_context(|| format!("cannot write to {}", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
