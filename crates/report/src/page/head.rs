// SPDX-License-Identifier: MIT OR Apache-2.0
//! First screen: the headline, the user's words, and the remedy.

use crate::figures::span;
use crate::kinds;
use crate::notice::notice;
use crate::page::remedy as commands;
use crate::sentence;
use crate::text::{at, candidate, listed, usual_in_words};
use maud::{Markup, html};
use tipme_analysis::model::{About, CauseKind, Culprit, Finding, Interval, Verdict};
use tipme_analysis::scene::{Look, Scene};

/// Returns the verdict in a few words.
pub(super) fn title(verdict: &Verdict) -> String {
    notice(verdict).summary
}

/// Renders the headline, its cause, and the user's words.
pub(super) fn head(scene: &Scene) -> Markup {
    let verdict = &scene.verdict;
    html! {
        p.about { (about(&verdict.incident)) }
        h1 { (title(verdict)) }
        @match &verdict.interval {
            Some(interval) if interval.exceeded => { (cause(verdict, interval)) }
            _ => p.lead { (notice(verdict).body) },
        }
        (user_words(&verdict.incident))
    }
}

fn about(incident: &About) -> Markup {
    let machine = &incident.machine;
    let cpus =
        if machine.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", machine.cpus) };
    html! {
        b { "tipme" } " · " time datetime=(incident.time) { (incident.time.replace('T', " ").replace('Z', " UTC")) }
        @for part in [machine.hostname.as_str(), machine.kernel.as_str(), &cpus] {
            @if !part.is_empty() { " · " (part) }
        }
    }
}

fn cause(verdict: &Verdict, interval: &Interval) -> Markup {
    let usual = format!("Usual time: {}.", usual_in_words(verdict.baseline.as_ref()));
    html! {
        p.lead { (sentence::cause(verdict, interval)) }
        @match verdict.findings.first() {
            Some(first) => p.plain { (kinds::about(first.kind).what) " " (usual) },
            None => p.plain { (usual) },
        }
    }
}

fn user_words(incident: &About) -> Markup {
    let right = incident
        .user_right
        .map(|right| if right { "It was this." } else { "It was something else." });
    html! {
        @if !incident.user_text.is_empty() || right.is_some() {
            figure.said {
                figcaption { "What you said" }
                @if !incident.user_text.is_empty() { blockquote { (incident.user_text) } }
                @if let Some(right) = right { p { "Was this the cause? " b { (right) } } }
            }
        }
    }
}

/// Renders the remedy for the first cause, its state at the mark, and ways to reproduce it.
pub(super) fn remedy(verdict: &Verdict, interval: &Interval) -> Markup {
    html! {
        @if let Some(first) = verdict.findings.first() {
            section.try aria-labelledby="try" {
                h2 #try { "Try this" }
                p { (commands::sentence(&first.remedy)) }
                @if let Some(command) = commands::first(&first.remedy) { (commands::to_copy(command)) }
                h3 { "Is it still happening?" }
                p { (state_at_mark(verdict, interval)) }
                @if let Some((what, command)) = status_command(first) {
                    p { (what) }
                    (commands::to_copy(&command))
                }
                (reproduction(first))
            }
        }
    }
}

/// Describes the state at the mark; a page cannot know more.
fn state_at_mark(verdict: &Verdict, interval: &Interval) -> String {
    let mark = verdict.incident.mark_ns;
    if interval.censored || interval.milestone == "hanging" {
        return "It was still going on at the mark.".to_owned();
    }
    match mark.checked_sub(interval.end_ns) {
        Some(since) if mark > 0 => {
            format!("This wait ended {} before the mark.", span(tipme_measure::ms(since)))
        }
        _ => "This wait was over at the mark.".to_owned(),
    }
}

/// Command that shows the state of the processes with the ids that follow.
const PS: &str = "ps -o pid,stat,etime,pcpu,comm -p";

/// Returns a command that shows the current state of the culprit, with a description. There is none
/// for a process that has ended.
fn status_command(first: &Finding) -> Option<(String, String)> {
    if first.kind == CauseKind::Stopped {
        let stopped = commands::first(&first.remedy)?.strip_prefix("kill -CONT ")?;
        return Some((
            format!("To see whether process {stopped} is still stopped (T in the column STAT):"),
            format!("{PS} {stopped}"),
        ));
    }
    let Culprit::Process { pid, comm, .. } = &first.culprit else { return None };
    let is_gone =
        first.remedy.contains("has ended") || first.kind == CauseKind::Unattributed || *pid == 0;
    let what = format!("To see whether {comm} is still running, and how much CPU it uses:");
    (!is_gone).then(|| (what, format!("{PS} {pid}")))
}

/// Renders the other delays that the user may mean.
pub(super) fn others(verdict: &Verdict) -> Markup {
    let (title, others) = listed(verdict);
    html! {
        @if !others.is_empty() {
            section aria-labelledby="others" {
                h2 #others { (title) }
                ul {
                    @for other in others {
                        li { (candidate(other)) ": " code { (at(verdict, other)) } }
                    }
                }
            }
        }
    }
}

fn reproduction(first: &Finding) -> Markup {
    html! {
        details {
            summary { "How to reproduce it" }
            @match kinds::about(first.kind).fault {
                Some(fault) => {
                    p { "This injects a fault of the same kind on a private display and diagnoses it:" }
                    pre { code { "sudo tipme selftest " (fault) } }
                }
                None => p { "tipme cannot inject a fault of this kind. Repeat what you did, and press the hot key." },
            }
            p { "To see whether a remedy helps, repeat what you did and compare:" }
            pre { code { "tipme mark -m \"after the remedy\"\ntipme diagnose" } }
        }
    }
}

/// Describes the contents of the page with regard to privacy.
pub(super) fn privacy() -> &'static str {
    "Made by tipme. This page is self-contained and loads nothing from the network. It names \
     programs, files and hosts of this machine, but contains no pressed keys and no text. Check it \
     before you share it: tipme scrub makes a copy of the incident without such names, and tipme \
     report turns that into a page."
}

/// Draws a small box in the colour of a look.
pub(super) fn swatch(look: Look) -> Markup {
    let class = format!("look-{}", look.name());
    html! { svg.swatch width="12" height="12" aria-hidden="true" { rect.(class) width="12" height="12" {} } }
}
