// SPDX-License-Identifier: MIT OR Apache-2.0
//! The promises of docs/internals/security.md are tested.

use crate::tree::{expect_none, root, text};

const DOCUMENT: &str = "docs/internals/security.md";

/// Returns the names in backquotes in the last column of a table row.
fn named(line: &str) -> Vec<&str> {
    let last = line.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
    last.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_promise_names_a_test_that_exists() {
    let document = text(DOCUMENT);
    let rows = document
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("| ") && !line.ends_with("| test |"));
    let mut wrong = Vec::new();
    for (at, line) in rows {
        let mut file = String::new();
        let names = named(line);
        if !names.iter().any(|name| name.ends_with(".rs")) {
            wrong.push(format!("{DOCUMENT}:{}: no test is named", at + 1));
        }
        for name in names {
            if name.ends_with(".rs") {
                file =
                    std::fs::read_to_string(root().join("crates").join(name)).unwrap_or_default();
            }
            let there = if name.ends_with(".rs") {
                file.contains("#[test]")
            } else {
                file.contains(&format!("fn {name}()"))
            };
            if !there {
                wrong.push(format!("{DOCUMENT}:{}: there is no test {name}", at + 1));
            }
        }
    }
    expect_none(wrong, "promises without a test");
}
