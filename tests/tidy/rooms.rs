// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rooms of the analysis: arrows point to earlier rooms only, and never in a circle.
//!
//! An arrow is a path that begins with `crate`, `self`, `super` or a child module, wherever it stands: imports,
//! expressions, macros, tests. So is a call of a method that one file gives to another file's type, as in
//! `recording.burst(tid, at)`: no import tells of it. Such a method is known by its name, and left out where several
//! files have a function of that name.

use crate::tree::{Source, expect_none, rust};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const SOURCES: &str = "crates/analysis/src";

/// The rooms in their order. Each may use those before it.
const ROOMS: [&str; 6] = ["decode", "timeline", "join", "explain", "verdict", "scene"];
/// Modules of the crate's root that all rooms may use. The root itself uses all and is used by none.
const GROUND: [&str; 2] = ["error", "model"];

/// One module uses another; both by their names from the root on.
struct Arrow {
    from: Vec<String>,
    to: Vec<String>,
    /// The file and line.
    at: String,
}

/// A file as a module.
struct Module {
    names: Vec<String>,
    source: Source,
}

impl Module {
    fn new(source: Source) -> Option<Module> {
        let path = source.path.strip_prefix(SOURCES).ok()?.with_extension("");
        let names = path.iter().map(|part| part.to_string_lossy().into_owned());
        Some(Module { names: names.filter(|name| name != "mod" && name != "lib").collect(), source })
    }

    fn tokens(&self) -> TokenStream {
        self.source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", self.source.path.display()))
    }

    fn syntax(&self) -> syn::File {
        syn::parse_file(&self.source.text).unwrap_or_else(|error| panic!("{}: {error}", self.source.path.display()))
    }
}

/// All paths in tokens, each with its line, from the root on where `scope` is the module that they stand in.
#[derive(Default)]
struct Paths {
    known: BTreeSet<Vec<String>>,
    found: Vec<(Vec<String>, usize)>,
}

impl Paths {
    fn scan(&mut self, tokens: TokenStream, scope: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if let Some((name, content)) = inline_module(&tokens[at..]) {
                self.scan(content, &[scope, &[name]].concat());
                at += 3;
                continue;
            }
            match token {
                TokenTree::Ident(first) if !is_joint(&tokens[..at]) => {
                    let line = first.span().start().line;
                    let (paths, next) = read_path(&tokens, at, &[]);
                    let whole: Vec<_> = paths.iter().filter_map(|path| self.absolute(path, scope)).collect();
                    self.found.extend(whole.into_iter().map(|path| (path, line)));
                    at = next;
                }
                TokenTree::Group(group) => {
                    self.scan(group.stream(), scope);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// A path from the root on; `None` where it leads out of the crate or is none of modules.
    fn absolute(&self, path: &[String], scope: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first().filter(|(_, rest)| !rest.is_empty())?;
        let up = path.iter().take_while(|name| *name == "super").count();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([scope, rest].concat()),
            "super" => Some([&scope[..scope.len().checked_sub(up)?], &path[up..]].concat()),
            _ => Some([scope, path].concat())
                .filter(|whole| self.known.iter().any(|name| name.starts_with(&whole[..=scope.len()]))),
        }
    }
}

/// The name and content of `mod name { … }`.
fn inline_module(tokens: &[TokenTree]) -> Option<(String, TokenStream)> {
    match tokens {
        [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(group), ..] if *word == "mod" => {
            Some((name.to_string(), group.stream()))
        }
        _ => None,
    }
}

/// Whether tokens end in `::`, so that what follows is not a path's begin.
fn is_joint(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ':');
    tokens.len() >= 2 && tokens[tokens.len() - 2..].iter().all(is_colon)
}

/// The paths that begin with a name, which are several where they end in braces, and where the tokens go on.
fn read_path(tokens: &[TokenTree], at: usize, before: &[String]) -> (Vec<Vec<String>>, usize) {
    let path = [before, &[tokens[at].to_string()]].concat();
    let next = at + 3;
    match tokens.get(next) {
        _ if !is_joint(&tokens[..tokens.len().min(next)]) => (vec![path], at + 1),
        Some(TokenTree::Ident(_)) => read_path(tokens, next, &path),
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let content: Vec<TokenTree> = group.stream().into_iter().collect();
            let parts = content.split(|token| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ','));
            let parts = parts.filter(|part| !part.is_empty());
            (parts.flat_map(|part| read_path(part, 0, &path).0).collect(), next + 1)
        }
        // A glob, or arguments of a type.
        _ => (vec![[path, vec!["*".to_owned()]].concat()], next),
    }
}

/// What every module uses, itself apart.
fn arrows(modules: &[Module]) -> Vec<Arrow> {
    let known: BTreeSet<Vec<String>> = modules.iter().map(|module| module.names.clone()).collect();
    let given = given_methods(modules);
    let mut arrows = Vec::new();
    for module in modules {
        let mut paths = Paths { known: known.clone(), ..Paths::default() };
        paths.scan(module.tokens(), &module.names);
        let used = paths.found.into_iter().map(|(path, line)| (owner(&known, path), line));
        let mut calls = Vec::new();
        method_calls(module.tokens(), &mut calls);
        let called = calls.into_iter().filter_map(|(name, line)| Some((given.get(&name)?.clone(), line)));
        let others = used.chain(called).filter(|(to, _)| *to != module.names);
        arrows.extend(others.map(|(to, line)| Arrow { from: module.names.clone(), to, at: module.source.at(line) }));
    }
    arrows
}

/// The module that a path leads into.
fn owner(known: &BTreeSet<Vec<String>>, mut path: Vec<String>) -> Vec<String> {
    while !known.contains(&path) && path.pop().is_some() {}
    path
}

