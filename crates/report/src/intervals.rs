// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intervals that should be even: a table of the loads, a strip of each, and the causes of the longest.

use crate::figures::span;
use crate::strip;
use tipme_analysis::Explanation;
use tipme_measure::{IntervalFigures, Intervals};

/// As in the papers.
const BUCKET_MS: f64 = 10.0;
/// Shares of an interval below this are not worth a line.
const LINE_MIN_MS: f64 = 0.5;
/// Names of loads are cut after so many characters.
const NAME_CHARS: usize = 12;

/// A table with a row for each load, and below it the histograms, a line each.
pub fn intervals(loads: &[Intervals]) -> String {
    let head = format!(
        "{:NAME_CHARS$}  {:>6} {:>9} {:>9} {:>9} {:>10}  {}\n",
        "load", "n", "min ms", "p50 ms", "p98 ms", "max ms", "over 150 ms"
    );
    let rows = loads.iter().map(row);
    let strips =
        loads.iter().map(|load| format!("{:NAME_CHARS$}  {}\n", name(load), strip(&load.values_ms(), BUCKET_MS)));
    std::iter::once(head).chain(rows).chain(std::iter::once("\n".to_owned())).chain(strips).collect()
}

fn name(load: &Intervals) -> String {
    load.load.chars().take(NAME_CHARS).collect()
}

fn row(load: &Intervals) -> String {
    let figures = load.figures();
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
    let most = if is_censored_max(load, &figures) { ">=" } else { "" };
    format!(
        "{:NAME_CHARS$}  {:>6} {:>9} {:>9} {:>9} {:>10}  {}{}\n",
        name(load),
        figures.n,
        ms(figures.min_ms),
        ms(figures.p50_ms),
        ms(figures.p98_ms),
        format!("{most}{}", ms(figures.max_ms)),
        long(&figures),
        if load.censored_ns.is_some() { "  (the last was cut off)" } else { "" }
    )
}

/// Whether the longest one is the one that was cut off.
fn is_censored_max(load: &Intervals, figures: &IntervalFigures) -> bool {
    load.censored_ns.is_some_and(|length| Some(length as f64 / 1e6) == figures.max_ms)
}

fn long(figures: &IntervalFigures) -> String {
    let share = figures.long_share.map_or_else(String::new, |share| format!(" ({:.1} %)", 100.0 * share));
    format!("{}{share}", figures.long)
}

/// Where one interval went, from when the thread was due: causes first, then what is usual or not known.
pub fn explained(load: &str, begun_s: f64, explanation: &Explanation) -> String {
    let late = explanation.interval_ms - explanation.usual_ms;
    let mut lines = vec![format!("{load}, {begun_s:.1} s after its begin: {late:.1} ms late")];
    let line = |ms: f64, what: &str, first: &str| share(ms, explanation.interval_ms, what, first);
    for finding in &explanation.findings {
        let first = finding.evidence.first().map_or("", String::as_str);
        lines.push(line(finding.ms, finding.kind.name(), first));
    }
    let found: f64 = explanation.findings.iter().map(|finding| finding.ms).sum();
    let other = explanation.interval_ms - found - explanation.unattributed_ms;
    for (ms, what) in [(other, "usual work and small shares"), (explanation.unattributed_ms, "unattributed")] {
        lines.extend((ms >= LINE_MIN_MS).then(|| line(ms, what, "")));
    }
    if !explanation.complete {
        lines.push("  Note: the interval begins before the records are complete.".to_owned());
    }
    lines.join("\n") + "\n"
}

/// `   300 ms  75 %  page-in  what was found`
fn share(ms: f64, whole_ms: f64, what: &str, found: &str) -> String {
    let percent = 100.0 * ms / whole_ms.max(f64::MIN_POSITIVE);
    format!("  {:>7} {percent:>3.0} %  {what}  {found}", span(ms)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::{Finding, Kind};

    const MS: u64 = 1_000_000;

    #[test]
    fn a_table_and_a_strip_for_each_load() {
        let calm = Intervals::of("none", 60 * MS, &[0, 60 * MS, 120 * MS], None);
        let busy = Intervals::of("hog", 60 * MS, &[0, 60 * MS, 260 * MS], Some(1_260 * MS));
        let text = intervals(&[calm, busy]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "load               n    min ms    p50 ms    p98 ms     max ms  over 150 ms");
        assert_eq!(lines[1], "none               2      60.0         -         -       60.0  0 (0.0 %)");
        let cut = "hog                3      60.0         -         -   >=1000.0  2 (66.7 %)  (the last was cut off)";
        assert_eq!(lines[2], cut);
        assert!(lines[3].is_empty() && lines[4].starts_with("none          60 ms "), "{text}");
        assert!(lines[5].starts_with("hog           60 ms "), "{text}");
    }

    #[test]
    fn what_explains_an_interval_sums_to_it() {
        let finding = Finding {
            kind: Kind::PageIn,
            ms: 300.0,
            evidence: vec!["waited for loop0".to_owned()],
            ..Finding::default()
        };
        let explanation = Explanation {
            interval_ms: 400.0,
            usual_ms: 10.0,
            unattributed_ms: 20.0,
            findings: vec![finding],
            complete: true,
            ..Explanation::default()
        };
        let text = explained("8 children", 12.34, &explanation);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "8 children, 12.3 s after its begin: 390.0 ms late");
        assert_eq!(lines[1], "   300 ms  75 %  page-in  waited for loop0");
        assert_eq!(lines[2], "    80 ms  20 %  usual work and small shares");
        assert_eq!(lines[3], "    20 ms   5 %  unattributed");
        assert_eq!(lines.len(), 4);
    }
}
