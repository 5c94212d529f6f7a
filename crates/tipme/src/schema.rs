// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme schema`: what the JSON documents look like, from the very types that are printed.

use crate::arguments::{Document, Schema};
use crate::{doctor, incidents, lab, status};
use anyhow::Result;
use std::process::ExitCode;
use tipme_analysis::Verdict;
use tipme_command::schema;

/// Prints the schema of one document.
pub fn run(arguments: &Schema) -> Result<ExitCode> {
    let schema = match arguments.document {
        Document::Verdict => schema::<Verdict>(),
        Document::Incidents => schema::<incidents::list::Document>(),
        Document::Status => schema::<status::Document>(),
        Document::Doctor => schema::<doctor::Document>(),
        Document::Demo | Document::Selftest => match lab::become_lab()? {},
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(ExitCode::SUCCESS)
}
