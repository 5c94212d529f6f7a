// SPDX-License-Identifier: MIT OR Apache-2.0
//! No crate has an import circle: its modules can be read one after the other, each after those
//! that it uses.
//!
//! A module is a file below `src`. It uses another one if a path in it leads there: in an import,
//! an expression, a type or a macro, by `crate`, `self`, `super` or the name of a child. The file
//! that declares the named item counts, so a re-exported name (`pub use child::Thing`) leads to its
//! origin. A declaration (`mod child;`) is no use by itself; neither is a re-export, unless the
//! file uses that name itself. A parent is a module like any other: a child that uses it closes a
//! circle if it uses the child. Items for tests (`#[cfg(test)]`) and method calls, which need no
//! import, do not count here; `rooms` counts those too, in the analysis.

use crate::imports::{Arrow, Module, circles, imports};
use crate::tree::{Source, expect_none, root, rust};
use std::collections::BTreeSet;

/// Returns the arrows of all circles of a crate, given the folder of its sources.
fn found(sources: &str, files: Vec<Source>) -> Vec<String> {
    let modules: Vec<Module> =
        files.into_iter().filter_map(|source| Module::new(sources, source)).collect();
    let mut arrows = imports(&modules);
    arrows.retain(|arrow| !arrow.test);
    circles(&arrows).into_iter().map(Arrow::text).collect()
}

/// Returns the source folders of all crates.
fn crates() -> BTreeSet<String> {
    let listed = std::fs::read_dir(root().join("crates")).expect("the crates are there").flatten();
    let names: BTreeSet<String> =
        listed.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() > 10, "the crates were not found");
    names
}

fn circles_of(name: &str) -> Vec<String> {
    let of_crate = rust().into_iter().filter(|source| source.crate_name() == Some(name));
    found(&format!("crates/{name}/src"), of_crate.collect())
}

#[test]
fn no_crate_has_an_import_circle() {
    let found = crates().iter().flat_map(|name| circles_of(name)).collect();
    expect_none(found, "modules use each other in a circle");
}

/// Returns the findings in files that exist only in this test.
fn planted(files: &[(&str, &str)]) -> Vec<String> {
    found("src", Source::planted("src", files))
}

#[test]
fn a_planted_circle_is_found() {
    let beside = planted(&[
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "fn f() { crate::a::f() }"),
        ("c.rs", "use crate::a;"),
    ]);
    assert_eq!(beside, ["src/a.rs:1 a -> b", "src/b.rs:1 b -> a"]);
    let parent = planted(&[
        ("a.rs", "mod b;\nuse b::B;\npub struct A;"),
        ("a/b.rs", "use super::A;\npub struct B;"),
    ]);
    assert_eq!(parent, ["src/a.rs:2 a -> a::b", "src/a/b.rs:1 a::b -> a"]);
    let passed_on = planted(&[
        ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B as Other;"),
        ("a.rs", "use crate::Other;\npub struct A;"),
        ("b.rs", "use crate::A;\npub struct B;"),
    ]);
    assert_eq!(passed_on, ["src/a.rs:1 a -> b", "src/b.rs:1 b -> a"]);
    let used = planted(&[
        ("a.rs", "pub use b::B;\npub struct A(B);\nmod b;"),
        ("a/b.rs", "use super::A;\npub struct B;"),
    ]);
    assert_eq!(used.len(), 2);
}

#[test]
fn what_is_no_use_closes_no_circle() {
    let declared = [
        ("a.rs", "mod b;\npub use b::B;\npub struct A;"),
        ("a/b.rs", "use super::A;\npub struct B;"),
    ];
    assert_eq!(planted(&declared), [""; 0]);
    let siblings = [
        ("a.rs", "mod b;\nmod c;\nuse b::B;"),
        ("a/b.rs", "use super::c::C;"),
        ("a/c.rs", "pub struct C;"),
    ];
    assert_eq!(planted(&siblings), [""; 0]);
    let tests =
        [("a.rs", "#[cfg(test)]\nmod tests { use crate::b::B; }"), ("b.rs", "use crate::a::A;")];
    assert_eq!(planted(&tests), [""; 0]);
    let scope = [("a.rs", "use crate::a::b::B;"), ("a/b.rs", "pub(in crate::a) struct B;")];
    assert_eq!(planted(&scope), [""; 0]);
}
