// SPDX-License-Identifier: MIT OR Apache-2.0
//! Partition of the wait: one bar as long as the wait, and a line for each part.

use crate::figures::{percent, rest_ms, span};
use crate::kinds::about;
use crate::page::head::swatch;
use maud::{Markup, html};
use tipme_analysis::model::{CauseKind, Finding, Interval, Verdict};
use tipme_analysis::scene::Look;

/// Minimum time of a share to get a line, in milliseconds.
const SHARE_MIN_MS: f64 = 0.05;

/// Part of the wait.
struct BudgetShare<'a> {
    look: Look,
    name: &'a str,
    ms: f64,
    finding: Option<&'a Finding>,
}

/// Renders the bar and its lines.
pub(super) fn section(verdict: &Verdict, interval: &Interval) -> Markup {
    let shares = shares(verdict, interval);
    html! {
        section aria-labelledby="budget" {
            h2 #budget { "Where the " (span(interval.latency_ms)) " went" }
            (bar(&shares, interval))
            table.budget {
                thead { tr {
                    th scope="col" { "what" } th.number scope="col" { "time" } th.number scope="col" { "share" }
                } }
                tbody { @for share in &shares { (line(share, interval)) } }
            }
        }
    }
}

fn shares<'a>(verdict: &'a Verdict, interval: &Interval) -> Vec<BudgetShare<'a>> {
    let found = verdict.findings.iter().map(|finding| BudgetShare {
        look: Look::of_kind(finding.kind),
        name: about(finding.kind).name,
        ms: finding.ms,
        finding: Some(finding),
    });
    let rest = [
        (Look::App, "Usual work and small shares", rest_ms(verdict, interval)),
        (Look::Unknown, about(CauseKind::Unattributed).name, verdict.unattributed_ms),
    ];
    let rest = rest.map(|(look, name, ms)| BudgetShare { look, name, ms, finding: None });
    found.chain(rest).filter(|share| share.ms >= SHARE_MIN_MS).collect()
}

/// Draws the bar with rectangles in percent of the width, so that it scales with the page.
fn bar(shares: &[BudgetShare<'_>], interval: &Interval) -> Markup {
    let mut at = 0.0;
    let mut places = Vec::new();
    for share in shares {
        let width = percent(share.ms, interval).clamp(0.0, 100.0 - at);
        places.push((share, at, width));
        at += width;
    }
    let parts: Vec<String> = shares
        .iter()
        .map(|share| format!("{}: {:.0}%", share.name, percent(share.ms, interval)))
        .collect();
    html! {
        svg.stack width="100%" height="36" role="img" aria-label=(parts.join("; ")) {
            @for (share, at, width) in &places {
                rect.{ "look-" (share.look.name()) } x={ (figure(*at)) "%" } width={ (figure(*width)) "%" } height="36" {
                    title { (share.name) ", " (span(share.ms)) }
                }
            }
        }
    }
}

/// Formats a value with sufficient precision for drawing.
pub(super) fn figure(value: f64) -> String {
    format!("{value:.3}")
}

fn line(share: &BudgetShare<'_>, interval: &Interval) -> Markup {
    html! {
        tr {
            th scope="row" {
                (swatch(share.look)) (share.name)
                @if let Some(finding) = share.finding { (evidence(finding)) }
            }
            td.number { (span(share.ms)) }
            td.number { (format!("{:.0}%", percent(share.ms, interval))) }
        }
    }
}

/// Renders the evidence and the remedy of a finding.
fn evidence(finding: &Finding) -> Markup {
    html! {
        " " code.kind { (finding.kind.name()) }
        ul.evidence {
            @for line in &finding.evidence { li { (line) } }
            li { (format!("confidence: {:.0}%", finding.confidence * 100.0)) "; remedy: " (finding.remedy) }
        }
    }
}
