// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output of `make papers`: docs/papers. Measures nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above").to_owned()
}

fn python(arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.arg("-B").args(arguments).current_dir(root());
    command.output().expect("python3 is installed; make test-deps")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_document_agrees_with_the_kept_figures_and_tests() {
    let output = python(&["scripts/papers", "--check"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn rows_expressions_and_charts_are_whole() {
    let output = python(&["-m", "unittest", "discover", "-s", "scripts"]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn an_unknown_row_is_refused_with_the_known_ones() {
    let output = python(&["scripts/papers", "--rows", "T99", "--measure", "no"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("no such row: T99; there are T7, T9"), "{}", said(&output));
}
