// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict for people: the first line says it all, the lines below are a budget that sums to the whole.

use tipme_analysis::model::{Baseline, Finding, Interval, Kind, Verdict};

/// Shares of the latency below this are not worth a line.
const LINE_MIN_MS: f64 = 0.5;

/// Longer command lines are cut.
const COMMAND_MAX: usize = 60;

/// The verdict as lines of text, at most as wide as the evidence needs.
pub fn text(verdict: &Verdict) -> String {
    let mut lines = match &verdict.interval {
        Some(interval) if interval.exceeded => stalled(verdict, interval),
        Some(interval) => vec![nothing_unusual(verdict, interval)],
        None => vec!["No finding: nothing to explain was recorded.".to_owned()],
    };
    lines.extend(verdict.notes.iter().map(|note| format!("Note: {note}")));
    lines.join("\n") + "\n"
}

fn stalled(verdict: &Verdict, interval: &Interval) -> Vec<String> {
    let mut lines = vec![headline(interval, verdict.baseline.as_ref())];
    for finding in &verdict.findings {
        lines.extend(finding_lines(finding, interval));
    }
    lines.extend(rest_lines(verdict, interval));
    lines.push(last_line(verdict, interval));
    lines
}

/// `Typing in xterm stalled 2.31 s (usually 14 ms, p98 of 212).`
fn headline(interval: &Interval, baseline: Option<&Baseline>) -> String {
    format!("{} ({}).", symptom(interval), usual(baseline))
}

/// `Typing in xterm stalled 2.31 s`
pub(crate) fn symptom(interval: &Interval) -> String {
    let least = if interval.censored { "at least " } else { "" };
    let open = if interval.censored { ", unfinished at the mark" } else { "" };
    let what = match interval.milestone.as_str() {
        _ if interval.class == "activity" => "stalled",
        "handled" => "left it unresponsive for",
        "completed" => "was completed after",
        _ => "stalled",
    };
    format!("{} {what} {least}{}{open}", subject(interval), span(interval.latency_ms))
}

/// What the person did, or what was active.
fn subject(interval: &Interval) -> String {
    let comm = &interval.client.comm;
    match interval.class.as_str() {
        "key" => format!("Typing in {comm}"),
        "click" => format!("Clicking in {comm}"),
        "scroll" => format!("Scrolling in {comm}"),
        "motion" => format!("Moving the pointer in {comm}"),
        _ => format!("{comm} (pid {})", interval.client.pid),
    }
}

/// The highest percentile that there are enough observations for, else the largest of them.
fn usual(baseline: Option<&Baseline>) -> String {
    match baseline {
        None => "nothing to compare with".to_owned(),
        Some(known) => {
            let Baseline { n, max_ms, .. } = known;
            let when = if known.stored { " learned before" } else { "" };
            match (known.p98_ms, known.p50_ms) {
                (Some(p98), _) => format!("usually {}, p98 of {n}{when}", span(p98)),
                (None, Some(p50)) => format!("usually {}, p50 of {n}{when}", span(p50)),
                (None, None) => format!("else at most {}, maximum of {n}{when}", span(*max_ms)),
            }
        }
    }
}

fn finding_lines(finding: &Finding, interval: &Interval) -> Vec<String> {
    let mut evidence = finding.evidence.iter();
    let first = evidence.next().map_or("", String::as_str);
    let mut lines = vec![budget_line(finding.ms, interval, finding.kind.name(), first)];
    lines.extend(evidence.map(|line| format!("{:19}{line}", "")));
    lines
}

/// `  2.02 s  87 %  disk-queue  what was found`
fn budget_line(ms: f64, interval: &Interval, kind: &str, what: &str) -> String {
    let percent = percent(ms, interval);
    format!("  {:>7} {percent:>3.0} %  {kind}  {what}", span(ms)).trim_end().to_owned()
}

