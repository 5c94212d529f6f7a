// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of periodic work: a table of the loads, a strip of each, and the causes of the
//! longest intervals.

use super::figures::{BUCKET_NS, LoadIntervals, Longest, MeasuredLoad};
use crate::choice::number;
use crate::experiment::BenchFigures;
use schemars::JsonSchema;
use serde::Serialize;
use tipme_analysis::IntervalExplanation;
use tipme_measure::{Document, IntervalFigures, ms};
use tipme_report::plot::{Figure, LatencySet, Quantity, histograms};
use tipme_report::{conditions, span, strip};

const BUCKET_MS: f64 = ms(BUCKET_NS);
/// Minimum share of an interval that gets a line.
const LINE_MIN_MS: f64 = 0.5;
/// Maximum length of a load's name, in characters.
const NAME_CHARS: usize = 18;

impl<C: Serialize + JsonSchema> BenchFigures for LoadIntervals<C> {
    /// Returns bounds, table, causes, and conditions.
    fn text(document: &Document<LoadIntervals<C>>) -> String {
        let figures = &document.details;
        let bounds = figures.bounds.iter().map(|line| format!("  {line}\n")).collect::<String>();
        let mut out = format!("{}\n{bounds}\n{}\n", figures.title, table(&figures.loads));
        for load in &figures.loads {
            for Longest { start_s, explanation } in &load.longest {
                out += &explained(&load.intervals.load, *start_s, explanation);
            }
        }
        if let Some(why) = &figures.not_explained_because {
            out += &format!("The longest intervals are not explained: {why}.\n");
        }
        out + &footer(document).join("\n") + "\n"
    }

    /// Returns the histograms of all loads.
    fn plots(document: &Document<LoadIntervals<C>>) -> Vec<(String, String)> {
        let figures = &document.details;
        let footer = [&figures.bounds[..], &footer(document)].concat().join("; ");
        let figure = Figure { title: figures.title, quantity: Quantity::Interval, footer: &footer };
        let sets = figures.loads.iter().map(|load| LatencySet {
            name: load.intervals.load.clone(),
            values_ms: load.intervals.values_ms(),
        });
        let plot = histograms(&figure, &sets.collect::<Vec<_>>(), BUCKET_MS);
        vec![(format!("{}.svg", document.kind), plot)]
    }

    /// Returns 1 if a user would have noticed any interval.
    fn exit_code(document: &Document<LoadIntervals<C>>) -> u8 {
        let mut events = document.runs.iter().flat_map(|run| &run.classes);
        u8::from(events.any(|events| {
            let threshold = events.threshold_ns.unwrap_or(u64::MAX);
            events.latencies_ns.iter().any(|latency| *latency > threshold)
        }))
    }
}

/// Returns threshold, losses and machine.
fn footer<C>(document: &Document<LoadIntervals<C>>) -> [String; 2] {
    let loads = &document.details.loads;
    let censored = loads.iter().filter(|load| load.intervals.censored_ns.is_some()).count();
    let casualties: usize = loads.iter().map(|load| load.casualties).sum();
    let events = document.runs.iter().flat_map(|run| &run.classes).next();
    let threshold = events.and_then(|events| events.threshold_ns).unwrap_or_default() / 1_000_000;
    [
        format!(
            "{:.1} s in all; noticed from {threshold} ms beyond the expected on; 0 intervals lost, {censored} cut off, \
             {casualties} processes of a load ended early",
            document.machine.duration_s
        ),
        conditions(&document.machine),
    ]
}

/// Returns a table with a row for each load, followed by the histograms, a line each.
fn table(loads: &[MeasuredLoad]) -> String {
    let head = format!(
        "{:NAME_CHARS$}  {:>6} {:>9} {:>9} {:>9} {:>10}  {}\n",
        "load", "n", "min ms", "p50 ms", "p98 ms", "max ms", "over 150 ms"
    );
    let rows: String = loads.iter().map(row).collect();
    let strips = loads.iter().map(|load| {
        let strip = strip(&load.intervals.values_ms(), BUCKET_MS);
        format!("{:NAME_CHARS$}  {strip}\n", name(load))
    });
    head + &rows + "\n" + &strips.collect::<String>()
}

fn name(load: &MeasuredLoad) -> String {
    load.intervals.load.chars().take(NAME_CHARS).collect()
}

