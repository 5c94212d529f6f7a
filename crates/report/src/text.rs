// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict as text: sentences first, then the remedy, then a partition that sums to the whole.

use crate::figures::{percent, rest_ms, span};
use crate::layout::{Layout, Tone};
use crate::sentence::{cause, is_longest_only, since_answer, symptom, usually};
use tipme_analysis::model::{
    About, Baseline, Candidate, CauseKind, Culprit, Finding, Interval, Verdict,
};

/// Minimum time of a share to get a line, in milliseconds.
const LINE_MIN_MS: f64 = 0.5;

/// Lead of further evidence, which is indented like the first line.
const EVIDENCE: &str = "                 - ";

/// Formats the verdict. The first line states the symptom, the second the cause.
pub fn text(verdict: &Verdict, layout: &Layout) -> String {
    let mut text = match &verdict.interval {
        Some(interval) if interval.exceeded => explained(verdict, interval, layout),
        _ => layout.paragraph(&layout.paint(Tone::Strong, &headline(verdict))),
    };
    text += &others(verdict, layout);
    text.extend(verdict.notes.iter().map(|note| layout.item("Note: ", note)));
    text
}

/// Lists the other delays that the user may mean.
fn others(verdict: &Verdict, layout: &Layout) -> String {
    let (title, others) = listed(verdict);
    if others.is_empty() {
        return String::new();
    }
    let mut text = layout.paragraph(&format!("{title}:"));
    for other in others {
        text += &layout.item("  ", &format!("{}: {}", candidate(other), at(verdict, other)));
    }
    text
}

/// Returns the delays besides the explained one, with a title. If nothing is new, these are the
/// ones before the last answer.
pub(crate) fn listed(verdict: &Verdict) -> (&'static str, &[Candidate]) {
    match verdict.earlier.as_slice() {
        [] => ("Other delays before the mark", verdict.candidates.get(1..).unwrap_or_default()),
        earlier => ("Delays before the last answer", earlier),
    }
}

/// Formats `typing in xterm, 1.20 s (disk-queue: tar)`.
pub(crate) fn candidate(candidate: &Candidate) -> String {
    let culprit = match &candidate.culprit {
        Some(Culprit::Process { comm, .. }) => format!(" ({}: {comm})", candidate.kind),
        Some(Culprit::Device { device }) => format!(" ({}: {device})", candidate.kind),
        Some(Culprit::Address { address }) => format!(" ({}: {address})", candidate.kind),
        None => String::new(),
    };
    format!("{}, {}{culprit}", candidate.subject, span(candidate.latency_ms))
}

/// Returns the command that explains a delay: `tipme diagnose --at 12.1`.
pub(crate) fn at(verdict: &Verdict, candidate: &Candidate) -> String {
    let middle = candidate.start_ns.midpoint(candidate.end_ns);
    let at = verdict.incident.mark_ns.saturating_sub(middle) as f64 / 1e9;
    format!("tipme diagnose --at {at:.1}")
}

/// Formats the symptom as a sentence: `Typing in xterm stalled for 2.31 s; usually it takes 14 ms.`
pub fn headline(verdict: &Verdict) -> String {
    match &verdict.interval {
        Some(interval) if interval.exceeded && is_longest_only(verdict) => {
            format!("{}.", symptom(verdict, interval))
        }
        Some(interval) if interval.exceeded => {
            format!(
                "{}{}.",
                symptom(verdict, interval),
                usually(verdict.baseline.as_ref(), interval)
            )
        }
        interval if verdict.incident.answered_s.is_some() => {
            format!("{}.", since_answer(interval.as_ref()))
        }
        Some(interval) => nothing_unusual(verdict, interval),
        None => "No finding: nothing to explain was recorded.".to_owned(),
    }
}

