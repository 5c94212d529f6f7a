// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs of `tipme-lab` called through `tipme`. Needs root to test what root must not run.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use support::said;
use tempfile::TempDir;

/// A user without privileges.
const NOBODY: u32 = 65_534;

/// Prints its arguments and input, and exits as requested.
const STAND_IN: &str = r#"#!/bin/sh
echo "$#: $*"
/bin/cat
case "$2" in
    kill) kill -TERM $$ ;;
    *) exit 7 ;;
esac
"#;

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn stand_in(folder: &Path) {
    let path = folder.join("tipme-lab");
    std::fs::write(&path, STAND_IN).unwrap();
    allow(&path, 0o755);
}

/// Installs `tipme` alone in a folder, with nothing in `PATH`.
fn alone() -> (TempDir, Command) {
    let (folder, program) = support::family::for_everybody(&["tipme"]);
    let mut command = Command::new(program);
    command.env("PATH", "/nonexistent");
    (folder, command)
}

/// Returns the help of these words.
fn help(words: &[&str]) -> (Option<i32>, String) {
    said(support::tipme().args(words).output().unwrap())
}

#[test]
fn help_is_that_of_the_lab_with_the_name_that_was_called() {
    support::lab();
    let (code, text) = help(&["bench", "timer", "--help"]);
    assert!(code == Some(0) && text.contains("Usage: tipme bench timer [OPTIONS]"), "{text}");
    assert_eq!(help(&["help", "bench", "timer"]), (code, text));
    let (code, text) = help(&["--color", "never", "bench"]);
    assert!(code == Some(2) && text.contains("Usage: tipme bench [OPTIONS] <COMMAND>"), "{text}");
    let (code, text) = help(&["--help"]);
    assert!(
        code == Some(0)
            && text.contains("\nLab:\n  demo           See it happen on a private display"),
        "{text}"
    );
}

#[test]
fn words_input_and_exit_code_are_the_labs_own() {
    let (folder, mut command) = alone();
    stand_in(folder.path());
    let mut child = command
        .args(["load", "cpu", "", "a b"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(said(output), (Some(7), "4: load cpu  a b\ntyped\n".to_owned()));
    let (folder, mut command) = alone();
    stand_in(folder.path());
    let killed = command.args(["demo", "kill"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(killed.status.signal(), Some(15));
}

#[test]
fn without_the_lab_the_remedy_is_printed() {
    for words in [&["bench", "timer"][..], &["help", "demo"], &["schema", "selftest"]] {
        let (_folder, mut command) = alone();
        let (code, text) = said(command.args(words).output().unwrap());
        assert!(
            code == Some(2)
                && text.starts_with("tipme: this belongs to tipme-lab, which is not installed"),
            "{text}"
        );
        assert!(text.contains("install the package tipme-lab, or run make install"), "{text}");
    }
}

#[test]
fn the_lab_is_found_in_the_path_too() {
    let elsewhere = TempDir::new().unwrap();
    stand_in(elsewhere.path());
    let (_folder, mut command) = alone();
    command.env("PATH", elsewhere.path()).stdin(Stdio::null());
    assert_eq!(said(command.arg("idle").output().unwrap()), (Some(7), "1: idle\n".to_owned()));
}

#[test]
fn root_runs_no_lab_that_others_may_write() {
    let (folder, mut command) = alone();
    stand_in(folder.path());
    std::os::unix::fs::chown(folder.path().join("tipme-lab"), Some(NOBODY), None).unwrap();
    let (code, text) =
        said(command.args(["bench", "timer"]).stdin(Stdio::null()).output().unwrap());
    assert!(
        code == Some(2)
            && text.contains("is writable by users other than root, so root does not run it"),
        "{text}"
    );
    let own = said(command.uid(NOBODY).gid(NOBODY).output().unwrap());
    assert_eq!(own, (Some(7), "2: bench timer\n".to_owned()));
}
