// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of options: an enum that derives `ValueEnum` has its names and what help tells of them beside its variants.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// A value of an option as it is named on the command line and in results.
pub fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// One of these values, by its name.
pub(crate) fn one_of<T: ValueEnum + Send + Sync + 'static>(values: &'static [T]) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(values.iter().filter_map(ValueEnum::to_possible_value));
    names.try_map(|name| T::from_str(&name, false))
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
