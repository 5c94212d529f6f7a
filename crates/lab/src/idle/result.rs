// SPDX-License-Identifier: MIT OR Apache-2.0
//! The document of the idle loop, and its file.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use tipme_measure::idle::IdleDetails;
use tipme_measure::{Document, Machine, Run, SCHEMA};

/// The kind of the documents.
const KIND: &str = "idle";

/// A document of what was measured.
pub fn wrap(machine: Machine, runs: Vec<Run>, details: IdleDetails) -> Document<IdleDetails> {
    let (kind, version) = (KIND.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Document { schema: SCHEMA, kind, version, machine, runs, details }
}

/// Writes it as one line of JSON.
pub fn write(path: &Path, document: &Document<IdleDetails>) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(cannot)?);
    serde_json::to_writer(&mut file, document).with_context(cannot)?;
    file.into_inner().map_err(|error| error.into_error()).with_context(cannot)?;
    Ok(())
}
