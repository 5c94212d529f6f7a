// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exact words and figures, for whoever is to mend it.

use crate::layout::Layout;
use crate::text::text;
use maud::{Markup, html};
use tipme_analysis::model::{Interval, Verdict};

/// The verdict as `tipme diagnose` prints it, and how to get at more.
pub fn section(verdict: &Verdict) -> Markup {
    let id = &verdict.incident.id;
    html! {
        section aria-labelledby="engineers" {
            h2 #engineers { "For engineers" }
            pre.verdict tabindex="0" role="group" aria-label="The verdict as text" { (text(verdict, &Layout { verbose: true, ..Layout::default() })) }
            @if let Some(interval) = &verdict.interval { (facts(interval)) }
            p { "More of the same incident:" }
            pre tabindex="0" role="group" aria-label="Commands" { code { (commands(id)) } }
        }
    }
}

/// Commands, with what they give in a column of its own.
fn commands(id: &str) -> String {
    let lines = [
        (format!("tipme diagnose {id} --json"), "this verdict as data"),
        (format!("tipme diagnose {id} --interactions"), "every key and click with its latency"),
        ("tipme scrub FILE COPY".to_owned(), "a copy that can be given away"),
    ];
    let width = lines.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    lines.map(|(command, what)| format!("{command:width$}  # {what}")).join("\n")
}

fn facts(interval: &Interval) -> Markup {
    let facts = [
        ("interval", format!("{} to {} ns (CLOCK_MONOTONIC)", interval.start_ns, interval.end_ns)),
        ("class", interval.class.clone()),
        ("milestone", interval.milestone.clone()),
        ("joined", interval.join.clone()),
        ("client", format!("{} (pid {})", interval.client.comm, interval.client.pid)),
        ("command line", interval.client.cmdline.clone()),
    ];
    html! {
        dl {
            @for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) { dt { (name) } dd { (value) } }
        }
    }
}
