// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page or picture of an incident.

use anyhow::Result;
use std::path::Path;
use tipme_analysis::DiagnoseOptions;
use tipme_analysis::scene::scene;
use tipme_command::incident::read;

/// Returns the page of the incident in a file.
pub fn page(incident: &Path, options: &DiagnoseOptions) -> Result<String> {
    Ok(tipme_report::page(&scene(&read(incident)?, options)?))
}

/// Returns the timeline of the incident in a file as SVG.
pub fn picture(incident: &Path, options: &DiagnoseOptions) -> Result<String> {
    Ok(tipme_report::picture(&scene(&read(incident)?, options)?))
}
