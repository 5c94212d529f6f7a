// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds and reads the files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Crates of pure functions, without I/O.
pub const PURE: [&str; 5] = ["record", "analysis", "measure", "report", "policy"];

/// A source file.
#[derive(Clone)]
pub struct Source {
    /// Path relative to the workspace.
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    /// Returns files that exist only in a test of a rule.
    pub fn planted(folder: &str, files: &[(&str, &str)]) -> Vec<Source> {
        let files = files.iter();
        files
            .map(|(path, text)| Source {
                path: Path::new(folder).join(path),
                text: (*text).to_owned(),
            })
            .collect()
    }

    /// Position for messages.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// Directory name of the crate, if the file belongs to one.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates").ok()?.iter().next()?.to_str()
    }

    /// Returns `true` if the file is in a directory of tests, so that all of it is test code.
    pub fn is_test(&self) -> bool {
        self.path.iter().any(|part| part == "tests" || part == "fuzz")
    }

    pub fn has_ending(&self, endings: &[&str]) -> bool {
        self.path
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| endings.contains(&ending))
    }
}

/// Returns the workspace's directory, or another tree that `scripts/count-code` inspects.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let own = own.expect("this package lies in the workspace");
    std::env::var_os("TIPME_TREE").map_or(own.to_owned(), PathBuf::from)
}

/// Returns the text of a file that must exist.
pub fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns all source files: Rust, C, scripts, build rules.
pub fn sources() -> Vec<Source> {
    static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(read_sources);
    SOURCES.clone()
}

fn read_sources() -> Vec<Source> {
    let mut paths = Vec::new();
    for dir in ["crates", "tests", "fuzz", "scripts", "debian", ".ci"] {
        collect(&root().join(dir), &mut paths);
    }
    paths.push(root().join("Makefile"));
    paths.sort();
    let mut sources: Vec<Source> = paths.into_iter().filter_map(read).collect();
    sources.retain(|source| source.has_ending(&["rs", "c", "h", "py"]) || is_script(source));
    assert!(sources.len() > 20, "the source files were not found");
    sources
}

/// Returns the Markdown documents, except the change log.
pub fn documents() -> Vec<Source> {
    let mut paths = Vec::new();
    for dir in ["docs", "crates", "tests", "fuzz", "scripts", "debian"] {
        collect(&root().join(dir), &mut paths);
    }
    let top = fs::read_dir(root()).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.extend(top.filter(|path| path.is_file()));
    let mut documents: Vec<Source> = paths.into_iter().filter_map(read).collect();
    documents.retain(|source| source.has_ending(&["md"]) && !source.path.ends_with("CHANGELOG.md"));
    documents
}

/// Returns the Rust files among [`sources`].
pub fn rust() -> Vec<Source> {
    sources().into_iter().filter(|source| source.has_ending(&["rs"])).collect()
}

/// Fails with a list of the findings, if there are any.
pub fn expect_none(found: Vec<String>, rule: &str) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

fn is_script(source: &Source) -> bool {
    source.text.starts_with("#!") || source.path == Path::new("Makefile")
}

fn read(path: PathBuf) -> Option<Source> {
    // Files that are not text are not source files.
    let text = fs::read_to_string(&path).ok()?;
    Some(Source { path: path.strip_prefix(root()).ok()?.to_owned(), text })
}

fn collect(dir: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let built =
            ["target", "corpus", "artifacts", "snapshots"].iter().any(|name| path.ends_with(name));
        if path.is_dir() && !built {
            collect(&path, paths);
        } else if path.is_file() {
            paths.push(path);
        }
    }
}
