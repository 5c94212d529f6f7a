// SPDX-License-Identifier: MIT OR Apache-2.0
//! Public items of a library are used outside of it. Others are `pub(crate)` or unused.
//!
//! Checks functions, methods and constants, by name alone. Types are left to the compiler (its lint
//! `unreachable_pub`, which each library enables), since a type can be used without being named.

use crate::source::flat;
use crate::tree::{Source, expect_none, root, rust};
use std::collections::BTreeSet;
use std::path::Path;

/// Keywords that may be between `pub` and the item's own keyword.
const QUALIFIERS: [&str; 3] = ["unsafe", "async", "const"];

/// A file with its public items, each with its line, and all its words.
struct Read<'a> {
    source: &'a Source,
    public: Vec<(String, usize)>,
    words: BTreeSet<String>,
}

impl Read<'_> {
    fn of(source: &Source) -> Read<'_> {
        let tokens =
            flat(source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", source.at(1))));
        let public = public(&tokens);
        Read { source, public, words: tokens.into_iter().map(|(word, _)| word).collect() }
    }
}

fn read(sources: &[Source]) -> Vec<Read<'_>> {
    sources.iter().map(Read::of).collect()
}

/// Returns `true` for a library's own sources; its tests and its programs are outside users.
fn is_of(source: &Source, library: &str) -> bool {
    let sources = Path::new("crates").join(library).join("src");
    source.path.starts_with(&sources) && !source.path.starts_with(sources.join("bin"))
}

/// Returns the public functions and constants of a file, with their lines.
fn public(tokens: &[(String, usize)]) -> Vec<(String, usize)> {
    let begins = (0..tokens.len()).filter(|at| tokens[*at].0 == "pub");
    begins.filter_map(|at| public_name(&tokens[at + 1..])).collect()
}

/// Returns the name declared behind `pub`.
fn public_name(tokens: &[(String, usize)]) -> Option<(String, usize)> {
    let qualifiers =
        tokens.iter().take_while(|(word, _)| QUALIFIERS.contains(&word.as_str())).count();
    let is_function = tokens.get(qualifiers).is_some_and(|(word, _)| word == "fn");
    let is_constant = ["const", "static"].contains(&tokens.first()?.0.as_str()) && qualifiers < 2;
    let at = if is_function { qualifiers + 1 } else { 1 };
    let (name, line) = tokens.get(at)?;
    let named = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    ((is_function || is_constant) && named).then(|| (name.clone(), *line))
}

/// Returns the public items of a library with names that nothing outside of it uses.
fn unnamed(library: &str, files: &[Read<'_>]) -> Vec<String> {
    let (own, others): (Vec<&Read>, Vec<&Read>) =
        files.iter().partition(|file| is_of(file.source, library));
    let mut unnamed = Vec::new();
    for file in own {
        for (name, line) in &file.public {
            if !others.iter().any(|other| other.words.contains(name)) {
                unnamed.push(format!("{} {name}", file.source.at(*line)));
            }
        }
    }
    unnamed
}

fn libraries() -> Vec<String> {
    let listed = std::fs::read_dir(root().join("crates")).expect("the crates are there").flatten();
    let libraries = listed.filter(|entry| entry.path().join("src/lib.rs").is_file());
    libraries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn nothing_is_public_that_nobody_outside_names() {
    let sources = rust();
    let files = read(&sources);
    let unnamed = libraries().into_iter().flat_map(|library| unnamed(&library, &files));
    expect_none(unnamed.collect(), "public, and not named outside");
}

#[test]
fn each_library_has_the_compiler_look_for_types() {
    let without = libraries().into_iter().filter(|library| {
        let root = crate::tree::text(&format!("crates/{library}/src/lib.rs"));
        !root.contains("#![warn(unreachable_pub)]")
    });
    expect_none(without.collect(), "the lint unreachable_pub is not on");
}

#[test]
fn a_planted_public_item_is_found() {
    let library = "pub const A: u8 = 1;\npub(crate) fn b() {}\npub const fn c() {}\n\
                   pub struct D;\nimpl D { pub fn e() {} }";
    let mut sources = Source::planted(
        "crates",
        &[("x/src/lib.rs", library), ("y/src/main.rs", "fn main() { x::c() }")],
    );
    assert_eq!(
        unnamed("x", &read(&sources)),
        ["crates/x/src/lib.rs:1 A", "crates/x/src/lib.rs:5 e"]
    );
    let user = ("x/tests/a.rs", "use x::{A, D};\nfn f() { D::e(A) }");
    sources.extend(Source::planted("crates", &[user]));
    assert_eq!(unnamed("x", &read(&sources)), [""; 0]);
}
