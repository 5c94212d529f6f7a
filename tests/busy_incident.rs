// SPDX-License-Identifier: MIT OR Apache-2.0
//! `busy-incident RECORDS FOLDER` writes an incident with about RECORDS records, and prints its
//! path: `scripts/bench-recorder --diagnose` diagnoses it.

#[path = "../crates/analysis/tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (records, folder) =
        arguments.next().zip(arguments.next()).ok_or("busy-incident RECORDS FOLDER")?;
    let (incident, folder) = (support::busy::busy(records.parse()?), PathBuf::from(folder));
    let path = tipme_store::write(&folder, &incident, folder.metadata()?.uid())?;
    println!("{}", path.display());
    Ok(())
}
