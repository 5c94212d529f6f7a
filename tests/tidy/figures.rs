// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every table of figures in a document states its date, commit and machine, and the command that
//! reproduces it.
//!
//! A table has figures if at least two of five cells outside its first column begin with a number.
//! The statement is between the heading of its section and the table, or before the document's
//! first section.

use crate::tree::{documents, expect_none};
use std::path::Path;

/// Beginnings of commands that reproduce figures, in backquotes.
const COMMANDS: [&str; 5] = ["`make ", "`scripts/", "`tests/", "`tipme ", "written by make "];

/// A table of a document: its header line, the text of its section above it, and its cells.
struct Table<'a> {
    line: usize,
    above: String,
    cells: Vec<&'a str>,
}

fn tables(document: &str) -> Vec<Table<'_>> {
    let lines: Vec<&str> = document.lines().collect();
    let rules = (1..lines.len()).filter(|at| lines[*at].starts_with("|---"));
    let tables = rules.map(|rule| Table {
        line: rule,
        above: above(&lines[..rule - 1]),
        cells: cells(&lines[rule + 1..]),
    });
    tables.collect()
}

/// Returns the text before the first section, and that in the last section.
fn above(lines: &[&str]) -> String {
    let first = lines.iter().position(|line| line.starts_with("## ")).unwrap_or(lines.len());
    let last = lines.iter().rposition(|line| line.starts_with('#')).unwrap_or(0);
    [&lines[..first], &lines[last..]].concat().join(" ")
}

/// Returns the non-empty cells of the following rows, without the first column.
fn cells<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let rows = lines.iter().take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| row.trim_matches('|').split('|').skip(1))
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

impl Table<'_> {
    fn is_of_figures(&self) -> bool {
        let figures = self.cells.iter().filter(|cell| {
            cell.trim_start_matches(['*', '+', '-', '<']).starts_with(|c: char| c.is_ascii_digit())
        });
        let figures = figures.count();
        figures * 5 >= self.cells.len() * 2 && figures > 0
    }

    /// Returns the missing statements.
    fn unsaid(&self) -> Vec<&'static str> {
        let said = [
            ("the date", has_date(&self.above)),
            ("the commit", has_commit(&self.above)),
            ("the machine", self.above.contains(" CPUs")),
            ("the command", COMMANDS.iter().any(|command| self.above.contains(command))),
        ];
        said.into_iter().filter(|(_, there)| !there).map(|(what, _)| what).collect()
    }
}

/// Returns `true` if the text has a date such as `2026-01-31`.
fn has_date(text: &str) -> bool {
    text.as_bytes().windows(10).any(|word| {
        word.iter().enumerate().all(|(at, byte)| {
            if [4, 7].contains(&at) { *byte == b'-' } else { byte.is_ascii_digit() }
        })
    })
}

/// Returns `true` if the text names a commit by at least seven hexadecimal digits.
fn has_commit(text: &str) -> bool {
    text.split("commit ").skip(1).any(|rest| {
        rest.trim_start_matches('`').chars().take_while(char::is_ascii_hexdigit).count() >= 7
    })
}

#[test]
fn every_table_of_figures_says_where_they_are_from() {
    let (mut found, mut looked_at) = (Vec::new(), 0);
    for source in documents() {
        if !source.path.starts_with("docs") && source.path != Path::new("README.md") {
            continue;
        }
        for table in tables(&source.text).iter().filter(|table| table.is_of_figures()) {
            looked_at += 1;
            let unsaid = table.unsaid();
            if !unsaid.is_empty() {
                found.push(format!("{} does not say {}", source.at(table.line), unsaid.join(", ")));
            }
        }
    }
    assert!(looked_at > 20, "the tables were not found");
    expect_none(found, "figures of which nobody knows when");
}

#[test]
fn a_planted_table_without_its_commit_is_found() {
    let table = "| arm | ms |\n|---|---|\n| bare | 6.31 |\n";
    for (words, unsaid) in [
        ("2026-01-31, commit 0123abc, 2 CPUs.", &[][..]),
        ("2026-01-31, 2 CPUs.", &["the commit"]),
        ("31 January, commit abc.", &["the date", "the commit", "the machine"]),
    ] {
        let document = format!("# Costs\n\nBy `make bench`.\n\n## One\n\n{words}\n\n{table}");
        assert_eq!(tables(&document)[0].unsaid(), unsaid);
    }
    assert!(tables(table)[0].is_of_figures());
    assert!(!tables("| verb | does |\n|---|---|\n| mark | saves 40 s |\n")[0].is_of_figures());
}
