// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options with values, names and descriptions defined by a library.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parses one of these values by name; the help describes each.
pub fn choice<T: Copy + Send + Sync + 'static>(
    all: impl IntoIterator<Item = T>,
    name: fn(T) -> &'static str,
    about: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let all: Vec<T> = all.into_iter().collect();
    let values = all
        .iter()
        .map(|one| PossibleValue::new(name(*one)).help(about(*one).trim_end_matches('.')));
    let values = PossibleValuesParser::new(values);
    values.try_map(move |chosen| {
        all.iter().copied().find(|one| name(*one) == chosen).ok_or("not known")
    })
}
