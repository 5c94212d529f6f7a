// SPDX-License-Identifier: MIT OR Apache-2.0
//! A verdict as one HTML page, with the activity around its interval.
//!
//! The page is self-contained: style, script and data are embedded, and its policy forbids the
//! browser to run or load anything else. Data from an incident are only ever text or numbers: the
//! markup escapes them, and the embedded data cannot close their element.

mod budget;
mod data;
mod engineers;
mod frame;
mod head;
mod jobs;
mod picture;
mod remedy;
mod results;
mod steps;
mod timeline;
mod trust;
mod usual;

use frame::{SCRIPT, frame};
use maud::{Markup, html};
pub use results::{ResultsPage, results};
use tipme_analysis::scene::Scene;

/// Draws the timeline of an incident as an SVG.
pub fn picture(scene: &Scene) -> String {
    picture::picture(scene, &head::title(&scene.verdict))
}

/// Renders the page of an incident.
pub fn page(scene: &Scene) -> String {
    let title = head::title(&scene.verdict);
    let data = data::json(scene);
    let body = html! {
        header { (head::head(scene)) }
        main { (sections(scene)) }
        footer { p { (head::privacy()) } }
        script type="application/json" id="data" { (maud::PreEscaped(&data)) }
        script { (maud::PreEscaped(SCRIPT)) }
    };
    frame(&title, &body)
}

fn sections(scene: &Scene) -> Markup {
    let verdict = &scene.verdict;
    html! {
        @if let Some(interval) = &verdict.interval {
            (head::remedy(verdict, interval))
            (head::others(verdict))
            (budget::section(verdict, interval))
            (timeline::section(scene))
            (steps::section(verdict, interval))
            (usual::section(scene, interval))
            (jobs::section(scene))
        }
        (trust::section(scene))
        (engineers::section(verdict))
    }
}
