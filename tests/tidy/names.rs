// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each type and each trait has a unique name, so that a reader need not ask which one is meant.

use crate::source::flat;
use crate::tree::{Source, expect_none, rust};
use std::collections::BTreeMap;
use std::path::Component;

const DECLARE: [&str; 4] = ["struct", "enum", "trait", "union"];

/// Returns the types that a library or program declares, by name, including its macros and unit
/// tests.
fn declared(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| is_looked_at(source)) {
        let tokens =
            flat(source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", source.at(1))));
        for pair in tokens.windows(2) {
            if DECLARE.contains(&pair[0].0.as_str()) && pair[1].0.starts_with(char::is_uppercase) {
                places.entry(pair[1].0.clone()).or_default().push(source.at(pair[1].1));
            }
        }
    }
    places
}

fn is_looked_at(source: &Source) -> bool {
    source.path.components().nth(2) == Some(Component::Normal("src".as_ref()))
}

/// Returns the names that are declared more than once, with their places.
fn repeated(declared: BTreeMap<String, Vec<String>>) -> Vec<String> {
    let several = declared.into_iter().filter(|(_, places)| places.len() > 1);
    several.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

#[test]
fn each_type_has_a_name_of_its_own() {
    let declared = declared(&rust());
    assert!(declared.len() > 500, "the declarations were not found");
    expect_none(repeated(declared), "a name means several things: say which one of them it is");
}

#[test]
fn a_planted_second_meaning_is_found() {
    let first = ("record/src/a.rs", "pub struct Piece;\nenum Other {}");
    let second = "mod tests {\n    trait Piece {}\n}";
    let made = "macro_rules! m { () => { pub enum Other { A } } }";
    for (path, text, found) in [
        (
            "sched/src/b/c.rs",
            second,
            &["Piece: crates/record/src/a.rs:1, crates/sched/src/b/c.rs:2"][..],
        ),
        ("sched/tests/c.rs", second, &[]),
        ("record/src/m.rs", made, &["Other: crates/record/src/a.rs:2, crates/record/src/m.rs:1"]),
    ] {
        assert_eq!(repeated(declared(&Source::planted("crates", &[first, (path, text)]))), found);
    }
}
