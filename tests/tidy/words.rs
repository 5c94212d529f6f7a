// SPDX-License-Identifier: MIT OR Apache-2.0
//! Banned words, for which the field has its own, each with its replacement. `docs/glossary.md`
//! explains the replacements.

use crate::tree::{Source, expect_none, root, rust, sources};
use proc_macro2::{TokenStream, TokenTree};
use std::path::Path;

/// A word or phrase, its replacement, and words on the same line that allow its ordinary meaning.
type Banned = (&'static str, &'static str, &'static [&'static str]);

/// Banned in names, comments, messages and documents.
const WORDS: [Banned; 51] = [
    ("anew", "again; restarted, rewritten", &[]),
    ("birth", "fork", &[]),
    ("births", "forks", &["rename = \"births\"", "number(\"births\")"]),
    ("comes to its cpu", "run-queue delay", &[]),
    ("crew", "workers", &[]),
    ("dearest", "most favoured", &[]),
    ("deed", "action, operation, order", &[]),
    ("deeds", "actions, operations, orders", &[]),
    ("deputies", "proxies: processes, or connections, that draw for others", &[]),
    ("deputy", "proxy: a process, or connection, that draws for another", &[]),
    ("desk", "desktop, display, test fixture", &["at the desk", "anns-desk", "\"desk\""]),
    ("dice", "random numbers", &[]),
    ("dwelling", "group, placement", &[]),
    ("forsaken", "abandoned", &[]),
    ("glance", "poll interval", &["at a glance"]),
    ("glances", "poll intervals", &[]),
    ("haste", "what is done sooner, or refused as too often", &[]),
    ("hasten", "what is done sooner", &[]),
    ("home wait", "event wait", &[]),
    ("home waits", "event waits", &[]),
    ("impatient", "with a short timeout", &["person who presses Ctrl-C"]),
    ("is no number", "invalid number", &[]),
    ("kin", "descendants, relatives", &[]),
    (
        "lease",
        "helper session",
        &["file", "Its owner may hold a lease on it", "LEASE", "\"no lease: $!\""],
    ),
    ("leases", "helper sessions", &[]),
    ("lender", "helper", &[]),
    ("loan", "helper session, helper client", &[]),
    ("lodger", "process that stays in its group", &[]),
    ("lodging", "fallback group", &[]),
    ("look anew", "begin a call, look again", &[]),
    ("occupancy", "CPU intervals", &[]),
    ("occupant", "owner of a CPU interval", &[]),
    ("occupants", "owners of CPU intervals", &[]),
    ("occupation", "CPU interval", &[]),
    ("occupations", "CPU intervals", &[]),
    ("patience", "timeout", &[]),
    ("patiently", "until the timeout, with retries", &[]),
    ("sheet", "stamp buffer", &["style sheet", "as wide as the sheet"]),
    ("sheets", "stamp buffers", &["style sheets"]),
    ("stranger", "other user, unplaced process, unrelated program", &[]),
    ("strangers", "other users, unplaced processes, unrelated programs", &[]),
    ("sweeper", "cleanup process", &[]),
    ("sweepers", "cleanup processes", &[]),
    ("tenant", "process of a unit", &[]),
    ("tenants", "processes of a unit", &[]),
    ("tenement", "scope or service", &[]),
    ("to its letter", "keystroke-to-echo latency", &[]),
    ("toil", "CPU work", &[]),
    ("witness", "sidecar recorder, bystander", &[]),
    ("yard", "trial site", &[]),
    ("yards", "trial sites", &[]),
];

/// Banned in names only.
const NAMES: [Banned; 6] = [
    ("churn", "spin", &[]),
    ("door", "file, socket", &[]),
    ("hands", "actuator, helper", &[]),
    ("house", "shared state", &[]),
    ("let go", "release, end", &[]),
    ("warmth", "prefetch", &[]),
];

