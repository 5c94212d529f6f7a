// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of an incident, or its picture.

use anyhow::Result;
use std::path::Path;
use tipme_analysis::DiagnoseOptions;
use tipme_analysis::scene::scene;
use tipme_command::incident::read;

/// The page of the incident in a file.
pub fn page(incident: &Path, options: &DiagnoseOptions) -> Result<String> {
    Ok(tipme_report::page(&scene(&read(incident)?, options)?))
}

/// The timeline of the incident in a file, in SVG.
pub fn picture(incident: &Path, options: &DiagnoseOptions) -> Result<String> {
    Ok(tipme_report::picture(&scene(&read(incident)?, options)?))
}
