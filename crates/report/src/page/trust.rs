// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reliability of the page: losses, unattributed time, and the overhead of recording.

use crate::figures::{percent, span};
use maud::{Markup, html};
use std::collections::BTreeMap;
use tipme_analysis::model::Verdict;
use tipme_analysis::scene::{ProgramUse, Scene};

/// Renders notes, losses and overhead.
pub(super) fn section(scene: &Scene) -> Markup {
    let verdict = &scene.verdict;
    html! {
        section aria-labelledby="trust" {
            h2 #trust { "How far to trust this" }
            ul {
                li { "The recording covers the last " (span(verdict.incident.window_s * 1e3)) " before the mark." }
                @for line in losses(verdict) { li { (line) } }
                @if let Some(interval) = &verdict.interval {
                    li { "Recording itself added " (span(verdict.overhead_ms)) " to the wait ("
                        (format!("{:.3}%", percent(verdict.overhead_ms, interval))) ")." }
                    @if interval.join == "speculative" { li { "Input and drawing were matched by time only." } }
                }
                @for note in &verdict.notes { li { (note) } }
            }
            @if !scene.programs.is_empty() { (programs(&scene.programs)) }
        }
    }
}

/// Maximum number of loss classes listed; the recorder has three.
const CLASSES_MAX: usize = 8;

/// Lists the losses by class.
fn losses(verdict: &Verdict) -> Vec<String> {
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    for loss in &verdict.incident.losses {
        let count = lost.entry(&loss.class).or_default();
        *count = count.saturating_add(loss.count);
    }
    if lost.is_empty() {
        return vec!["No record was lost.".to_owned()];
    }
    lost.into_iter()
        .take(CLASSES_MAX)
        .map(|(class, count)| format!("{count} records of class {class} in the window were lost."))
        .collect()
}

fn programs(programs: &[ProgramUse]) -> Markup {
    html! {
        details.long {
            summary { "Cost of each kernel program of the recorder on this machine" }
            div.wide tabindex="0" role="group" aria-label="Kernel programs" {
                table {
                    thead { tr {
                        th scope="col" { "program" } th.number scope="col" { "runs per second" }
                        th.number scope="col" { "ns per run" }
                    } }
                    tbody { @for program in programs {
                        tr {
                            th scope="row" { (program.name) }
                            td.number { (format!("{:.0}", program.runs_per_second)) }
                            td.number { (format!("{:.0}", program.ns_per_run)) }
                        }
                    } }
                }
            }
        }
    }
}
