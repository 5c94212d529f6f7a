// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's program, as `tipme` starts it, with `tipme` beside it.
#![allow(dead_code, reason = "each test target uses a part")]

#[path = "../../../tipme/tests/support/family.rs"]
pub mod family;
#[path = "../../../tipme/tests/support/processes.rs"]
pub mod processes;
#[path = "../../../tipme/tests/support/schema.rs"]
pub mod schema;

#[allow(unused_imports, reason = "each test target uses a part")]
pub use processes::{Running, open_folder};

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Returns the number in a field of a JSON object.
pub fn number(object: &Value, field: &str) -> f64 {
    object[field].as_f64().unwrap_or_else(|| panic!("{field} is not a number: {object:#}"))
}

/// Returns the program under test.
pub fn lab() -> Command {
    tipme();
    Command::new(env!("CARGO_BIN_EXE_tipme-lab"))
}

/// Returns the path of `tipme`, which the lab starts: it is in the lab's build folder.
pub fn tipme() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_tipme-lab")).with_file_name("tipme");
    assert!(path.is_file(), "{} is missing; build it first: cargo build -p tipme", path.display());
    path
}

/// Copies the lab and `tipme` to a place readable by all users.
pub fn for_everybody() -> (TempDir, PathBuf) {
    family::for_everybody(&[env!("CARGO_BIN_EXE_tipme-lab").into(), tipme()])
}
