// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs that used the machine meanwhile.

use crate::figures::span;
use crate::page::budget::figure;
use crate::page::head::swatch;
use maud::{Markup, html};
use tipme_analysis::scene::{JobUse, Scene};

/// Renders the jobs with the most CPU time.
pub(super) fn section(scene: &Scene) -> Markup {
    html! {
        @if !scene.jobs.is_empty() {
            section aria-labelledby="jobs" {
                h2 #jobs { "What else the machine did" }
                div.wide tabindex="0" role="group" aria-label="Jobs" {
                    table {
                        thead { tr {
                            th scope="col" { "job" } th.number scope="col" { "CPU time" }
                            th.number.meter scope="col" { "of all CPUs" } th.number scope="col" { "disk" }
                        } }
                        tbody { @for job in &scene.jobs { (line(job)) } }
                    }
                }
            }
        }
    }
}

fn line(job: &JobUse) -> Markup {
    let percent = (job.cpu_share * 100.0).clamp(0.0, 100.0);
    html! {
        tr {
            th scope="row" { (swatch(job.look)) (job.name) }
            td.number { (span(job.cpu_ms)) }
            td.number.meter {
                (format!("{percent:.1}%"))
                svg width="100%" height="4" aria-hidden="true" {
                    rect.{ "look-" (job.look.name()) } width={ (figure(percent)) "%" } height="4" {}
                }
            }
            td.number { @if job.disk_bytes > 0 { (bytes(job.disk_bytes)) } @else { "–" } }
        }
    }
}

/// Formats `1.2 GiB`.
fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1_024.0 {
            return format!("{value:.*} {unit}", usize::from(unit != "B"));
        }
        value /= 1_024.0;
    }
    format!("{value:.1} TiB")
}
