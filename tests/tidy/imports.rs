// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uses between the modules of a crate. A module is a file.
//!
//! An arrow is a path that begins with `crate`, `self`, `super` or a child module, anywhere: in
//! imports, expressions, macros and tests. It leads to the file that declares the named item;
//! re-exports such as `pub use child::Thing` are followed. So a re-export is no arrow of its own,
//! unless the file uses that name itself; neither is a declaration, `mod child;`.

use crate::tree::Source;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// A module's path from the root of its crate; empty for the root.
pub type Names = Vec<String>;

/// A use of one module by another.
pub struct Arrow {
    pub from: Names,
    pub to: Names,
    /// File and line.
    pub at: String,
    /// In code that is built for tests only.
    pub test: bool,
}

impl Arrow {
    pub fn text(&self) -> String {
        let text =
            |names: &Names| if names.is_empty() { "the root".to_owned() } else { names.join("::") };
        format!("{} {} -> {}", self.at, text(&self.from), text(&self.to))
    }
}

/// A file as a module.
pub struct Module {
    pub names: Names,
    pub source: Source,
}

impl Module {
    /// Returns `None` if the file is not part of the library or command below `sources`.
    pub fn new(sources: &str, source: Source) -> Option<Module> {
        let path = source.path.strip_prefix(sources).ok()?.with_extension("");
        let names = path.iter().map(|part| part.to_string_lossy().into_owned());
        let names: Names =
            names.filter(|name| !["mod", "lib", "main"].contains(&name.as_str())).collect();
        // Each of those is a crate of its own.
        (names.first().is_none_or(|name| name != "bin")).then_some(Module { names, source })
    }

    pub fn tokens(&self) -> TokenStream {
        self.source
            .text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", self.source.path.display()))
    }

    pub fn syntax(&self) -> syn::File {
        syn::parse_file(&self.source.text)
            .unwrap_or_else(|error| panic!("{}: {error}", self.source.path.display()))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// In an expression or a type.
    Use,
    Import,
    /// An import that others can use.
    Export,
}

/// A path in a file, and the name that an import gives to its target.
#[derive(Clone)]
struct Path {
    names: Names,
    called: String,
    kind: Kind,
    line: usize,
    /// Not inside an inline module.
    outermost: bool,
    test: bool,
}

/// All paths of a module from the root on, and the names that it uses outside of imports.
struct Paths<'a> {
    module: &'a [String],
    known: &'a BTreeSet<Names>,
    found: Vec<Path>,
    mentioned: BTreeSet<String>,
    /// The scan is in code that is built for tests only.
    in_tests: bool,
}

impl Paths<'_> {
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
                TokenTree::Punct(_) if !self.in_tests && for_tests(&tokens[at..]) => {
                    let end = at + 2 + item(&tokens[at + 2..]);
                    self.in_tests = true;
                    self.scan(tokens[at + 2..end].iter().cloned().collect(), scope);
                    self.in_tests = false;
                    at = end;
                }
                TokenTree::Ident(word) if *word == "mod" => at += 2,
                TokenTree::Ident(word) if *word == "pub" => {
                    at += 1 + usize::from(is_scope(tokens.get(at + 1)))
                }
                TokenTree::Ident(_) if is_joint(&tokens[..at]) => at += 1,
                TokenTree::Ident(first) => {
                    let kind = kind(&tokens, at);
                    at += usize::from(kind != Kind::Use);
                    let (paths, next) = read_path(&tokens, at, &[]);
                    if kind == Kind::Use && !self.in_tests && !is_member(&tokens[..at]) {
                        self.mentioned.insert(first.to_string());
                    }
                    self.note(paths, kind, first.span().start().line, scope);
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

    fn note(&mut self, paths: Vec<(Names, String)>, kind: Kind, line: usize, scope: &[String]) {
        let (outermost, test) = (scope == self.module, self.in_tests);
        for (path, called) in paths {
            let names = self.absolute(&path, scope);
            self.found.extend(names.map(|names| Path {
                names,
                called,
                kind,
                line,
                outermost,
                test,
            }));
        }
    }

    /// Returns a path from the root on; `None` if it leads out of the crate or names no modules.
    fn absolute(&self, path: &[String], scope: &[String]) -> Option<Names> {
        let (first, rest) = path.split_first().filter(|(_, rest)| !rest.is_empty())?;
        let up = path.iter().take_while(|name| *name == "super").count();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([scope, rest].concat()),
            "super" => Some([&scope[..scope.len().checked_sub(up)?], &path[up..]].concat()),
            _ => Some([scope, path].concat()).filter(|whole| {
                self.known.iter().any(|name| name.starts_with(&whole[..=scope.len()]))
            }),
        }
    }
}

