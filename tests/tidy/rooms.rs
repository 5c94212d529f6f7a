// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rooms of the analysis: arrows point to earlier rooms only, and never in a circle.
//!
//! Arrows are those of `imports`, in tests too, and calls of a method that one file adds to another
//! file's type, as in `recording.burst(tid, at)`, which need no import. Such a method is known by
//! its name, and omitted if several files have a function of that name.

use crate::imports::{Arrow, Module, Names, circles, imports};
use crate::tree::{Source, expect_none, rust};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const SOURCES: &str = "crates/analysis/src";

/// The rooms in order. Each may use those before it.
const ROOMS: [&str; 6] = ["decode", "timeline", "join", "explain", "verdict", "scene"];
/// Modules of the crate's root that all rooms may use. The root itself uses all rooms, and none
/// uses it.
const GROUND: [&str; 2] = ["error", "model"];

/// Returns the uses of every module, except of itself.
fn arrows(modules: &[Module]) -> Vec<Arrow> {
    let given = given_methods(modules);
    let mut arrows = imports(modules);
    for module in modules {
        let mut calls = Vec::new();
        method_calls(module.tokens(), &mut calls);
        for (name, line) in calls {
            let to = given.get(&name).filter(|to| **to != module.names);
            arrows.extend(to.map(|to| Arrow {
                from: module.names.clone(),
                to: to.clone(),
                at: module.source.at(line),
                test: false,
            }));
        }
    }
    arrows
}

/// Returns the methods that a module adds to a type of another one, by name.
fn given_methods(modules: &[Module]) -> BTreeMap<String, Names> {
    let mut types: BTreeMap<String, &Names> = BTreeMap::new();
    let mut methods: Vec<(String, String, &Names)> = Vec::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for module in modules {
        for item in module.syntax().items {
            match item {
                syn::Item::Struct(syn::ItemStruct { ident, .. })
                | syn::Item::Enum(syn::ItemEnum { ident, .. }) => {
                    types.insert(ident.to_string(), &module.names);
                }
                syn::Item::Fn(item) => *times.entry(item.sig.ident.to_string()).or_default() += 1,
                syn::Item::Impl(item) => {
                    let (of, named) = (type_name(&item.self_ty), method_names(&item));
                    methods.extend(named.into_iter().map(|name| (of.clone(), name, &module.names)));
                }
                _ => {}
            }
        }
    }
    methods.iter().for_each(|(_, name, _)| *times.entry(name.clone()).or_default() += 1);
    let given = methods.into_iter().filter(|(of, name, by)| {
        times.get(name) == Some(&1) && types.get(of).is_some_and(|declared| declared != by)
    });
    given.map(|(_, name, by)| (name, by.clone())).collect()
}

fn type_name(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => {
            path.path.segments.last().map_or(String::new(), |last| last.ident.to_string())
        }
        _ => String::new(),
    }
}

fn method_names(item: &syn::ItemImpl) -> Vec<String> {
    let names = item.items.iter().filter_map(|item| match item {
        syn::ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
        _ => None,
    });
    names.collect()
}

/// Returns the names between a dot and a parenthesis, with their lines.
fn method_calls(tokens: TokenStream, calls: &mut Vec<(String, usize)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for window in tokens.windows(3) {
        if let [TokenTree::Punct(dot), TokenTree::Ident(name), TokenTree::Group(_)] = window
            && dot.as_char() == '.'
        {
            calls.push((name.to_string(), name.span().start().line));
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            method_calls(group.stream(), calls);
        }
    }
}

/// Returns the rank of a module: the ground, then the rooms, then the root.
fn rank(names: &[String]) -> Option<usize> {
    let Some(first) = names.first() else { return Some(ROOMS.len() + 1) };
    let room = ROOMS.iter().position(|room| room == first).map(|index| index + 1);
    room.or(GROUND.contains(&first.as_str()).then_some(0))
}

/// Returns the arrows into a later room.
fn upward(arrows: &[Arrow]) -> Vec<String> {
    arrows.iter().filter(|arrow| rank(&arrow.to) > rank(&arrow.from)).map(Arrow::text).collect()
}

/// Formats the arrows of all circles.
fn circle_texts(arrows: &[Arrow]) -> Vec<String> {
    circles(arrows).into_iter().map(Arrow::text).collect()
}