fn row(load: &MeasuredLoad) -> String {
    let (figures, censored_ns) = (&load.figures, load.intervals.censored_ns);
    let is_longest = censored_ns.is_some_and(|length| Some(ms(length)) == figures.max_ms);
    let most = if is_longest { ">=" } else { "" };
    format!(
        "{:NAME_CHARS$}  {:>6} {:>9} {:>9} {:>9} {:>10}  {}{}\n",
        name(load),
        figures.n,
        number(figures.min_ms, 1),
        number(figures.p50_ms, 1),
        number(figures.p98_ms, 1),
        format!("{most}{}", number(figures.max_ms, 1)),
        long(figures),
        if censored_ns.is_some() { "  (the last was cut off)" } else { "" }
    )
}

fn long(figures: &IntervalFigures) -> String {
    let share =
        figures.long_share.map_or_else(String::new, |share| format!(" ({:.1}%)", 100.0 * share));
    format!("{}{share}", figures.long)
}

/// Formats the parts of one interval from the thread's due time: causes first, then usual and
/// unattributed time.
fn explained(load: &str, begun_s: f64, explanation: &IntervalExplanation) -> String {
    let late = explanation.interval_ms - explanation.usual_ms;
    let mut lines = vec![format!("{load}, {begun_s:.1} s after its begin: {late:.1} ms late")];
    let whole_ms = explanation.interval_ms;
    for finding in &explanation.findings {
        let first = finding.evidence.first().map_or("", String::as_str);
        lines.push(share(finding.ms, whole_ms, finding.kind.name(), first));
    }
    let found: f64 = explanation.findings.iter().map(|finding| finding.ms).sum();
    let other = whole_ms - found - explanation.unattributed_ms;
    for (ms, what) in
        [(other, "usual work and small shares"), (explanation.unattributed_ms, "unattributed")]
    {
        lines.extend((ms >= LINE_MIN_MS).then(|| share(ms, whole_ms, what, "")));
    }
    if !explanation.complete {
        lines.push("  Note: the interval begins before the records are complete.".to_owned());
    }
    lines.join("\n") + "\n"
}

/// `   300 ms  75%  page-in  what was found`
fn share(ms: f64, whole_ms: f64, what: &str, found: &str) -> String {
    let percent = 100.0 * ms / whole_ms.max(f64::MIN_POSITIVE);
    format!("  {:>7} {percent:>3.0}%  {what}  {found}", span(ms)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::{CauseKind, Finding};
    use tipme_measure::Intervals;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_table_and_a_strip_for_each_load() {
        let calm = Intervals::of("none", 60 * MS, &[0, 60 * MS, 120 * MS], None);
        let busy = Intervals::of("hog", 60 * MS, &[0, 60 * MS, 260 * MS], Some(1_260 * MS));
        let text = table(&[calm, busy].map(|intervals| MeasuredLoad::new(intervals, 0, None)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "load                     n    min ms    p50 ms    p98 ms     max ms  over 150 ms"
        );
        assert_eq!(
            lines[1],
            "none                     2      60.0         -         -       60.0  0 (0.0%)"
        );
        let cut = "hog                      3      60.0         -         -   >=1000.0  2 (66.7%)  (the last was cut off)";
        assert_eq!(lines[2], cut);
        assert!(
            lines[3].is_empty() && lines[4].starts_with("none                60 ms "),
            "{text}"
        );
        assert!(lines[5].starts_with("hog                 60 ms "), "{text}");
    }

    #[test]
    fn what_explains_an_interval_sums_to_it() {
        let finding = Finding {
            kind: CauseKind::PageIn,
            ms: 300.0,
            evidence: vec!["waited for loop0".to_owned()],
            ..Finding::default()
        };
        let explanation = IntervalExplanation {
            interval_ms: 400.0,
            usual_ms: 10.0,
            unattributed_ms: 20.0,
            findings: vec![finding],
            complete: true,
            ..IntervalExplanation::default()
        };
        let text = explained("8 children", 12.34, &explanation);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "8 children, 12.3 s after its begin: 390.0 ms late");
        assert_eq!(lines[1], "   300 ms  75%  page-in  waited for loop0");
        assert_eq!(lines[2], "    80 ms  20%  usual work and small shares");
        assert_eq!(lines[3], "    20 ms   5%  unattributed");
        assert_eq!(lines.len(), 4);
    }
}
