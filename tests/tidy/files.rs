// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about whole files.

use crate::tree::{expect_none, root, rust, sources, text};

const MAX_FILE_LINES: usize = 600;
const MAX_PYTHON_LINES: usize = 250;
const SPDX: &str = concat!("SPDX-", "License-Identifier: ");
/// Marks of unfinished work, spelled so that this file does not contain them.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// Names that do not describe the contents.
const EMPTY_NAMES: [&str; 7] = ["core", "common", "util", "utils", "misc", "helper", "helpers"];

#[test]
fn files_are_short() {
    let long = sources().into_iter().filter(|source| source.text.lines().count() > MAX_FILE_LINES);
    let list = long.map(|source| source.at(source.text.lines().count())).collect();
    expect_none(list, "files over 600 lines; split them by what they are about");
}

#[test]
fn python_files_are_shorter() {
    let mut python = sources();
    python.retain(|source| {
        let first = source.text.lines().next().unwrap_or_default();
        source.has_ending(&["py"]) || first.contains("python")
    });
    assert!(python.len() > 50, "the Python files were not found");
    let long = python.iter().filter(|source| source.text.lines().count() > MAX_PYTHON_LINES);
    expect_none(
        long.map(|source| source.at(1)).collect(),
        "Python files over 250 lines; a table or Rust is better",
    );
}

#[test]
fn every_file_names_its_licence() {
    let without = sources()
        .into_iter()
        .filter(|source| !source.text.lines().take(2).any(|line| line.contains(SPDX)));
    expect_none(without.map(|source| source.at(1)).collect(), "no SPDX line at the top");
}

#[test]
fn kernel_programs_may_be_linked_with_the_kernel() {
    let programs = sources().into_iter().filter(|source| source.has_ending(&["c"]));
    let wrong =
        programs.filter(|source| !source.text.lines().take(2).any(|line| line.contains("GPL-2.0")));
    expect_none(
        wrong.map(|source| source.at(1)).collect(),
        "kernel programs must be compatible with GPL-2.0",
    );
}

#[test]
fn nothing_is_left_for_later() {
    let mut found = Vec::new();
    for source in sources() {
        for (at, line) in (1..).zip(source.text.lines()) {
            if UNFINISHED.iter().any(|mark| line.contains(mark)) {
                found.push(source.at(at));
            }
        }
    }
    expect_none(found, "marks of unfinished work");
}

/// Such code would never be tested: `make test` does not look for it.
#[test]
fn no_documentation_has_code_that_would_be_a_test() {
    let mut found = Vec::new();
    for source in rust() {
        for (at, line) in (1..).zip(source.text.lines()) {
            let comment = line.trim_start().strip_prefix("//");
            let words = comment.and_then(|comment| comment.strip_prefix(['/', '!']));
            if words.is_some_and(|words| {
                words.starts_with("     ") || words.trim_start().starts_with("```")
            }) {
                found.push(source.at(at));
            }
        }
    }
    expect_none(found, "code in documentation; make it a test of its own");
}

#[test]
fn names_say_what_is_inside() {
    let empty = sources().into_iter().filter(|source| {
        let stem = source.path.file_stem().and_then(|stem| stem.to_str());
        stem.is_some_and(|stem| EMPTY_NAMES.contains(&stem))
    });
    expect_none(empty.map(|source| source.at(1)).collect(), "file names that say nothing");
}

#[test]
fn the_documents_are_there() {
    let documents = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "docs/reference/format.md",
        "docs/internals/analysis.md",
        "docs/reference/glossary.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ];
    let missing = documents.into_iter().filter(|name| !root().join(name).is_file());
    expect_none(missing.map(str::to_owned).collect(), "documents are missing");
}

#[test]
fn the_first_screen_of_the_readme_has_commands() {
    let readme = text("README.md");
    let screen: String = readme.lines().take(40).collect::<Vec<_>>().join("\n");
    let commands = ["make demo", "make test", "sudo target/release/tipme record"];
    for phrase in commands.into_iter().chain(["stalled", "usually"]) {
        assert!(screen.contains(phrase), "the first 40 lines of README.md lack {phrase:?}");
    }
}

#[test]
fn decoders_have_fuzz_targets() {
    let list: String = text("fuzz/src/lib.rs").split_whitespace().collect();
    let targets = [
        "incident",
        "diagnosis",
        "records",
        "recorder",
        "manager",
        "helper",
        "journal",
        "processes",
        "files",
        "baselines",
        "symbols",
        "attention",
        "scripts",
        "reports",
    ];
    let missing =
        targets.into_iter().filter(|target| !list.contains(&format!("target(\"{target}\"")));
    expect_none(missing.map(str::to_owned).collect(), "decoders without a fuzz target");
}
