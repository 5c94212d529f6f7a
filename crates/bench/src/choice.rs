// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that several verbs have, and values of options: an enum that derives `ValueEnum` has its names and what help
//! tells of them beside its variants.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// A value of an option as it is named on the command line and in results.
pub fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// One of these values, by its name.
pub(crate) fn one_of<T: ValueEnum + Send + Sync + 'static>(values: &'static [T]) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(values.iter().filter_map(ValueEnum::to_possible_value));
    names.try_map(|name| T::from_str(&name, false))
}

/// One of these values, or all of them; what a value is called and told of stands in the library that has it.
pub(crate) fn one_or_all<T: Sync>(
    all: &'static [T],
    told: fn(&T) -> Option<PossibleValue>,
) -> impl TypedValueParser<Value = &'static [T]> {
    let every = PossibleValue::new("all").help("All of these");
    let find = move |name: String| {
        let one = all.iter().find(|one| told(one).is_some_and(|value| value.matches(&name, false)));
        Ok::<_, Infallible>(one.map_or(all, std::slice::from_ref))
    };
    PossibleValuesParser::new(all.iter().filter_map(told).chain([every])).try_map(find)
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

/// How often something is measured: one to a hundred times.
pub fn repeats(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (1..=100).contains(count)).ok_or_else(|| "a number from 1 to 100".to_owned())
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