fn explained(verdict: &Verdict, interval: &Interval, layout: &Layout) -> String {
    let mut text = layout.paint_lines(Tone::Strong, &layout.paragraph(&headline(verdict)));
    text += &layout.paragraph(&cause(verdict, interval));
    if let Some(finding) = verdict.findings.first() {
        text += &layout.paint_lines(Tone::Remedy, &layout.item("Try: ", &finding.remedy));
    }
    text += &format!("\nWhere the {} went:\n", span(interval.latency_ms));
    text.extend(verdict.findings.iter().map(|finding| finding_lines(finding, interval, layout)));
    text += &rest_lines(verdict, interval, layout);
    text + "\n" + &foot(verdict, interval, layout)
}

/// Formats figures in terms of the field, with a pointer to their explanation.
fn foot(verdict: &Verdict, interval: &Interval, layout: &Layout) -> String {
    let share = percent(verdict.overhead_ms, interval);
    let figures = format!(
        "Usual time: {}. Recording overhead: {share:.3}%.",
        usual(verdict.baseline.as_ref())
    );
    let text = layout.paint_lines(Tone::Faint, &layout.paragraph(&figures));
    let Some(finding) = verdict.findings.first() else { return text };
    let more = format!("About {}: tipme diagnose --explain {0}", finding.kind);
    text + &layout.paint_lines(Tone::Faint, &layout.paragraph(&more))
}

const NO_BASELINE: &str = "unknown (nothing comparable was recorded)";

/// Formats the highest percentile with enough observations, or else the maximum.
pub(crate) fn usual(baseline: Option<&Baseline>) -> String {
    let Some(known) = baseline else { return NO_BASELINE.to_owned() };
    let Baseline { n, max_ms, .. } = known;
    let when = if known.stored { " learned before" } else { "" };
    match (known.p98_ms, known.p50_ms) {
        (Some(p98), _) => format!("{}, p98 of {n}{when}", span(p98)),
        (None, Some(p50)) => format!("{}, p50 of {n}{when}", span(p50)),
        (None, None) => format!("at most {}, maximum of {n}{when}", span(*max_ms)),
    }
}

/// Describes the baseline without the term percentile.
pub(crate) fn usual_in_words(baseline: Option<&Baseline>) -> String {
    let Some(known) = baseline else { return NO_BASELINE.to_owned() };
    let when = if known.stored { ", learned before this window" } else { "" };
    let n = known.n;
    match (known.p98_ms, known.p50_ms) {
        (Some(p98), _) => format!("{} or less in 98% of {n} other times{when}", span(p98)),
        (None, Some(p50)) => format!("{} or less in half of {n} other times{when}", span(p50)),
        (None, None) if n == 1 => format!("{}, the one other time{when}", span(known.max_ms)),
        (None, None) => format!("{} or less in all {n} other times{when}", span(known.max_ms)),
    }
}

fn finding_lines(finding: &Finding, interval: &Interval, layout: &Layout) -> String {
    let mut evidence = finding.evidence.iter();
    let first = evidence.next().map_or("", String::as_str);
    let kind = layout.paint(Tone::Term, finding.kind.name());
    let mut text = budget_line(finding.ms, interval, &format!("{kind}: {first}"), layout);
    let mut more: Vec<String> = evidence.cloned().collect();
    if layout.verbose && !finding.frames.is_empty() {
        more.push(format!("in the kernel: {}", finding.frames.join(" <- ")));
    }
    for line in more {
        text += &layout.paint_lines(Tone::Faint, &layout.item(EVIDENCE, &line));
    }
    text
}

/// Formats ` 2.02 s 87% disk-queue: evidence`.
fn budget_line(ms: f64, interval: &Interval, what: &str, layout: &Layout) -> String {
    layout.item(&format!("  {:>7} {:>3.0}%  ", span(ms), percent(ms, interval)), what)
}

