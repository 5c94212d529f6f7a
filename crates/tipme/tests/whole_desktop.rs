// SPDX-License-Identifier: MIT OR Apache-2.0
//! Xfce as a user has it: login, setup, a hitch, the key, the banner and undo, by the lab of whole
//! desktops (tests/desktops). Needs root.

use std::process::Command;
use tempfile::TempDir;

#[test]
fn a_hitch_under_xfce_is_answered_on_its_screen() {
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/desktops/run");
    let kept = TempDir::new().unwrap();
    let mut run = Command::new(lab);
    run.args(["xfce", "--short", "--tipme", env!("CARGO_BIN_EXE_tipme"), "--keep"])
        .arg(kept.path());
    let output = run.output().unwrap();
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success(), "{text}");
}
