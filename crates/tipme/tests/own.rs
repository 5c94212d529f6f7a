// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations of users on their own incidents, and refusals for those of others. Needs root.
#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that fails")]

mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::{Recording, files, tipme};

/// Users without an account.
const ANN: u32 = 4242;
const BOB: u32 = 4343;

fn run(uid: u32, dir: &Path, arguments: &[&str]) -> Output {
    tipme().args(arguments).arg("--state-dir").arg(dir).uid(uid).gid(uid).output().unwrap()
}

fn mark(uid: u32, dir: &Path) -> PathBuf {
    let output = run(uid, dir, &["mark"]);
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

#[test]
fn owners_remove_and_pin_their_own_and_nobody_elses() {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let users = ["--allow-user", "4242", "--allow-user", "4343"];
    let mut recording =
        Recording::start_in(dir, &[&["--display", "none", "--memory", "16M"][..], &users].concat());
    let dir = recording.dir.path().to_owned();
    let path = mark(ANN, &dir);
    let (name, id) = (path.to_str().unwrap(), path.file_stem().unwrap().to_str().unwrap());
    for verb in ["rm", "pin", "unpin"] {
        let refused = run(BOB, &dir, &["incidents", verb, name]);
        let why = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && why.contains("belongs to another user"),
            "{verb}: {why}"
        );
    }
    let pins = || files(&recording.incidents(), ".pin").len();
    assert!(run(ANN, &dir, &["incidents", "pin", name]).status.success());
    assert_eq!(pins(), 1);
    assert!(run(ANN, &dir, &["incidents", "unpin", id]).status.success());
    assert_eq!(pins(), 0);
    assert!(run(ANN, &dir, &["incidents", "rm", id]).status.success());
    assert!(!path.exists());
    let gone = run(ANN, &dir, &["incidents", "rm", id]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("see: tipme incidents"));

    let path = mark(ANN, &dir);
    recording.kill();
    let name = path.to_str().unwrap();
    let alone = run(ANN, &dir, &["incidents", "rm", name]);
    assert!(String::from_utf8_lossy(&alone.stderr).contains("start one with"), "{alone:?}");
    assert!(run(0, &dir, &["incidents", "rm", name]).status.success());
    assert!(!path.exists());
}

#[test]
fn who_marks_often_loses_only_own_incidents() {
    let dir = tempfile::TempDir::new().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let options = ["--allow-user", "4242", "--allow-user", "4343", "--max-user-incidents", "2"];
    let recording = Recording::start_in(
        dir,
        &[&["--display", "none", "--memory", "16M"][..], &options].concat(),
    );
    let dir = recording.dir.path().to_owned();
    let bobs = mark(BOB, &dir);
    let anns: Vec<PathBuf> = (0..4).map(|_| mark(ANN, &dir)).collect();
    let there: Vec<bool> = anns.iter().map(|path| path.exists()).collect();
    assert_eq!((there, bobs.exists()), (vec![false, false, true, true], true));
}
