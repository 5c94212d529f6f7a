// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about the contents of the Rust files, parsed as syntax.

use crate::tree::{PURE, Source, expect_none, rust};
use proc_macro2::{Span, TokenStream, TokenTree};
use std::sync::LazyLock;
use syn::spanned::Spanned;
use syn::visit::Visit;

const MAX_FUNCTION_LINES: usize = 70;
/// Limits over all functions together.
const MEDIAN_LINES: usize = 8;
const NINTH_DECILE_LINES: usize = 30;

/// Paths that reach outside the process or read a clock, including random numbers without a seed.
const OUTSIDE: [&str; 12] = [
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::time::Instant",
    "std::time::SystemTime",
    "fastrand",
];
/// Exceptions that are only values.
const VALUES: [&str; 5] = [
    "std::net::IpAddr",
    "std::net::Ipv4Addr",
    "std::net::Ipv6Addr",
    "std::net::SocketAddr",
    "fastrand::Rng",
];
/// Files and folders of `bench` that draw tables and plots.
const DRAWN_BY: [&str; 3] = ["table.rs", "table", "chart.rs"];
/// Macros that print.
const PRINTERS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];

/// Findings of a walk over one file.
#[derive(Default)]
struct Finds {
    /// Name, first line and number of lines of each function.
    functions: Vec<(String, usize, usize)>,
    /// Paths, with `use` trees expanded.
    paths: Vec<(String, usize)>,
    macros: Vec<(String, usize)>,
    unwraps: Vec<usize>,
    ignored: Vec<usize>,
    glob_exports: Vec<usize>,
    /// Nesting depth in test code.
    in_tests: usize,
}

fn walk(source: &Source) -> Finds {
    let file = syn::parse_file(&source.text)
        .unwrap_or_else(|error| panic!("{}: {error}", source.path.display()));
    let mut finds = Finds { in_tests: usize::from(source.is_test()), ..Finds::default() };
    finds.visit_file(&file);
    finds
}

fn line(span: Span) -> usize {
    span.start().line
}

impl Finds {
    fn function(&mut self, name: &syn::Ident, span: Span, block: &syn::Block) {
        let (first, last) = (line(span), block.span().end().line);
        self.functions.push((name.to_string(), first, last + 1 - first));
    }

    /// Returns `true` if paths, macros and unwraps are recorded here.
    fn counts(&self) -> bool {
        self.in_tests == 0
    }

    fn attributes(&mut self, attributes: &[syn::Attribute]) -> bool {
        let ignored = attributes.iter().filter(|one| one.path().is_ident("ignore"));
        self.ignored.extend(ignored.map(|one| line(one.span())));
        attributes.iter().any(|one| {
            one.path().is_ident("test") || one.path().is_ident("cfg") && names_test(&one.meta)
        })
    }

    fn within(&mut self, test: bool, visit: impl FnOnce(&mut Self)) {
        self.in_tests += usize::from(test);
        visit(self);
        self.in_tests -= usize::from(test);
    }

    fn use_tree(&mut self, prefix: &str, tree: &syn::UseTree) {
        let at = line(tree.span());
        match tree {
            syn::UseTree::Path(path) => self.use_tree(&joined(prefix, &path.ident), &path.tree),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.use_tree(prefix, tree))
            }
            syn::UseTree::Name(name) => self.paths.push((joined(prefix, &name.ident), at)),
            syn::UseTree::Rename(rename) => self.paths.push((joined(prefix, &rename.ident), at)),
            syn::UseTree::Glob(_) => self.paths.push((prefix.to_owned(), at)),
        }
    }

    /// Scans a macro's arguments, which are not parsed as syntax.
    fn tokens(&mut self, tokens: TokenStream) {
        let text: Vec<(String, usize)> = flat(tokens);
        for window in text.windows(3) {
            if window[0].0 == "." && window[1].0 == "unwrap" && window[2].0 == "(" && self.counts()
            {
                self.unwraps.push(window[1].1);
            }
        }
    }
}

fn joined(prefix: &str, name: &syn::Ident) -> String {
    if prefix.is_empty() { name.to_string() } else { format!("{prefix}::{name}") }
}

fn names_test(meta: &syn::Meta) -> bool {
    matches!(meta, syn::Meta::List(list) if list.tokens.to_string() == "test")
}

/// Flattens tokens, with the opening delimiter of each group.
pub fn flat(tokens: TokenStream) -> Vec<(String, usize)> {
    let mut out = Vec::new();
    for token in tokens {
        let at = line(token.span());
        match token {
            TokenTree::Group(group) => {
                let open = if group.delimiter() == proc_macro2::Delimiter::Parenthesis {
                    "("
                } else {
                    "{"
                };
                out.push((open.into(), at));
                out.extend(flat(group.stream()));
            }
            other => out.push((other.to_string(), at)),
        }
    }
    out
}

