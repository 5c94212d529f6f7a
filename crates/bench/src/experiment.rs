// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interface of a benchmark: options, a measurement, its figures, and their output.
//!
//! Each benchmark has a folder of its name. The type that measures ([`Experiment`]) reads its
//! options from the command line. One type holds the results ([`BenchFigures`]); the document, its
//! schema, the table and the plots all derive from it, so a number cannot differ between them. A
//! benchmark needs a [`BenchDriver`], which is the machine itself or, in tests, a simulation.

use crate::driver::BenchDriver;
use anyhow::Result;
use clap::Args;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use tipme_measure::{Document, Run};

/// A benchmark with its options.
pub trait Experiment: Args {
    /// Verb of the benchmark; also the kind of the document and the name of its plot.
    const NAME: &'static str;
    /// Classes of the events in its runs.
    const CLASSES: &'static [&'static str];
    /// Indents the document for human readers; otherwise it is one line.
    const INDENTED: bool = true;
    /// Part of the document that is specific to this benchmark.
    type Figures: BenchFigures;

    /// Measures. Everything that it started has ended when it returns. Fails with the reason if the
    /// measurement is not possible.
    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>>;

    /// File of the document, and folder of the plots.
    fn files(&self) -> (Option<&Path>, Option<&Path>);

    /// Number of complete repeats; each of several has files of its own.
    fn repeats(&self) -> usize {
        1
    }
}

/// Figures of a benchmark, and their output as part of a document.
pub trait BenchFigures: Serialize + JsonSchema + Sized {
    /// Returns the results, the conditions and a table as text.
    fn text(document: &Document<Self>) -> String;

    /// Returns SVG images, each with its file name.
    fn plots(_document: &Document<Self>) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns 0 if the results are fine, else 1.
    fn exit_code(_document: &Document<Self>) -> u8 {
        0
    }
}

/// Results of a benchmark: the repeats with all their events, and the figures.
pub struct MeasuredRepeats<F> {
    pub runs: Vec<Run>,
    pub figures: F,
}

/// Schema of the document of a benchmark.
pub fn schema<E: Experiment>() -> Schema {
    result_schema::<E::Figures>(E::NAME, E::CLASSES)
}

/// Schema of a result of this kind, with the classes of its events.
pub fn result_schema<F: JsonSchema>(kind: &str, classes: &[&str]) -> Schema {
    let mut schema = tipme_command::schema::<Document<F>>();
    schema.insert("title".to_owned(), json!(format!("Result of tipme, kind {kind}")));
    let only = [
        ("/properties/kind", json!({ "const": kind })),
        ("/$defs/Events/properties/class", json!({ "enum": classes })),
    ];
    for (member, value) in only {
        if let Some(place) = schema.pointer_mut(member) {
            *place = value;
        }
    }
    schema
}

/// Parses options from a command line.
#[cfg(test)]
pub(crate) fn parsed<E: Args>(words: &str) -> E {
    let command = E::augment_args(clap::Command::new("test").no_binary_name(true));
    let matches =
        command.try_get_matches_from(words.split_whitespace()).expect("these are options");
    E::from_arg_matches(&matches).expect("these are options")
}
