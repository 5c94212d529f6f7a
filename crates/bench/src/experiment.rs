// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a benchmark is: options, a measurement, its figures, and what is told of them.
//!
//! Each has a folder of its name. Its options are read from the command line by the type that measures. What was
//! measured has one type, from which the document is written, its schema is made, and the table and plots are drawn: so
//! a number cannot differ between them. What measures needs a [`BenchDriver`], which is the machine itself or, in tests, one
//! that only pretends.

use crate::driver::BenchDriver;
use anyhow::Result;
use clap::Args;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use tipme_measure::{Document, Run};

/// A benchmark, as it is asked for.
pub trait Experiment: Args {
    /// The verb; also the kind of the document, and the name of its plot.
    const NAME: &'static str;
    /// The classes of the events in its runs.
    const CLASSES: &'static [&'static str];
    /// Whether its document is written for people to read, too; else as one line.
    const INDENTED: bool = true;
    /// What only its document has.
    type Figures: Serialize + JsonSchema;

    /// Measures. Everything that was started has ended when it returns; an error says what cannot be measured, and why.
    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<Self::Figures>>;

    /// For people: what was measured, under which conditions, and a table.
    fn text(document: &Document<Self::Figures>) -> String;

    /// SVG images, each with the name of its file.
    fn plots(document: &Document<Self::Figures>) -> Vec<(String, String)>;

    /// 0 where what was measured is fine, 1 where it is not.
    fn exit_code(_document: &Document<Self::Figures>) -> u8 {
        0
    }

    /// Where its document goes, and into which folder its plots go.
    fn files(&self) -> (Option<&Path>, Option<&Path>);

    /// How often all of it is measured; of several, each has files of its own.
    fn repeats(&self) -> usize {
        1
    }
}

/// What came of it: the repeats with all their events, and the figures.
pub struct MeasuredRepeats<F> {
    pub runs: Vec<Run>,
    pub figures: F,
}

/// What the document of a benchmark looks like.
pub fn schema<E: Experiment>() -> Schema {
    result_schema::<E::Figures>(E::NAME, E::CLASSES)
}

/// What a result of this kind looks like, with the classes of its events.
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

/// Options as they are read from a command line.
#[cfg(test)]
pub(crate) fn parsed<E: Args>(words: &str) -> E {
    let command = E::augment_args(clap::Command::new("test").no_binary_name(true));
    let matches = command.try_get_matches_from(words.split_whitespace()).expect("these are options");
    E::from_arg_matches(&matches).expect("these are options")
}
