// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of a result of `tipme measure` or `tipme bench`.

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use tipme_measure::Document;
use tipme_measure::timer::TimerDetails;
use tipme_report::measure::{self, MeasureDocument};
use tipme_report::{ResultsPage, comparison, results, single, timer};

/// Text and plots of a result.
type KeyFigure = (String, Vec<String>);

/// Returns `true` if a path names a result instead of an incident.
pub fn is_result(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json") && path.is_file()
}

/// Returns the page of the result in a file.
pub fn page(path: &Path) -> Result<String> {
    let read = tipme_command::results::read(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let (text, plots) = match read.kind.as_str() {
        "measure" => measured(path)?,
        "timer" => timed(path)?,
        _ => (single::text(&read.runs), single::plots(&read.machine, &read.runs)),
    };
    let title = format!("{}: {name}", comparison::command(&read.kind));
    Ok(results(&ResultsPage { title: &title, machine: &read.machine, text: &text, plots: &plots }))
}

fn measured(path: &Path) -> Result<KeyFigure> {
    let result: MeasureDocument = document(path)?;
    Ok((
        measure::text(&result),
        measure::figures(&result).into_iter().map(|(_, svg)| svg).collect(),
    ))
}

fn timed(path: &Path) -> Result<KeyFigure> {
    let result: Document<TimerDetails> = document(path)?;
    Ok((timer::text(&result), timer::plots(&result).into_iter().map(|(_, svg)| svg).collect()))
}

fn document<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_reader(BufReader::new(file)).with_context(|| {
        format!(
            "{} is damaged, or was written by another version of tipme; measure again",
            path.display()
        )
    })
}
