// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failing output and special files: neither is ignored silently, and no verb blocks forever.

use std::fs::File;
use std::process::{Command, Output, Stdio};

fn tipme() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tipme"));
    command.stdin(Stdio::null());
    command
}

fn refused(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(why), "{said}");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    for words in [&["schema", "verdict"][..], &["diagnose", "--explain", "stopped"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = tipme()
            .args(words)
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        refused(&output, "cannot write the standard output: No space left on device");
    }
}

#[test]
fn a_reader_that_is_gone_is_no_error() {
    let mut child = tipme()
        .args(["schema", "verdict"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn a_pipe_is_no_incident_and_does_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let copied = tipme().arg("scrub").args([&pipe, &folder.path().join("copy")]).output().unwrap();
    refused(&copied, "it is not a regular file");
    let copied = tipme().args(["scrub", "/dev/zero", "/nonexistent/copy"]).output().unwrap();
    refused(&copied, "it is not a regular file");
}
