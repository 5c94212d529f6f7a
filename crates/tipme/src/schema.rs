// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme schema`: schemas of the JSON documents, derived from the printed types.

use crate::arguments::{Schema, SchemaName};
use crate::{day, diagnose, doctor, incidents, lab, status};
use anyhow::Result;
use std::process::ExitCode;
use tipme_analysis::Verdict;
use tipme_command::schema;
use tipme_control::manager::{ManagerStatus, ProcessTreatment};

/// Prints the schema of one document.
pub fn run(arguments: &Schema) -> Result<ExitCode> {
    let schema = match arguments.document {
        SchemaName::Verdict => schema::<Verdict>(),
        SchemaName::Interactions => schema::<diagnose::InteractionsDocument>(),
        SchemaName::Incidents => schema::<incidents::list::IncidentsDocument>(),
        SchemaName::Day => schema::<day::DayDocument>(),
        SchemaName::Status => schema::<status::StatusDocument>(),
        SchemaName::Doctor => schema::<doctor::DoctorDocument>(),
        SchemaName::Manage => schema::<ManagerStatus>(),
        SchemaName::Why => schema::<ProcessTreatment>(),
        SchemaName::Demo | SchemaName::Selftest => match lab::become_lab()? {},
    };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(ExitCode::SUCCESS)
}