/// Returns `true` if an item begins here that is built for tests only.
fn for_tests(tokens: &[TokenTree]) -> bool {
    match tokens {
        [TokenTree::Punct(sign), TokenTree::Group(group), ..] if sign.as_char() == '#' => {
            group.stream().to_string().replace(' ', "") == "cfg(test)"
        }
        _ => false,
    }
}

/// Returns the length of an item in tokens: to its semicolon or its braces.
fn item(tokens: &[TokenTree]) -> usize {
    let end = tokens.iter().position(|token| match token {
        TokenTree::Punct(sign) => sign.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    });
    end.map_or(tokens.len(), |at| at + 1)
}

/// Returns `true` for a visibility scope, as in `pub(in crate::a)`, which is no use.
fn is_scope(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else { return false };
    let first = group.stream().into_iter().next().map(|first| first.to_string());
    group.delimiter() == Delimiter::Parenthesis
        && first.is_some_and(|first| ["in", "crate", "super", "self"].contains(&first.as_str()))
}

/// Returns the kind of the path that begins here: an import begins with the word `use`.
fn kind(tokens: &[TokenTree], at: usize) -> Kind {
    match &tokens[at..] {
        [TokenTree::Ident(word), TokenTree::Ident(_), ..] if *word == "use" => {}
        _ => return Kind::Use,
    }
    match &tokens[..at] {
        [.., TokenTree::Ident(word)] | [.., TokenTree::Ident(word), TokenTree::Group(_)]
            if *word == "pub" =>
        {
            Kind::Export
        }
        _ => Kind::Import,
    }
}

/// Returns `true` if the tokens end in a dot or in `fn`, so that the name of a method, field or
/// function follows.
fn is_member(tokens: &[TokenTree]) -> bool {
    match tokens.last() {
        Some(TokenTree::Punct(sign)) => sign.as_char() == '.',
        Some(TokenTree::Ident(word)) => *word == "fn",
        _ => false,
    }
}

/// Returns name and content of `mod name { … }`.
fn inline_module(tokens: &[TokenTree]) -> Option<(String, TokenStream)> {
    match tokens {
        [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(group), ..]
            if *word == "mod" =>
        {
            Some((name.to_string(), group.stream()))
        }
        _ => None,
    }
}

/// Returns `true` if the tokens end in `::`, so that no path begins behind them.
fn is_joint(tokens: &[TokenTree]) -> bool {
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ':');
    tokens.len() >= 2 && tokens[tokens.len() - 2..].iter().all(is_colon)
}

