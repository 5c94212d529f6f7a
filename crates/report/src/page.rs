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
use maud::{Markup, PreEscaped, html};
pub use results::{ResultsPage, results};
use tipme_analysis::scene::Scene;
use tipme_record::text::isolated;

/// Draws the timeline of an incident as an SVG.
pub fn picture(scene: &Scene) -> String {
    picture::picture(scene, &head::title(&scene.verdict))
}

/// Renders the page of an incident.
pub fn page(scene: &Scene) -> String {
    let title = isolated(&head::title(&scene.verdict));
    let data = data::json(scene);
    let body = html! {
        header { (isolated_text(&head::head(scene))) }
        main { (isolated_text(&sections(scene))) }
        footer { p { (head::privacy()) } }
        script type="application/json" id="data" { (PreEscaped(&data)) }
        script { (PreEscaped(SCRIPT)) }
    };
    frame(&title, &body)
}

/// Isolates right-to-left names in the text of markup, except for code, which is copied.
fn isolated_text(markup: &Markup) -> Markup {
    let mut is_code = false;
    let pieces = markup.0.split('<').map(|piece| {
        // Only tags contain a `>`.
        let (tag, text) = piece.split_at(piece.find('>').map_or(0, |end| end + 1));
        is_code = if tag.ends_with("code>") { tag == "code>" } else { is_code };
        tag.to_owned() + &if is_code { text.to_owned() } else { isolated(text) }
    });
    PreEscaped(pieces.collect::<Vec<_>>().join("<"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_isolated_in_text_but_not_in_code() {
        let name = "שלום";
        let markup = html! { p title=(name) { "of " (name) ": " b { (name) } } pre { code { "kill " (name) } } };
        let shown = "<p title=\"שלום\">of \u{2068}שלום\u{2069}: <b>\u{2068}שלום\u{2069}</b></p>\
                     <pre><code>kill שלום</code></pre>";
        assert_eq!(isolated_text(&markup).0, shown);
    }
}
