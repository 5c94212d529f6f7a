// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme schema`: what the JSON documents look like, from the very types that are printed.

use crate::arguments::{Document, Schema};
use crate::{doctor, incidents, status};
use anyhow::Result;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema as Root};
use std::process::ExitCode;
use tipme_analysis::Verdict;
use tipme_bench::{demo, selftest};

/// Prints the schema of one document.
pub fn run(arguments: &Schema) -> Result<ExitCode> {
    println!("{}", serde_json::to_string_pretty(&of(arguments.document))?);
    Ok(ExitCode::SUCCESS)
}

fn of(document: Document) -> Root {
    match document {
        Document::Verdict => root::<Verdict>(),
        Document::Incidents => root::<incidents::list::Document>(),
        Document::Status => root::<status::Document>(),
        Document::Doctor => root::<doctor::Document>(),
        Document::Demo => root::<demo::Outcome>(),
        Document::Selftest => root::<selftest::Outcome>(),
    }
}

/// Of a type as it is printed: what may be left out there is not required.
fn root<T: JsonSchema>() -> Root {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