/// Formats the time outside the findings: usual work with small shares, and unattributed time.
fn rest_lines(verdict: &Verdict, interval: &Interval, layout: &Layout) -> String {
    let rests = [
        (rest_ms(verdict, interval), "usual work and small shares"),
        (verdict.unattributed_ms, CauseKind::Unattributed.name()),
    ];
    let rests = rests.into_iter().filter(|(ms, _)| *ms >= LINE_MIN_MS);
    rests.map(|(ms, what)| budget_line(ms, interval, what, layout)).collect()
}

fn nothing_unusual(verdict: &Verdict, interval: &Interval) -> String {
    let window = span(verdict.incident.window_s * 1e3);
    let longest = longest(verdict, interval);
    let About { inputs, programs, .. } = &verdict.incident;
    let looked = match inputs {
        0 => String::new(),
        1 => format!(" 1 input to {} was checked.", programs.join(", ")),
        many => {
            format!(
                " {many} inputs to {} were checked (tipme diagnose --interactions lists them).",
                programs.join(", ")
            )
        }
    };
    format!(
        "No finding: nothing unusual; the longest interaction in the last {window} was \
         {longest}.{looked}"
    )
}

/// Formats `typing in xterm, 11 ms (noticeable from 100 ms on)`, or the command if there is one.
pub(crate) fn longest(verdict: &Verdict, interval: &Interval) -> String {
    if !interval.command.is_empty() {
        return command(verdict, interval);
    }
    let (latency, threshold) = (span(interval.latency_ms), span(interval.threshold_ms));
    let what = interval.subject();
    let what = if interval.class == "activity" { format!("activity of {what}") } else { what };
    format!("{what}, {latency} (noticeable from {threshold} on)")
}

/// Formats ``the command `sleep 3` in xterm, 3.00 s (it slept)``.
fn command(verdict: &Verdict, interval: &Interval) -> String {
    let longest = verdict.partition.iter().find(|piece| piece.pid != interval.client.pid);
    let action = longest
        .and_then(|piece| piece.detail.split(" in ").next())
        .filter(|action| !action.is_empty());
    let action = action.map_or_else(String::new, |action| format!(" (it {action})"));
    let least = if interval.censored { "at least " } else { "" };
    format!("{}, {least}{}{action}", interval.subject(), span(interval.latency_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::{Client, Piece};

    fn waited_for(command: &str, detail: &str) -> String {
        let client = Client { comm: "xterm".to_owned(), ..Client::default() };
        let interval = Interval {
            client,
            latency_ms: 3_000.0,
            command: command.to_owned(),
            ..Interval::default()
        };
        let partition = vec![Piece { pid: 7, detail: detail.to_owned(), ..Piece::default() }];
        text(
            &Verdict { interval: Some(interval), partition, ..Verdict::default() },
            &Layout::default(),
        )
    }

    #[test]
    fn the_baseline_is_described_without_percentiles() {
        let known = Baseline { n: 106, p50_ms: Some(0.21), max_ms: 4.0, ..Baseline::default() };
        assert_eq!(usual_in_words(Some(&known)), "0.21 ms or less in half of 106 other times");
        let known = Baseline { n: 300, p98_ms: Some(7.0), stored: true, ..known };
        assert_eq!(
            usual_in_words(Some(&known)),
            "7.0 ms or less in 98% of 300 other times, learned before this window"
        );
        let known = Baseline { n: 1, max_ms: 4.0, ..Baseline::default() };
        assert_eq!(usual_in_words(Some(&known)), "4.0 ms, the one other time");
        assert!(usual_in_words(None).starts_with("unknown"));
    }

    #[test]
    fn a_command_that_did_its_work_is_named() {
        let text = waited_for("sleep 3", "slept in clock_nanosleep");
        assert!(
            text.ends_with(" was the command `sleep 3` in xterm, 3.00 s (it slept).\n"),
            "{text}"
        );
        let text = waited_for(&"long ".repeat(30), "");
        assert!(text.ends_with("long …` in xterm, 3.00 s.\n"), "{text}");
    }
}
