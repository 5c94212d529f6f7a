// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations of users on their own incidents, and refusals for those of others. Needs root.

use std::path::{Path, PathBuf};
use std::process::Output;
use support::{Recording, files, mark_as, open_folder, tipme_as};

/// Users without an account.
const ANN: u32 = 4242;
const BOB: u32 = 4343;

fn run(uid: u32, dir: &Path, arguments: &[&str]) -> Output {
    tipme_as(uid, dir, arguments).output().unwrap()
}

/// Starts a recorder for both users.
fn record(more: &[&str]) -> Recording {
    let options =
        ["--display", "none", "--memory", "16M", "--allow-user", "4242", "--allow-user", "4343"];
    Recording::start_in(open_folder(), &[&options[..], more].concat())
}

#[test]
fn owners_remove_and_pin_only_their_own() {
    let mut recording = record(&[]);
    let dir = recording.dir.path().to_owned();
    let path = mark_as(ANN, &dir);
    let (name, id) = (path.to_str().unwrap(), path.file_stem().unwrap().to_str().unwrap());
    for verb in ["rm", "pin", "unpin"] {
        let refused = run(BOB, &dir, &["incidents", verb, name]);
        let why = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && why.contains("belongs to another user"),
            "{verb}: {why}"
        );
    }
    for (verb, incident, pins) in [("pin", name, 1), ("unpin", id, 0)] {
        assert!(run(ANN, &dir, &["incidents", verb, incident]).status.success());
        assert_eq!(files(&recording.incidents(), ".pin").len(), pins);
    }
    assert!(run(ANN, &dir, &["incidents", "rm", id]).status.success());
    assert!(!path.exists());
    let gone = run(ANN, &dir, &["incidents", "rm", id]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("see: tipme incidents"));

    let path = mark_as(ANN, &dir);
    recording.kill();
    let name = path.to_str().unwrap();
    let alone = run(ANN, &dir, &["incidents", "rm", name]);
    assert!(String::from_utf8_lossy(&alone.stderr).contains("start one with"), "{alone:?}");
    assert!(run(0, &dir, &["incidents", "rm", name]).status.success());
    assert!(!path.exists());
}

#[test]
fn a_user_that_marks_often_loses_only_own_incidents() {
    let recording = record(&["--max-user-incidents", "2"]);
    let dir = recording.dir.path().to_owned();
    let bobs = mark_as(BOB, &dir);
    let anns: Vec<PathBuf> = (0..4).map(|_| mark_as(ANN, &dir)).collect();
    let there: Vec<bool> = anns.iter().map(|path| path.exists()).collect();
    assert_eq!((there, bobs.exists()), (vec![false, false, true, true], true));
}