fn analysis() -> Vec<Module> {
    let modules: Vec<Module> =
        rust().into_iter().filter_map(|source| Module::new(SOURCES, source)).collect();
    assert!(modules.len() > 20, "the analysis was not found in {SOURCES}");
    modules
}

/// Returns the arrows between all modules of the analysis.
fn own_arrows() -> &'static [Arrow] {
    static ARROWS: LazyLock<Vec<Arrow>> = LazyLock::new(|| arrows(&analysis()));
    &ARROWS
}

#[test]
fn every_module_of_the_analysis_stands_in_a_room() {
    let modules = analysis();
    let outside = modules.iter().filter(|module| rank(&module.names).is_none());
    expect_none(
        outside.map(|module| module.source.at(1)).collect(),
        "a module stands in none of the rooms",
    );
}

#[test]
fn no_room_of_the_analysis_uses_a_later_one() {
    expect_none(upward(own_arrows()), "a room uses a later one");
}

#[test]
fn the_analysis_has_no_import_circle() {
    expect_none(circle_texts(own_arrows()), "modules use each other in a circle");
}

/// Returns the arrows of files that exist only in this test.
fn planted(files: &[(&str, &str)]) -> Vec<Arrow> {
    let sources = Source::planted(SOURCES, files).into_iter();
    arrows(&sources.filter_map(|source| Module::new(SOURCES, source)).collect::<Vec<_>>())
}

#[test]
fn a_planted_arrow_into_a_later_room_is_found() {
    let later = ("verdict/steps.rs", "pub fn steps() {}");
    for text in [
        "use crate::verdict::steps;",
        "use crate::{model, verdict::{steps::{self, *}}};",
        "fn f() { crate::verdict::steps::steps() }",
        "fn f() { println!(\"{}\", g(super::super::verdict::steps::steps())) }",
        "mod tests { use super::super::super::verdict::steps::*; }",
    ] {
        let mut found = upward(&planted(&[later, ("model.rs", ""), ("decode/bytes.rs", text)]));
        found.dedup();
        assert_eq!(
            found,
            ["crates/analysis/src/decode/bytes.rs:1 decode::bytes -> verdict::steps"],
            "{text}"
        );
    }
    let earlier = planted(&[
        ("verdict/steps.rs", "use crate::decode::bytes;"),
        ("decode/bytes.rs", "use std::fmt;"),
    ]);
    assert!(upward(&earlier).is_empty() && earlier.len() == 1);
}

#[test]
fn planted_ways_around_imports_are_found() {
    let bytes = ("decode/bytes.rs", "use crate::Step;");
    let root = [
        ("lib.rs", "pub use verdict::steps::Step;"),
        ("verdict/steps.rs", "pub struct Step;"),
        bytes,
    ];
    assert_eq!(
        upward(&planted(&root)),
        ["crates/analysis/src/decode/bytes.rs:1 decode::bytes -> verdict::steps"]
    );
    let used =
        [("lib.rs", "fn f() { verdict::steps::f() }"), ("verdict/steps.rs", "use crate::run;")];
    assert_eq!((upward(&planted(&used)).len(), circle_texts(&planted(&used)).len()), (1, 2));
    let given = [
        ("timeline/recording.rs", "pub struct Recording;"),
        (
            "join/work.rs",
            "use crate::timeline::recording::Recording;\nimpl Recording { pub fn works(&self) {} }",
        ),
        ("timeline/waits.rs", "fn f(of: &str) { of.works() }"),
    ];
    let found = upward(&planted(&given));
    assert_eq!(found, ["crates/analysis/src/timeline/waits.rs:1 timeline::waits -> join::work"]);
}

#[test]
fn a_planted_circle_is_found_and_named() {
    let files = [
        ("join/a.rs", "use crate::join::b;\nuse crate::decode::d;"),
        ("join/b.rs", "use super::c;"),
        ("join/c.rs", "fn f() { crate::join::a::f() }"),
        ("join/e.rs", "use crate::join::a;"),
        ("decode/d.rs", ""),
    ];
    let mut found = circle_texts(&planted(&files));
    found.sort();
    let expected = [("a", "b"), ("b", "c"), ("c", "a")]
        .map(|(x, y)| format!("crates/analysis/src/join/{x}.rs:1 join::{x} -> join::{y}"));
    assert_eq!(found, expected);
    assert!(circle_texts(&planted(&files[1..])).is_empty());
}
