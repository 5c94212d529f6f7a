// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives the analysis version from the sources behind a verdict: a cached verdict is recomputed
//! after any change.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Crates that influence a verdict.
const CRATES: [&str; 4] = ["analysis", "measure", "record", "report"];

fn main() {
    let mut hasher = DefaultHasher::new();
    for name in CRATES {
        let folder = Path::new("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = files(&folder);
        files.sort();
        for file in files {
            file.hash(&mut hasher);
            fs::read(&file).unwrap_or_default().hash(&mut hasher);
        }
    }
    println!("cargo::rustc-env=TIPME_ANALYSIS={:016x}", hasher.finish());
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
