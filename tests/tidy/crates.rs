// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dependencies between crates.

use crate::tree::{PURE, expect_none, root, text};
use serde_json::Value;
use std::process::Command;

/// Crates of this workspace that each crate may use, besides `record`. The command, `tipme`, may
/// use all that are not [`LAB`].
const EDGES: [(&str, &[&str]); 17] = [
    ("record", &[]),
    ("measure", &[]),
    ("confine", &[]),
    ("control", &["measure"]),
    ("policy", &[]),
    ("store", &[]),
    ("kernel", &[]),
    ("desktop", &[]),
    ("analysis", &["measure"]),
    ("report", &["analysis", "measure"]),
    ("bench", &["analysis", "command", "control", "desktop", "measure", "report", "store"]),
    ("command", &["measure", "report", "store"]),
    ("lab", &["analysis", "bench", "command", "control", "desktop", "measure", "report"]),
    ("sched", &["policy"]),
    ("manager", &["policy", "sched", "desktop", "control", "confine", "measure"]),
    ("recorder", &["store", "kernel", "desktop", "control", "confine", "measure"]),
    (
        "fuzz",
        &[
            "analysis", "bench", "control", "desktop", "manager", "measure", "recorder", "report",
            "sched", "store",
        ],
    ),
];

/// Crates that stress the machine, which root does not install on users' machines.
const LAB: [&str; 2] = ["bench", "lab"];

/// External crates that only these crates may use.
const OWNED: [(&str, &[&str]); 7] = [
    ("libbpf-rs", &["kernel"]),
    ("libbpf-cargo", &["kernel"]),
    ("x11rb", &["desktop"]),
    ("wayland-client", &["desktop"]),
    ("zbus", &["desktop", "sched"]),
    ("zstd", &["store"]),
    ("seccompiler", &["confine"]),
];

/// External crates that do no I/O by themselves, so that the pure crates may use them.
const PURE_OUTSIDE: [&str; 13] = [
    "anstyle",
    "base64",
    "fastrand",
    "jiff",
    "maud",
    "schemars",
    "serde",
    "serde_json",
    "sha2",
    "syscalls",
    "textwrap",
    "thiserror",
    "zerocopy",
];

/// A declared dependency: from one crate to another, and `true` if it is for tests only.
struct Edge {
    from: String,
    to: String,
    dev: bool,
}

fn edges() -> Vec<Edge> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output =
        Command::new(cargo).args(arguments).current_dir(root()).output().expect("cargo can be run");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    packages.iter().flat_map(package_edges).collect()
}

fn package_edges(package: &Value) -> Vec<Edge> {
    let dependencies = package["dependencies"].as_array().expect("there is a list");
    let edges = dependencies.iter().map(|dependency| Edge {
        from: name(package),
        to: name(dependency),
        dev: dependency["kind"] == "dev" || package["name"] == "tipme-test-support",
    });
    edges.collect()
}

fn name(value: &Value) -> String {
    value["name"].as_str().expect("it has a name").to_owned()
}

/// Returns the directory name of a crate of this workspace; `None` for others and for the command.
fn inner(package: &str) -> Option<&str> {
    package.strip_prefix("tipme-")
}

#[test]
fn arrows_point_one_way() {
    let wrong = edges().into_iter().filter(|edge| !edge.dev).filter(|edge| {
        let (Some(from), Some(to)) = (inner(&edge.from), inner(&edge.to)) else { return false };
        let known = EDGES.iter().find(|(name, _)| *name == from);
        !known.is_some_and(|(_, allowed)| allowed.contains(&to) || to == "record")
    });
    expect_none(
        wrong.map(|edge| format!("{} -> {}", edge.from, edge.to)).collect(),
        "a crate uses one it may not use",
    );
}

#[test]
fn nothing_depends_on_the_programs() {
    let wrong =
        edges().into_iter().filter(|edge| ["tipme", "tipme-lab"].contains(&edge.to.as_str()));
    expect_none(wrong.map(|edge| edge.from).collect(), "a program is not a library");
}