/// Methods that a module gives to a type which another one declares, by name.
fn given_methods(modules: &[Module]) -> BTreeMap<String, Vec<String>> {
    let mut types: BTreeMap<String, &Vec<String>> = BTreeMap::new();
    let mut methods: Vec<(String, String, &Vec<String>)> = Vec::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for module in modules {
        for item in module.syntax().items {
            match item {
                syn::Item::Struct(item) => drop(types.insert(item.ident.to_string(), &module.names)),
                syn::Item::Enum(item) => drop(types.insert(item.ident.to_string(), &module.names)),
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
    let given = methods
        .into_iter()
        .filter(|(of, name, by)| times.get(name) == Some(&1) && types.get(of).is_some_and(|declared| declared != by));
    given.map(|(_, name, by)| (name, by.clone())).collect()
}

fn type_name(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map_or(String::new(), |last| last.ident.to_string()),
        _ => String::new(),
    }
}

fn method_names(item: &syn::ItemImpl) -> Vec<String> {
    let name = |item: &syn::ImplItem| match item {
        syn::ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
        _ => None,
    };
    item.items.iter().filter_map(name).collect()
}

/// Names behind a dot and before a parenthesis, with their lines.
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

/// The place of a module in the order: the ground, then the rooms, then the root.
fn rank(names: &[String]) -> Option<usize> {
    let Some(first) = names.first() else { return Some(ROOMS.len() + 1) };
    let room = ROOMS.iter().position(|room| room == first).map(|index| index + 1);
    room.or(GROUND.contains(&first.as_str()).then_some(0))
}

fn text(names: &[String]) -> String {
    if names.is_empty() { "the root".to_owned() } else { names.join("::") }
}

/// Arrows into a later room.
fn upward(arrows: &[Arrow]) -> Vec<String> {
    let up = arrows.iter().filter(|arrow| rank(&arrow.to) > rank(&arrow.from));
    up.map(|arrow| format!("{} {} -> {}", arrow.at, text(&arrow.from), text(&arrow.to))).collect()
}

/// One circle of arrows, where there is any: each use of the next module on the way round.
fn circle(arrows: &[Arrow]) -> Vec<String> {
    let mut left: Vec<&Arrow> = arrows.iter().collect();
    loop {
        // Whoever uses nobody that is left lies on no circle.
        let users: BTreeSet<&Vec<String>> = left.iter().map(|arrow| &arrow.from).collect();
        let before = left.len();
        left.retain(|arrow| users.contains(&arrow.to));
        if left.len() == before {
            break;
        }
    }
    let mut way: Vec<&Arrow> = left.first().copied().into_iter().collect();
    while let Some(next) = way.last().and_then(|last| left.iter().find(|arrow| arrow.from == last.to)) {
        if let Some(begin) = way.iter().position(|arrow| arrow.from == next.from) {
            way.drain(..begin);
            break;
        }
        way.push(next);
    }
    way.iter().map(|arrow| format!("{} {} -> {}", arrow.at, text(&arrow.from), text(&arrow.to))).collect()
}

fn analysis() -> Vec<Module> {
    let modules: Vec<Module> = rust().into_iter().filter_map(Module::new).collect();
    assert!(modules.len() > 20, "the analysis was not found in {SOURCES}");
    modules
}

#[test]
fn every_module_of_the_analysis_stands_in_a_room() {
    let modules = analysis();
    let outside = modules.iter().filter(|module| rank(&module.names).is_none());
    expect_none(outside.map(|module| module.source.at(1)).collect(), "a module stands in none of the rooms");
}

#[test]
fn no_room_of_the_analysis_uses_a_later_one() {
    expect_none(upward(&arrows(&analysis())), "a room uses a later one");
}

#[test]
fn the_analysis_has_no_import_circle() {
    expect_none(circle(&arrows(&analysis())), "modules use each other in a circle");
}

/// Arrows of files that exist in this test only.
fn planted(files: &[(&str, &str)]) -> Vec<Arrow> {
    let source =
        |(path, text): &(&str, &str)| Source { path: PathBuf::from(SOURCES).join(path), text: (*text).to_owned() };
    let modules: Vec<Module> = files.iter().map(source).filter_map(Module::new).collect();
    arrows(&modules)
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
        assert_eq!(found, ["crates/analysis/src/decode/bytes.rs:1 decode::bytes -> verdict::steps"], "{text}");
    }
    let earlier = planted(&[("verdict/steps.rs", "use crate::decode::bytes;"), ("decode/bytes.rs", "use std::fmt;")]);
    assert!(upward(&earlier).is_empty() && earlier.len() == 1);
}

#[test]
fn planted_ways_around_imports_are_found() {
    let root = planted(&[("lib.rs", "pub use verdict::steps::Step;"), ("verdict/steps.rs", "use crate::Step;")]);
    assert_eq!((upward(&root).len(), circle(&root).len()), (1, 2));
    let exported = [("join/mod.rs", "pub mod work;\npub use work::Work;"), ("join/work.rs", "use super::Work;")];
    assert_eq!(circle(&planted(&exported)).len(), 2);
    let given = [
        ("timeline/recording.rs", "pub struct Recording;"),
        ("join/work.rs", "use crate::timeline::recording::Recording;\nimpl Recording { pub fn works(&self) {} }"),
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
    let place = |name| format!("crates/analysis/src/join/{name}.rs:1");
    let mut found = circle(&planted(&files));
    found.sort();
    let expected = [("a", "b"), ("b", "c"), ("c", "a")].map(|(x, y)| format!("{} join::{x} -> join::{y}", place(x)));
    assert_eq!(found, expected);
    assert!(circle(&planted(&files[1..])).is_empty());
}
