// SPDX-License-Identifier: MIT OR Apache-2.0
//! A verdict as one page of HTML, with what happened around its interval.
//!
//! The page needs nothing from anywhere: its style, its script and its data are in it, and its policy forbids the
//! browser to run or load anything else. What comes from an incident is only ever text or numbers: the markup escapes
//! it, and the data cannot end the element that it stands in.

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

/// The timeline of an incident as a picture in SVG.
pub fn picture(scene: &Scene) -> String {
    picture::picture(scene, &head::title(&scene.verdict))
}

/// The page of an incident.
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
