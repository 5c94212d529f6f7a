// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that verbs write.

use anyhow::{Context, Result};
use std::path::Path;

pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes plots, each with the name of its file, into a folder that is made where it is not there yet.
pub fn write_plots<N: AsRef<Path>>(folder: &Path, plots: impl IntoIterator<Item = (N, String)>) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    plots.into_iter().try_for_each(|(name, svg)| write(&folder.join(name), &svg))
}
