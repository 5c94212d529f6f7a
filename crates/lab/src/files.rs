// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that verbs write.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a document, for people to read, too, or as one line.
pub fn write_json(path: &Path, document: &impl Serialize, indented: bool) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(cannot)?);
    let written = match indented {
        true => serde_json::to_writer_pretty(&mut file, document),
        false => serde_json::to_writer(&mut file, document),
    };
    written.with_context(cannot)?;
    writeln!(file).and_then(|()| file.flush()).with_context(cannot)
}

/// Writes plots, each with the name of its file, into a folder that is made where it is not there yet.
pub fn write_plots<N: AsRef<Path>>(folder: &Path, plots: impl IntoIterator<Item = (N, String)>) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    plots.into_iter().try_for_each(|(name, svg)| write(&folder.join(name), &svg))
}
