// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of an incident.

use anyhow::Result;
use std::path::Path;
use tipme_analysis::Options;
use tipme_analysis::scene::scene;
use tipme_command::incident::read;

/// The page of the incident in a file.
pub fn page(incident: &Path, options: &Options) -> Result<String> {
    Ok(tipme_report::page(&scene(&read(incident)?, options)?))
}
