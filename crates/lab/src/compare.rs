// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme compare`.

use crate::arguments;
use crate::files::{write_json, write_plots};
use anyhow::{Result, bail, ensure};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tipme_command::results::{Results, read};
use tipme_measure::{ComparedSide, Comparison, MeasuredMachine, SCHEMA};
use tipme_report::comparison as report;

/// Kind of this document.
const KIND: &str = "compare";

/// The comparison as it is written to a file.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of tipme compare")]
pub struct WrittenComparison<'a> {
    #[schemars(extend("const" = SCHEMA))]
    schema: u32,
    #[schemars(extend("const" = KIND))]
    kind: &'a str,
    /// Kind of the results.
    of: &'a str,
    /// Version of the program that compared.
    version: &'a str,
    /// The machine of each side.
    machines: Vec<&'a MeasuredMachine>,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Compares the results. Exit code 1 if one is shown to be slower than the first.
pub fn run(arguments: arguments::Compare) -> Result<ExitCode> {
    let results = arguments.files.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    let names = names(&arguments.files);
    let kind = one_kind(&names, &results)?;
    let files: Vec<report::ComparedResult<'_>> = names
        .iter()
        .zip(&results)
        .map(|(name, results)| report::ComparedResult {
            name,
            machine: &results.machine,
            runs: &results.runs,
        })
        .collect();
    let sides: Vec<ComparedSide<'_>> = files.iter().map(report::ComparedResult::side).collect();
    let comparison = tipme_measure::compare(&sides);
    ensure!(!comparison.groups.is_empty(), "nothing to compare: {}", run_names(&files));
    if let Some(path) = &arguments.json {
        write(path, kind, &results, &comparison)?;
    }
    if let Some(folder) = &arguments.svg {
        write_plots(folder, report::plots(kind, &files, &comparison))?;
    }
    print!("{}", report::text(kind, &files, &comparison));
    Ok(ExitCode::from(u8::from(comparison.shows_slower())))
}

/// Returns file names if they are distinct, else whole paths.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned())
        .collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    if distinct.len() == names.len() {
        return names;
    }
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// Returns the common kind of all results.
fn one_kind<'a>(names: &[String], results: &'a [Results]) -> Result<&'a str> {
    let kind = results.first().map_or("", |first| first.kind.as_str());
    if let Some((name, other)) = names.iter().zip(results).find(|(_, one)| one.kind != kind) {
        let first = names.first().map_or("", String::as_str);
        bail!(
            "cannot compare {first} with {name}: one is of tipme {kind}, the other of tipme {}; \
             measure both the same way",
            other.kind
        );
    }
    Ok(kind)
}

/// Lists the names of each result's runs, for results without a common name.
fn run_names(files: &[report::ComparedResult<'_>]) -> String {
    let mut lists = Vec::new();
    for file in files {
        let mut names: Vec<&str> = file.runs.iter().map(|run| run.name.as_str()).collect();
        names.dedup();
        let (few, more) = names.split_at(names.len().min(5));
        let few: Vec<String> = few.iter().map(|name| format!("{name:?}")).collect();
        let few = if few.is_empty() { "none".to_owned() } else { few.join(", ") };
        let dots = if more.is_empty() { "" } else { ", …" };
        lists.push(format!("the runs of {} are {few}{dots}", file.name));
    }
    lists.join("; ")
}

fn write(path: &Path, kind: &str, results: &[Results], comparison: &Comparison) -> Result<()> {
    let written = WrittenComparison {
        schema: SCHEMA,
        kind: KIND,
        of: kind,
        version: env!("CARGO_PKG_VERSION"),
        machines: results.iter().map(|one| &one.machine).collect(),
        comparison,
    };
    write_json(path, &written, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_different_names() {
        let paths = ["a/one.json", "b/two.json", "b/one.json"].map(PathBuf::from);
        assert_eq!(names(&paths[..2]), ["one.json", "two.json"]);
        assert_eq!(names(&paths), ["a/one.json", "b/two.json", "b/one.json"]);
    }
}
