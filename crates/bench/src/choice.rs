// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parsers for options shared by several verbs. An enum that derives `ValueEnum` has the names and
//! help of its values beside its variants.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Returns the name of an option's value on the command line and in results.
pub fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Formats a figure for a table; `-` if it is missing.
pub(crate) fn number(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.places$}"))
}

/// Parses one of these values by its name.
pub(crate) fn one_of<T: ValueEnum + Send + Sync + 'static>(
    values: &'static [T],
) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(values.iter().filter_map(ValueEnum::to_possible_value));
    names.try_map(|name| T::from_str(&name, false))
}

/// Parses one of these values, or "all". Names and help come from the library that defines the
/// values.
pub(crate) fn one_or_all<T: Sync>(
    all: &'static [T],
    help: fn(&T) -> Option<PossibleValue>,
) -> impl TypedValueParser<Value = &'static [T]> {
    let every = PossibleValue::new("all").help("All of these");
    PossibleValuesParser::new(all.iter().filter_map(help).chain([every])).map(move |name| {
        let one = all.iter().find(|one| help(one).is_some_and(|value| value.matches(&name, false)));
        one.map_or(all, std::slice::from_ref)
    })
}

/// The files that most benchmarks write.
#[derive(Args)]
pub struct ResultFiles {
    /// Write the result as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write plots into this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

impl ResultFiles {
    pub(crate) fn paths(&self) -> (Option<&Path>, Option<&Path>) {
        (self.json.as_deref(), self.svg.as_deref())
    }
}

/// Parses the number of repetitions, from 1 to 100.
pub fn repeats(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| (1..=100).contains(count))
        .ok_or_else(|| "a number from 1 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_have_bounds() {
        assert_eq!(repeats("5"), Ok(5));
        assert!(["0", "101", "-1", "some"].into_iter().all(|text| repeats(text).is_err()));
    }
}
