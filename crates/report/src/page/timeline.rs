// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timeline of the incident: instructions, the element that the page's script draws into, and the
//! legend.

use crate::page::head::swatch;
use maud::{Markup, html};
use std::collections::BTreeSet;
use tipme_analysis::scene::{Look, Scene, TrackGroup};

const HOW: &str = "Time runs from left to right; the lighter field is the wait. Point at a bar, or \
    select it with the arrow keys, to see its details.";
const KEYS: &str = "Keys: ← → next bar, ↑ ↓ next line, + − zoom, Shift+← → move, 0 show all, \
    Esc clear the selection. Mouse: drag to move, double-click or Ctrl+wheel to zoom.";

/// Renders the element for the tracks, with its legend.
pub(super) fn section(scene: &Scene) -> Markup {
    html! {
        section aria-labelledby="timeline-title" {
            h2 #timeline-title { "What happened" }
            p { (HOW) }
            div.tools hidden {
                button type="button" data-do="in" { "Zoom in" }
                button type="button" data-do="out" { "Zoom out" }
                button type="button" data-do="left" { "Earlier" }
                button type="button" data-do="right" { "Later" }
                button type="button" data-do="all" { "All" }
                button type="button" data-do="wait" { "The wait" }
                @if scene.tracks.iter().any(|track| track.group == TrackGroup::Others) {
                    button type="button" data-do="others" aria-pressed="false" { "All programs" }
                }
            }
            noscript { p { "The timeline needs JavaScript, which is disabled here; the steps are listed below." } }
            div #timeline tabindex="0" role="application" aria-roledescription="timeline" aria-describedby="keys"
                aria-label="Timeline of the wait" {}
            p #evidence role="status" {}
            p #keys.hint { (KEYS) }
            (legend(scene))
            @for note in &scene.left_out { p.hint { "Not shown: " (note) } }
        }
    }
}

fn legend(scene: &Scene) -> Markup {
    let bars = scene
        .tracks
        .iter()
        .flat_map(|track| track.bars.iter().map(|bar| bar.look).chain(track.look));
    let curves =
        scene.curves.iter().flat_map(|curve| curve.series.iter().map(|series| series.look));
    let used: BTreeSet<Look> = bars.chain(curves).collect();
    let shown = Look::ALL.iter().filter(|(look, ..)| used.contains(look));
    html! {
        ul.legend aria-label="Colours" { @for (look, _, words) in shown { li { (swatch(*look)) (words) } } }
    }
}
