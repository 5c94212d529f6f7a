// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats the results as a text table and as Markdown for the documentation.

use super::outcome::{SelftestOutcome, TrialRow, median};
use crate::faults::name_of;
use std::collections::BTreeMap;

/// Maximum length of a culprit, in characters.
const CULPRIT_LETTERS: usize = 34;

/// Formats one line for each trial with explanations of the misses, and the total figures.
pub fn text(outcome: &SelftestOutcome) -> String {
    let head = ["fault", "app", "expected", "verdict", "share", "attributed/injected", ""]
        .map(str::to_string);
    let rows: Vec<[String; 7]> =
        std::iter::once(head).chain(outcome.results.iter().map(cells)).collect();
    let widths: Vec<usize> = (0..7)
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let table: String = rows.iter().map(|row| line(row, &widths)).collect();
    let misses: String = outcome.results.iter().filter(|row| !row.hit).map(miss).collect();
    format!("{table}\n{misses}{}\n", figures(outcome).join("\n"))
}

fn cells(row: &TrialRow) -> [String; 7] {
    [
        row.fault.clone(),
        row.app.clone(),
        expected(row),
        verdict(row),
        row.share.map_or(String::new(), percent),
        if row.is_clean() {
            String::new()
        } else {
            format!("{:.0}/{:.0} ms", row.attributed_ms, row.injected_ms)
        },
        if row.hit { "hit" } else { "MISS" }.to_string(),
    ]
}

fn line(row: &[String; 7], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}

fn miss(row: &TrialRow) -> String {
    let kept = row.incident.as_ref().map_or(String::new(), |path| format!(" [{}]", path.display()));
    format!("MISS {} on {}: {}{kept}\n", row.fault, row.app, row.why)
}

fn expected(row: &TrialRow) -> String {
    let first = row.expected_kinds.first().map_or("nothing", String::as_str);
    let more = row.expected_kinds.len().saturating_sub(1);
    if more == 0 { first.to_string() } else { format!("{first} +{more}") }
}

fn verdict(row: &TrialRow) -> String {
    let Some(kind) = &row.kind else { return "no finding".to_string() };
    let culprit = row.culprit.as_ref().map(name_of).unwrap_or_default();
    format!("{kind} by {}", culprit.chars().take(CULPRIT_LETTERS).collect::<String>())
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn finer(share: Option<f64>) -> String {
    share.map_or("not known".to_string(), |share| format!("{:.1}%", share * 100.0))
}

/// Formats the total figures, one line each.
fn figures(outcome: &SelftestOutcome) -> Vec<String> {
    let hits = outcome.results.iter().filter(|row| row.hit && !row.is_clean()).count();
    let slowest =
        outcome.diagnosis_ms_max.map_or("not known".to_string(), |ms| format!("{:.2} s", ms / 1e3));
    let mut lines = vec![
        format!("cause named: {hits} of {} ({})", outcome.n, finer(outcome.accuracy)),
        format!(
            "attributed within 15% of what was injected: {} of {}",
            outcome.attributed_well, outcome.n
        ),
        format!("clean runs: {}, false findings: {}", outcome.clean_runs, outcome.false_findings),
        format!(
            "unattributed: median {}, at worst {}; slowest diagnosis {slowest}",
            finer(outcome.unattributed_share_median),
            finer(outcome.unattributed_share_max)
        ),
        format!(
            "CPUs busy before the faults began: median {}, at worst {}",
            finer(outcome.usual_load_median),
            finer(outcome.usual_load_max)
        ),
    ];
    lines.extend(
        outcome
            .not_run
            .iter()
            .map(|one| format!("not run: {} on {}: {}", one.fault, one.app, one.why)),
    );
    lines
}

/// Formats one line for each fault and application over all repeats, and the total figures as a
/// list.
pub fn markdown(outcome: &SelftestOutcome) -> String {
    let head = "| fault | application | expected | first finding | hits | attributed / injected ms (medians) |\n|---|---|---|---|---|---|\n";
    let rows: String =
        outcome.subjects().into_iter().map(|(fault, app)| summary(outcome, fault, app)).collect();
    let figures: String = figures(outcome).into_iter().map(|line| format!("- {line}\n")).collect();
    format!("{head}{rows}\n{figures}")
}

fn summary(outcome: &SelftestOutcome, fault: &str, app: &str) -> String {
    let rows: Vec<&TrialRow> =
        outcome.results.iter().filter(|row| row.fault == fault && row.app == app).collect();
    let hits = rows.iter().filter(|row| row.hit).count();
    let attributed = median(rows.iter().map(|row| row.attributed_ms).collect()).unwrap_or_default();
    let injected = median(rows.iter().map(|row| row.injected_ms).collect()).unwrap_or_default();
    let clean = rows.iter().all(|row| row.is_clean());
    let expected = rows.first().map_or(String::new(), |row| row.expected_kinds.join(", "));
    let expected = if clean { "nothing".to_string() } else { expected };
    let times = if clean { String::new() } else { format!("{attributed:.0} / {injected:.0}") };
    format!(
        "| {fault} | {app} | {expected} | {} | {hits} of {} | {times} |\n",
        kinds(&rows),
        rows.len()
    )
}

/// Formats the kinds of the first findings, the most frequent first, with counts if there are
/// several.
fn kinds(rows: &[&TrialRow]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(row.kind.as_deref().unwrap_or("none")).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let one = counts.len() == 1;
    let texts = counts
        .iter()
        .map(|(kind, count)| if one { kind.to_string() } else { format!("{kind} ({count})") });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::outcome::NotRun;
    use crate::selftest::outcome::tests::row;

    fn outcome() -> SelftestOutcome {
        let why = "not installed: foot".to_string();
        let not_run = vec![NotRun {
            fault: "lock".to_string(),
            app: "foot".to_string(),
            why,
            not_installed: true,
        }];
        SelftestOutcome::new(vec![row("lock-wait", 1950.0), row("stall", 0.0)], not_run)
    }

    fn squeeze(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn people_get_a_table() {
        let expected = "\
fault      app      expected   verdict                share  attributed/injected
lock  xterm  lock-wait  lock-wait by holder (5)  97%   1950/2000 ms         hit
lock  xterm  lock-wait  stall by holder (5)    97%   0/2000 ms            MISS
";
        let table = text(&outcome());
        assert!(squeeze(&table).starts_with(&squeeze(expected)), "{table}");
        assert!(table.contains(
            "cause named: 1 of 2 (50.0%)\nattributed within 15% of what was injected: 1 of 2\n"
        ));
        assert!(
            table.contains("unattributed: median 2.0%, at worst 2.0%; slowest diagnosis 0.00 s\n"),
            "{table}"
        );
        assert!(table.ends_with("not run: lock on foot: not installed: foot\n"), "{table}");
    }

    #[test]
    fn the_documentation_gets_one_line_each() {
        let table = markdown(&outcome());
        let line = "| lock | xterm | lock-wait | lock-wait (1), stall (1) | 1 of 2 | 0 / 2000 |\n";
        assert!(table.contains(line), "{table}");
    }
}
