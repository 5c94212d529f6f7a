// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact texts and figures, for engineers.

use crate::layout::Layout;
use crate::text::text;
use maud::{Markup, html};
use tipme_analysis::model::{Interval, Verdict};

/// Renders the verdict as printed by `tipme diagnose`, with commands for more details.
pub(super) fn section(verdict: &Verdict) -> Markup {
    let id = &verdict.incident.id;
    html! {
        section aria-labelledby="engineers" {
            h2 #engineers { "For engineers" }
            pre.verdict tabindex="0" role="group" aria-label="The verdict as text" { (text(verdict, &Layout { verbose: true, ..Layout::default() })) }
            @if let Some(interval) = &verdict.interval { (facts(interval)) }
            p { "More about this incident:" }
            pre tabindex="0" role="group" aria-label="Commands" { code { (commands(id)) } }
        }
    }
}

/// Maximum length of an incident's name.
const NAME_MAX: usize = 64;

/// Returns the name of an incident for a command. Names with unusual characters, which a shell
/// might interpret, are replaced by `FILE`.
fn named(id: &str) -> &str {
    let is_usual = (1..=NAME_MAX).contains(&id.len())
        && !id.starts_with('-')
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_usual { id } else { "FILE" }
}

/// Formats commands with their descriptions in a second column.
fn commands(id: &str) -> String {
    let id = named(id);
    let lines = [
        (format!("tipme diagnose {id} --json"), "this verdict as JSON"),
        (format!("tipme diagnose {id} --interactions"), "every key and click with its latency"),
        ("tipme scrub FILE COPY".to_owned(), "a copy that you can share"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_commands_are_safe_for_a_shell() {
        assert!(
            commands("20000229T235959.042Z")
                .starts_with("tipme diagnose 20000229T235959.042Z --json ")
        );
        for id in ["", "$(reboot)", "a; reboot", "a`reboot`", "--help", "größe", &"a".repeat(65)]
        {
            assert!(commands(id).starts_with("tipme diagnose FILE --json "), "{id}");
        }
    }
}
