// SPDX-License-Identifier: MIT OR Apache-2.0
//! The walks in ARCHITECTURE.md lead through functions that exist.

use crate::tree::{expect_none, root, text};

/// What stands between backquotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The lines of the walks, with their numbers in the document.
fn steps(document: &str) -> Vec<(usize, &str)> {
    let lines = document.lines().enumerate().skip_while(|(_, line)| *line != "## Three walks").skip(1);
    let lines = lines.take_while(|(_, line)| !line.starts_with("## "));
    let is_step = |line: &str| line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    lines.filter(|(_, line)| is_step(line)).map(|(at, line)| (at + 1, line)).collect()
}

/// What a step names that is not there.
fn missing(step: &str) -> Vec<String> {
    let (mut file, mut found) = (None, Vec::new());
    for name in quoted(step) {
        if name.contains('/') {
            file = std::fs::read_to_string(root().join("crates").join(name)).ok();
            found.extend(file.is_none().then(|| name.to_owned()));
        } else {
            let there = |text: &String| ["fn", "int"].iter().any(|word| text.contains(&format!("{word} {name}(")));
            found.extend((!file.as_ref().is_some_and(there)).then(|| name.to_owned()));
        }
    }
    found
}

#[test]
fn the_walks_lead_through_functions_that_exist() {
    let document = text("ARCHITECTURE.md");
    let steps = steps(&document);
    assert!(steps.len() >= 20, "the walks were not found");
    let lost = steps.iter().flat_map(|(at, step)| missing(step).into_iter().map(move |name| (at, name)));
    let lost = lost.map(|(at, name)| format!("ARCHITECTURE.md:{at}: there is no {name}"));
    expect_none(lost.collect(), "steps that lead nowhere");
}

#[test]
fn a_step_into_nothing_is_found() {
    assert_eq!(missing("1. `store/src/folder.rs` `keep`, `lose`: words"), ["lose"]);
    assert_eq!(missing("1. `store/src/attic.rs` `keep`"), ["store/src/attic.rs", "keep"]);
}