#[test]
fn the_command_holds_neither_loads_nor_faults() {
    let edges = edges().into_iter().filter(|edge| edge.from == "tipme" && !edge.dev);
    let wrong = edges.filter(|edge| inner(&edge.to).is_some_and(|to| LAB.contains(&to)));
    expect_none(wrong.map(|edge| edge.to).collect(), "it belongs into tipme-lab");
}

#[test]
fn each_mechanism_has_one_owner() {
    let wrong = edges().into_iter().filter(|edge| !edge.dev).filter(|edge| {
        let owners = OWNED.iter().find(|(name, _)| *name == edge.to).map(|(_, owners)| owners);
        owners.is_some_and(|owners| !inner(&edge.from).is_some_and(|from| owners.contains(&from)))
    });
    expect_none(
        wrong.map(|edge| format!("{} -> {}", edge.from, edge.to)).collect(),
        "another crate owns this",
    );
}

#[test]
fn every_library_of_these_rules_is_used() {
    let used: Vec<String> = edges().into_iter().map(|edge| edge.to).collect();
    let named = OWNED.iter().map(|(name, _)| *name).chain(PURE_OUTSIDE);
    let unused = named.filter(|name| !used.iter().any(|other| other == name));
    expect_none(unused.map(str::to_owned).collect(), "a rule names a library that nothing uses");
}

#[test]
fn pure_crates_use_pure_crates() {
    let wrong = edges().into_iter().filter(|edge| {
        let pure = inner(&edge.from).is_some_and(|from| PURE.contains(&from));
        let fit = inner(&edge.to).is_some() || PURE_OUTSIDE.contains(&edge.to.as_str());
        pure && !edge.dev && !fit
    });
    expect_none(
        wrong.map(|edge| format!("{} -> {}", edge.from, edge.to)).collect(),
        "not known to be free of I/O",
    );
}

/// Returns the manifests of all packages of the workspace.
fn manifests() -> Vec<(String, String)> {
    let crates = std::fs::read_dir(root().join("crates")).expect("the crates are there").flatten();
    let names = crates.map(|entry| format!("crates/{}/Cargo.toml", entry.file_name().display()));
    let paths =
        names.chain(["tests", "tests/support", "fuzz"].map(|dir| format!("{dir}/Cargo.toml")));
    paths.map(|path| (text(&path), path)).map(|(text, path)| (path, text)).collect()
}

#[test]
fn lints_and_versions_stand_in_one_place() {
    let mut wrong = Vec::new();
    for (path, manifest) in manifests() {
        if !manifest.contains("[lints]\nworkspace = true") {
            wrong.push(format!("{path}: the workspace's lints are not on"));
        }
        for key in ["version", "edition", "license", "rust-version"] {
            if !manifest.contains(&format!("\n{key}.workspace = true")) {
                wrong.push(format!("{path}: {key} is not the workspace's"));
            }
        }
        let own =
            manifest.lines().filter(|line| line.contains("version = \"") || line.contains("= \""));
        let own = own.filter(|line| {
            line.starts_with(|first: char| first.is_lowercase()) && is_version(line)
        });
        wrong.extend(
            own.map(|line| format!("{path}: {line}: name the version in the workspace's manifest")),
        );
    }
    expect_none(wrong, "a manifest goes its own way");
}

/// Returns `true` for a dependency with a version of its own, such as `name = "1"` or `name = {
/// version = "1" }`.
fn is_version(line: &str) -> bool {
    let value = line.split_once('=').map_or("", |(_, value)| value).trim();
    value.contains("version = \"")
        || value.starts_with('"') && value[1..].starts_with(|first: char| first.is_ascii_digit())
}

#[test]
fn there_are_few_features() {
    let with = manifests().into_iter().filter(|(_, manifest)| manifest.contains("[features]"));
    let flags = with.flat_map(|(path, manifest)| {
        let (_, section) = manifest.split_once("[features]").expect("it was found");
        let lines = section
            .lines()
            .skip(1)
            .take_while(|line| !line.starts_with('['))
            .filter(|line| line.contains('='));
        lines.map(|line| format!("{path}: {line}")).collect::<Vec<_>>()
    });
    let flags: Vec<String> = flags.collect();
    assert!(flags.len() <= 2, "more than two feature flags: {flags:?}");
}