fn ends_in_glob(tree: &syn::UseTree) -> bool {
    match tree {
        syn::UseTree::Path(path) => ends_in_glob(&path.tree),
        syn::UseTree::Group(group) => group.items.iter().any(ends_in_glob),
        syn::UseTree::Glob(_) => true,
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finds {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident, item.sig.span(), &item.block);
        let test = self.attributes(&item.attrs);
        self.within(test, |finds| syn::visit::visit_item_fn(finds, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, item.sig.span(), &item.block);
        let test = self.attributes(&item.attrs);
        self.within(test, |finds| syn::visit::visit_impl_item_fn(finds, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig.ident, item.sig.span(), block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let test = self.attributes(&item.attrs);
        self.within(test, |finds| syn::visit::visit_item_mod(finds, item));
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, syn::Visibility::Public(_)) && ends_in_glob(&item.tree) {
            self.glob_exports.push(line(item.span()));
        }
        if self.counts() {
            self.use_tree("", &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if self.counts() {
            let names: Vec<String> =
                path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.paths.push((names.join("::"), line(path.span())));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        if let Some(name) = item.path.segments.last().filter(|_| self.counts()) {
            self.macros.push((name.ident.to_string(), line(item.span())));
        }
        self.tokens(item.tokens.clone());
        syn::visit::visit_macro(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if call.method == "unwrap" && self.counts() {
            self.unwraps.push(line(call.method.span()));
        }
        syn::visit::visit_expr_method_call(self, call);
    }
}

/// Returns all Rust files with the findings in each.
fn walks() -> &'static [(Source, Finds)] {
    static WALKS: LazyLock<Vec<(Source, Finds)>> = LazyLock::new(|| {
        let sources = rust().into_iter();
        sources.map(|source| (source.clone(), walk(&source))).collect()
    });
    &WALKS
}

/// Collects from every Rust file the parts that `find` selects.
fn gather(find: impl Fn(&Finds) -> Vec<(usize, String)>) -> Vec<String> {
    let mut found = Vec::new();
    for (source, finds) in walks() {
        found.extend(find(finds).iter().map(|(at, what)| format!("{} {what}", source.at(*at))));
    }
    found
}

fn bare(lines: &[usize]) -> Vec<(usize, String)> {
    lines.iter().map(|line| (*line, String::new())).collect()
}

#[test]
fn functions_are_short() {
    let long = gather(|finds| {
        let long = finds.functions.iter().filter(|(_, _, lines)| *lines > MAX_FUNCTION_LINES);
        long.map(|(name, at, lines)| (*at, format!("{name} has {lines} lines"))).collect()
    });
    expect_none(long, "functions over 70 lines");
    let mut lengths: Vec<usize> = walks()
        .iter()
        .flat_map(|(_, finds)| &finds.functions)
        .map(|(_, _, lines)| *lines)
        .collect();
    lengths.sort_unstable();
    let count = lengths.len();
    let [median, ninth_decile, longest] =
        [0.5, 0.9, 1.0].map(|share| lengths[((count - 1) as f64 * share) as usize]);
    println!(
        "{count} functions: median {median} lines, 90% within {ninth_decile}, longest {longest}"
    );
    assert!(median <= MEDIAN_LINES, "the median function has {median} lines, over {MEDIAN_LINES}");
    assert!(
        ninth_decile <= NINTH_DECILE_LINES,
        "90% of functions have {ninth_decile} lines, over {NINTH_DECILE_LINES}"
    );
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    expect_none(
        gather(|finds| bare(&finds.unwraps)),
        "say with expect why it cannot fail, or handle it",
    );
}

#[test]
fn no_test_is_ignored() {
    expect_none(gather(|finds| bare(&finds.ignored)), "a test that is not run is no test");
}

#[test]
fn nothing_is_exported_by_glob() {
    expect_none(gather(|finds| bare(&finds.glob_exports)), "name what is exported");
}

/// Returns the files of the pure crates without their tests and build scripts, and the drawing code
/// of the benchmarks.
fn pure_walks() -> impl Iterator<Item = &'static (Source, Finds)> {
    walks().iter().filter(|(source, _)| match source.crate_name() {
        Some("bench") => source.path.iter().any(|name| DRAWN_BY.iter().any(|file| name == *file)),
        Some(name) => PURE.contains(&name) && !source.is_test(),
        None => false,
    })
}

#[test]
fn pure_crates_do_no_io() {
    let mut found = Vec::new();
    for (source, finds) in pure_walks() {
        let paths = finds.paths.iter().filter(|(path, _)| is_outside(path));
        let printers = finds.macros.iter().filter(|(name, _)| PRINTERS.contains(&name.as_str()));
        found.extend(paths.chain(printers).map(|(what, at)| format!("{} {what}", source.at(*at))));
    }
    expect_none(found, "a pure crate reaches outside");
}

fn is_outside(path: &str) -> bool {
    let mut outside = OUTSIDE.iter().filter_map(|name| path.strip_prefix(name));
    outside.any(|rest| rest.is_empty() || rest.starts_with("::"))
        && !VALUES.iter().any(|name| path.starts_with(name))
}

#[test]
fn pure_crates_are_safe() {
    let mut found = Vec::new();
    for (source, _) in pure_walks() {
        let tokens = source.text.parse::<TokenStream>().expect("it was parsed before");
        let unsafes = flat(tokens).into_iter().filter(|(token, _)| token == "unsafe");
        found.extend(unsafes.map(|(_, at)| source.at(at)));
    }
    expect_none(found, "a pure crate is safe throughout");
}