/// Of the latency.
pub(crate) fn percent(ms: f64, interval: &Interval) -> f64 {
    100.0 * ms / interval.latency_ms.max(f64::MIN_POSITIVE)
}

/// What no finding explains: the usual work and small shares, and what nothing recorded explains.
fn rest_lines(verdict: &Verdict, interval: &Interval) -> Vec<String> {
    let found: f64 = verdict.findings.iter().map(|finding| finding.ms).sum();
    let other = interval.latency_ms - found - verdict.unattributed_ms;
    let line = |ms: f64, what: &str| (ms >= LINE_MIN_MS).then(|| budget_line(ms, interval, what, ""));
    let other = line(other, "usual work and small shares");
    other.into_iter().chain(line(verdict.unattributed_ms, Kind::Unattributed.name())).collect()
}

fn last_line(verdict: &Verdict, interval: &Interval) -> String {
    let own = format!("recorder's own share: {:.3} %", percent(verdict.overhead_ms, interval));
    match verdict.findings.first() {
        Some(finding) => format!("Try: {}      {own}", finding.remedy),
        None => format!("No finding: nothing that was recorded explains it.      {own}"),
    }
}

fn nothing_unusual(verdict: &Verdict, interval: &Interval) -> String {
    let window = span(verdict.incident.window_s * 1e3);
    format!(
        "No finding: nothing unusual; the longest interaction in the last {window} was {}.",
        longest(verdict, interval)
    )
}

/// `typing in xterm, 11 ms (noticed from 100 ms on)`, or the command that it was.
pub(crate) fn longest(verdict: &Verdict, interval: &Interval) -> String {
    if !interval.command.is_empty() {
        return command(verdict, interval);
    }
    let (latency, threshold) = (span(interval.latency_ms), span(interval.threshold_ms));
    let what = subject(interval);
    let what = if interval.class == "activity" { format!("activity of {what}") } else { lower_first(&what) };
    format!("{what}, {latency} (noticed from {threshold} on)")
}

/// ``the command `sleep 3` in xterm, 3.00 s (it slept)``
fn command(verdict: &Verdict, interval: &Interval) -> String {
    let mut line: String = interval.command.chars().take(COMMAND_MAX).collect();
    if line.len() < interval.command.len() {
        line.push('…');
    }
    let longest = verdict.partition.iter().find(|piece| piece.pid != interval.client.pid);
    let deed = longest.and_then(|piece| piece.detail.split(" in ").next()).filter(|deed| !deed.is_empty());
    let deed = deed.map_or_else(String::new, |deed| format!(" (it {deed})"));
    let least = if interval.censored { "at least " } else { "" };
    format!("the command `{line}` in {}, {least}{}{deed}", interval.client.comm, span(interval.latency_ms))
}

fn lower_first(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_lowercase().collect::<String>() + rest.as_str())
}

/// A duration for people: `2.31 s`, `14 ms`, `0.32 ms`.
pub(crate) fn span(ms: f64) -> String {
    match ms {
        999.5.. => format!("{:.2} s", ms / 1_000.0),
        9.95.. => format!("{ms:.0} ms"),
        1.0.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_analysis::model::{Client, Piece};

    fn waited_for(command: &str, detail: &str) -> String {
        let client = Client { comm: "xterm".to_owned(), ..Client::default() };
        let interval = Interval { client, latency_ms: 3_000.0, command: command.to_owned(), ..Interval::default() };
        let partition = vec![Piece { pid: 7, detail: detail.to_owned(), ..Piece::default() }];
        text(&Verdict { interval: Some(interval), partition, ..Verdict::default() })
    }

    #[test]
    fn a_command_that_did_its_work_is_named() {
        let told = waited_for("sleep 3", "slept in clock_nanosleep");
        assert!(told.ends_with(" was the command `sleep 3` in xterm, 3.00 s (it slept).\n"), "{told}");
        let told = waited_for(&"long ".repeat(30), "");
        assert!(told.ends_with("long …` in xterm, 3.00 s.\n"), "{told}");
    }
}