/// Returns the words of a line in lower case, separated and surrounded by single spaces; names are
/// split.
fn words(line: &str) -> String {
    let mut words = String::from(" ");
    let mut before = ' ';
    for letter in line.chars() {
        let inside = letter.is_alphabetic();
        if (!inside || letter.is_uppercase() && before.is_lowercase()) && !words.ends_with(' ') {
            words.push(' ');
        }
        if inside {
            words.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}

/// Returns the banned words of a line, with their replacements.
fn complaints(line: &str, banned: &[Banned]) -> Vec<String> {
    let words = words(line);
    // Few lines contain these letters at all: only those are checked for the word.
    let is_used = |(word, _, ordinary): &&Banned| {
        words.contains(word)
            && words.contains(&format!(" {word} "))
            && !ordinary.iter().any(|meaning| line.contains(meaning))
    };
    banned
        .iter()
        .filter(is_used)
        .map(|(word, instead, _)| format!("\"{word}\": write {instead}"))
        .collect()
}

fn lines_of(source: &Source, banned: &[Banned]) -> Vec<String> {
    let lines = source.text.lines().enumerate();
    lines
        .flat_map(|(at, line)| {
            complaints(line, banned)
                .into_iter()
                .map(move |what| format!("{} {what}", source.at(at + 1)))
        })
        .collect()
}

/// Returns the documents for readers; results stay as they were measured.
fn documents() -> Vec<Source> {
    let listed = std::fs::read_dir(root().join("docs")).expect("there are documents").flatten();
    let paths = listed
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let paths = paths.chain(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
            .map(|name| root().join(name)),
    );
    let read = |path: std::path::PathBuf| Source {
        text: std::fs::read_to_string(&path).expect("it was listed"),
        path: path.strip_prefix(root()).expect("it lies in the workspace").to_owned(),
    };
    paths.map(read).collect()
}

/// Collects the names in a Rust file with their lines, without string literals and comments.
fn names(tokens: TokenStream, found: &mut Vec<(String, usize)>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => names(group.stream(), found),
            TokenTree::Ident(name) => found.push((name.to_string(), name.span().start().line)),
            _ => {}
        }
    }
}

#[test]
fn the_fields_words_are_used() {
    let here = Path::new("tests/tidy/words.rs");
    let all = sources().into_iter().chain(documents()).filter(|source| source.path != here);
    let found = all.flat_map(|source| lines_of(&source, &WORDS)).collect();
    expect_none(found, "words that are not used here; docs/glossary.md has the field's");
}

#[test]
fn names_use_the_fields_words() {
    let mut wrong = Vec::new();
    for source in rust() {
        let mut found = Vec::new();
        names(source.text.parse().expect("it is Rust"), &mut found);
        for (name, at) in found {
            wrong.extend(
                complaints(&name, &NAMES)
                    .into_iter()
                    .map(|what| format!("{} {what}", source.at(at))),
            );
        }
    }
    expect_none(wrong, "names that are not used here; docs/glossary.md has the field's words");
}

#[test]
fn files_are_named_by_the_fields_words() {
    let stem =
        |source: &Source| source.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let complain = |source: &Source| {
        let stem = stem(source).unwrap_or_default();
        complaints(&stem, &WORDS)
            .into_iter()
            .chain(complaints(&stem, &NAMES))
            .map(|what| format!("{} {what}", source.at(1)))
            .collect()
    };
    let found = sources().iter().flat_map(|source| -> Vec<String> { complain(source) }).collect();
    expect_none(found, "names of files");
}

#[test]
fn a_word_is_found_in_names_and_sentences_and_not_in_its_ordinary_meaning() {
    let is_banned = |line: &str| !complaints(line, &WORDS).is_empty();
    assert!(
        is_banned("const READ_PATIENCE: u64 = 1;")
            && is_banned("struct CpuOccupant {")
            && is_banned("/// A stranger.")
    );
    assert!(is_banned("\"x\" is no number") && !is_banned("there is number 3"));
    assert!(!is_banned("/// The verdict at a glance.") && !is_banned("let patient = 1;"));
    assert_eq!(words("fn readsHTML(at: u8)"), " fn reads html at u ");
}