/// Returns the paths that begin with a name, several if they end in braces, each with its local
/// name, and the position of the next token.
fn read_path(tokens: &[TokenTree], at: usize, before: &[String]) -> (Vec<(Names, String)>, usize) {
    // In braces `self` is the module before them.
    let own = before.last().filter(|_| tokens[at].to_string() == "self");
    let name = own.cloned().unwrap_or_else(|| tokens[at].to_string());
    let path = if own.is_some() {
        before.to_vec()
    } else {
        [before, std::slice::from_ref(&name)].concat()
    };
    let next = at + 3;
    match tokens.get(next) {
        _ if !is_joint(&tokens[..tokens.len().min(next)]) => {
            let called = renamed(&tokens[at..]);
            let end = at + if called.is_some() { 3 } else { 1 };
            (vec![(path, called.unwrap_or(name))], end)
        }
        Some(TokenTree::Ident(_)) => read_path(tokens, next, &path),
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let content: Vec<TokenTree> = group.stream().into_iter().collect();
            let parts = content
                .split(|token| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ','));
            let parts = parts.filter(|part| !part.is_empty());
            (parts.flat_map(|part| read_path(part, 0, &path).0).collect(), next + 1)
        }
        // A glob, or arguments of a type.
        _ => (vec![([path, vec!["*".to_owned()]].concat(), "*".to_owned())], next),
    }
}

/// Returns the name behind `as`.
fn renamed(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [_, TokenTree::Ident(word), TokenTree::Ident(name), ..] if *word == "as" => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// Returns the uses of every module, except of itself.
pub fn imports(modules: &[Module]) -> Vec<Arrow> {
    let known: BTreeSet<Names> = modules.iter().map(|module| module.names.clone()).collect();
    let mut read: Vec<(Vec<Path>, BTreeSet<String>)> = Vec::new();
    for module in modules {
        let (found, mentioned) = (Vec::new(), BTreeSet::new());
        let mut paths =
            Paths { module: &module.names, known: &known, found, mentioned, in_tests: false };
        paths.scan(module.tokens(), &module.names);
        read.push((paths.found, paths.mentioned));
    }
    let mut given = BTreeMap::new();
    for (module, (paths, _)) in modules.iter().zip(&read) {
        let imports = paths.iter().filter(|path| path.kind != Kind::Use && path.outermost);
        given.extend(
            imports.map(|path| ((module.names.clone(), path.called.clone()), path.names.clone())),
        );
    }
    let mut arrows = Vec::new();
    for (module, (paths, mentioned)) in modules.iter().zip(read) {
        for path in paths {
            let counts = path.kind != Kind::Export || mentioned.contains(&path.called);
            let (from, to) = (module.names.clone(), declares(&known, &given, path.names));
            if counts && from != to {
                arrows.push(Arrow { from, to, at: module.source.at(path.line), test: path.test });
            }
        }
    }
    arrows
}

/// Returns the module that declares the target of a path, through re-exports on the way.
fn declares(
    known: &BTreeSet<Names>,
    given: &BTreeMap<(Names, String), Names>,
    mut path: Names,
) -> Names {
    // Imports of one name by another end; the bound is for code that does not compile.
    for _ in 0..8 {
        let owner = owner(known, path.clone());
        let Some(name) = path.get(owner.len()) else { break };
        let Some(target) = given.get(&(owner.clone(), name.clone())) else { break };
        path = [target.as_slice(), &path[owner.len() + 1..]].concat();
    }
    owner(known, path)
}

/// Returns the module into which a path leads.
fn owner(known: &BTreeSet<Names>, mut path: Names) -> Names {
    while !known.contains(&path) && path.pop().is_some() {}
    path
}

/// Returns the arrows between modules that use each other, directly or indirectly: those of all
/// circles.
pub fn circles(arrows: &[Arrow]) -> Vec<&Arrow> {
    let mut next: BTreeMap<&Names, BTreeSet<&Names>> = BTreeMap::new();
    for arrow in arrows {
        next.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    arrows.iter().filter(|arrow| reaches(&next, &arrow.to, &arrow.from)).collect()
}

fn reaches(next: &BTreeMap<&Names, BTreeSet<&Names>>, from: &Names, to: &Names) -> bool {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        let used = next.get(module).into_iter().flatten();
        left.extend(used.filter(|module| seen.insert(**module)));
    }
    seen.contains(to)
}
