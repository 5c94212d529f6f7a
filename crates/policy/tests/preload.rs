// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are remembered, and the order in which they are read ahead.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tipme_policy::preload::{FILES_MAX, FileHistory, PATH_BYTES_MAX, PROGRAMS_MAX, RememberedFile};

const MANY: u64 = 1 << 40;

fn file(path: &str, bytes: u64) -> RememberedFile {
    RememberedFile { path: path.to_owned(), bytes, changed_s: 7 }
}

fn files(paths: &[&str]) -> Vec<RememberedFile> {
    paths.iter().map(|path| file(path, 10)).collect()
}

/// Returns the paths of a plan by program.
fn paths(plan: &[Vec<RememberedFile>]) -> Vec<Vec<&str>> {
    plan.iter().map(|files| files.iter().map(|file| file.path.as_str()).collect()).collect()
}

#[test]
fn files_of_the_latest_program_come_first_each_once() {
    let mut history = FileHistory::default();
    history.remember("mail", files(&["/bin/mail", "/lib/c", "/lib/ssl"]));
    history.remember("edit", files(&["/bin/edit", "/lib/c"]));
    history.remember("browse", files(&["/bin/browse", "/lib/ssl"]));
    let expected =
        [vec!["/bin/browse", "/lib/ssl"], vec!["/bin/edit", "/lib/c"], vec!["/bin/mail"]];
    assert_eq!(paths(&history.plan(MANY)), expected);
    history.remember("mail", files(&["/bin/mail", "/lib/c", "/lib/ssl"]));
    assert_eq!(
        paths(&history.plan(MANY))[0],
        ["/bin/mail", "/lib/c", "/lib/ssl"],
        "it was used again"
    );
}

#[test]
fn newly_mapped_files_replace_earlier_ones() {
    let mut history = FileHistory::default();
    history.remember("edit", files(&["/bin/edit", "/lib/old"]));
    history.remember("edit", files(&["/bin/edit", "/lib/new", "/lib/new"]));
    history.remember("edit", Vec::new());
    assert_eq!(
        paths(&history.plan(MANY)),
        [["/bin/edit", "/lib/new"]],
        "a program that has ended has no files"
    );
}

#[test]
fn a_program_that_does_not_fit_is_left_out_as_a_whole() {
    let mut history = FileHistory::default();
    history.remember("small", vec![file("/bin/small", 10), file("/lib/c", 30)]);
    history.remember("big", vec![file("/bin/big", 60), file("/lib/c", 30)]);
    assert_eq!(paths(&history.plan(100)), [vec!["/bin/big", "/lib/c"], vec!["/bin/small"]]);
    assert_eq!(paths(&history.plan(89)), [["/bin/small", "/lib/c"]]);
    assert!(history.plan(5).is_empty());
}

#[test]
fn the_bounds_of_the_files_hold() {
    let mut history = FileHistory::default();
    let many: Vec<RememberedFile> =
        (0..FILES_MAX + 9).map(|number| file(&format!("/lib/{number}"), 1)).collect();
    history.remember("many", many);
    assert_eq!(history.plan(MANY)[0].len(), FILES_MAX);
    let long = format!("/{}", "x".repeat(PATH_BYTES_MAX));
    history.remember(
        "odd",
        vec![file(&long, 1), file("lib/relative", 1), file("/lib/empty", 0), file("/lib/c", 1)],
    );
    assert_eq!(paths(&history.plan(MANY))[0], ["/lib/c"]);
    for number in 0..PROGRAMS_MAX {
        history.remember(&format!("p{number}"), files(&[&format!("/bin/p{number}")]));
    }
    let plan = history.plan(MANY);
    assert_eq!(
        (plan.len(), paths(&plan)[0][0]),
        (PROGRAMS_MAX, "/bin/p15"),
        "those used longest ago were dropped"
    );
}

#[test]
fn a_strange_history_of_files_keeps_the_bounds() {
    let files_of_600: Vec<Value> = (0..600)
        .map(|number| json!({"path": format!("/f{number}"), "bytes": u64::MAX, "changed_s": -9}))
        .collect();
    let programs: serde_json::Map<String, Value> = (0..40)
        .map(|turn| (format!("p{turn}"), json!({"files": files_of_600, "turn": turn})))
        .collect();
    let written = json!({"programs": programs, "turn": u64::MAX});
    let mut history: FileHistory = serde_json::from_value(written).unwrap();
    assert!(history.plan(u64::MAX - 1).is_empty(), "more bytes than there are fit nowhere");
    history.remember("edit", files(&["/bin/edit"]));
    let written = serde_json::to_string(&history).unwrap();
    assert_eq!(serde_json::from_str::<FileHistory>(&written).unwrap(), history);
    assert_eq!(written.matches("\"files\"").count(), PROGRAMS_MAX);
    assert_eq!(serde_json::from_str::<FileHistory>("{}").unwrap(), FileHistory::default());
    assert!(serde_json::from_str::<FileHistory>("{\"programs\":7}").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_has_each_file_once_and_keeps_the_bytes(
        uses in vec((0u8..20, vec((0u8..30, 1u64..100), 0..12)), 0..40),
        bytes_max in 0u64..1_500,
    ) {
        let mut history = FileHistory::default();
        for (program, used) in &uses {
            let files = used.iter().map(|(number, bytes)| file(&format!("/f{number}"), *bytes));
            history.remember(&program.to_string(), files.collect());
        }
        let plan = history.plan(bytes_max);
        let all: Vec<&RememberedFile> = plan.iter().flatten().collect();
        let distinct: BTreeSet<&str> = all.iter().map(|file| file.path.as_str()).collect();
        prop_assert_eq!(distinct.len(), all.len());
        prop_assert!(all.iter().map(|file| file.bytes).sum::<u64>() <= bytes_max);
        prop_assert!(plan.len() <= PROGRAMS_MAX);
    }
}
