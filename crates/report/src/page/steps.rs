// SPDX-License-Identifier: MIT OR Apache-2.0
//! The chain in words, for screen readers and for engineers.

use crate::figures::span;
use maud::{Markup, html};
use tipme_analysis::model::{Interval, Step, Verdict};
use tipme_measure::ms;

/// Renders the steps of the chain.
pub(super) fn section(verdict: &Verdict, interval: &Interval) -> Markup {
    html! {
        @if !verdict.chain.is_empty() {
            section.long aria-labelledby="steps" {
                h2 #steps { "The same in words, step by step" }
                details {
                    summary { (verdict.chain.len()) " steps from the input to its answer" }
                    div.wide tabindex="0" role="group" aria-label="Steps" {
                        table {
                            thead { tr {
                                th.number scope="col" { "after" } th.number scope="col" { "for" }
                                th scope="col" { "thread" } th scope="col" { "activity" } th scope="col" { "ended by" }
                            } }
                            tbody { @for step in &verdict.chain { (line(step, interval)) } }
                        }
                    }
                }
            }
        }
    }
}

fn line(step: &Step, interval: &Interval) -> Markup {
    html! {
        tr {
            td.number { (span(ms(step.start_ns.saturating_sub(interval.start_ns)))) }
            td.number { (span(ms(step.end_ns.saturating_sub(step.start_ns)))) }
            td { (step.comm) " (pid " (step.pid) ")" }
            td { (step.detail) }
            td { (step.woken_by.as_deref().unwrap_or_default()) }
        }
    }
}
