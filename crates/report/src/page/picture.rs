// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timeline of an incident as one SVG for documents: the same as on its page, with the states of
//! all programs.

use crate::figures::span;
use crate::page::frame::STYLE;
use crate::plot::words::plain;
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeSet;
use tipme_analysis::scene::{Bar, Curve, Look, Scene, Track, TrackGroup};

/// Dimensions of the picture and its parts, in pixels.
const WIDTH: f64 = 1_200.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = 16.0;
const ROW: f64 = 16.0;
const TITLE: f64 = 22.0;
const CURVE: f64 = 32.0;
const LEGEND_COLUMN: f64 = 220.0;
/// Maximum number of characters of a row's name and of the title.
const NAME_CHARS: usize = 34;
const TITLE_CHARS: usize = 120;
/// Maximum number of labels on the axis, and digits of their steps.
const TICKS: u64 = 8;
const ROUND: [u64; 3] = [1, 2, 5];

/// Part of the picture with its height.
struct PicturePart {
    height: f64,
    markup: Markup,
}

/// Draws the timeline with title and legend.
pub(super) fn picture(scene: &Scene, title: &str) -> String {
    let mut parts = vec![PicturePart { height: 0.0, markup: html! {} }];
    let mut group = None;
    for (of, part) in rows(scene) {
        if group.replace(of) != Some(of) {
            parts.push(heading(of));
        }
        parts.push(part);
    }
    parts.push(legend(scene));
    let top = 56.0;
    let height = top + parts.iter().map(|part| part.height).sum::<f64>() + 8.0;
    let mut at = top;
    let placed = parts.iter().map(|part| {
        let y = at;
        at += part.height;
        html! { g transform=(format!("translate(0 {y})")) { (part.markup) } }
    });
    let body = html! {
        rect width="100%" height="100%" fill=(colour("paper")) {}
        text x="16" y="24" font-size="16" font-weight="600" fill=(colour("ink")) { (plain(title, TITLE_CHARS)) }
        (axis(scene, top, height))
        @for part in placed { (part) }
    };
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}")) width=(WIDTH) height=(height)
            font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="11" { (body) }
    };
    svg.into_string()
}

/// Draws all tracks and curves in the order of their groups.
fn rows(scene: &Scene) -> Vec<(TrackGroup, PicturePart)> {
    let tracks = scene.tracks.iter().map(|one| (one.group, track(scene, one)));
    let curves = scene.curves.iter().map(|one| (one.group, curve(scene, one)));
    let mut rows: Vec<_> = tracks.chain(curves).collect();
    rows.sort_by_key(|(group, _)| *group);
    rows
}

/// Returns a colour of the page's light style; black if there is none of that name.
fn colour(name: &str) -> &'static str {
    let value = STYLE.split_once(&format!("--{name}: ")).map(|(_, rest)| rest);
    value.and_then(|rest| rest.split(';').next()).unwrap_or("#000000")
}

fn length_us(scene: &Scene) -> u64 {
    since_start_us(scene, scene.to_ns).max(1)
}

fn since_start_us(scene: &Scene, ns: u64) -> u64 {
    ns.saturating_sub(scene.from_ns) / 1_000
}

fn x(scene: &Scene, us: u64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * us as f64 / length_us(scene) as f64
}

fn heading(group: TrackGroup) -> PicturePart {
    let markup = html! { text x="16" y=(TITLE - 6.0) font-weight="600" fill=(colour("soft")) { (group.title()) } };
    PicturePart { height: TITLE, markup }
}

fn row_name(text: &str, height: f64) -> Markup {
    html! {
        text x=(LEFT - 8.0) y=(height / 2.0 + 4.0) text-anchor="end" fill=(colour("ink")) { (plain(text, NAME_CHARS)) }
    }
}

fn track(scene: &Scene, track: &Track) -> PicturePart {
    let looks: BTreeSet<Look> = track.bars.iter().map(|bar| bar.look).collect();
    let markup = html! {
        (row_name(&track.name, ROW))
        @for look in looks { path fill=(colour(look.name())) d=(shapes(scene, &track.bars, look)) {} }
    };
    PicturePart { height: ROW, markup }
}

/// Draws the bars of a look as one path. A merged bar is as high as the share of the time to which
/// its look applies.
fn shapes(scene: &Scene, bars: &[Bar], look: Look) -> String {
    let mut path = String::new();
    for bar in bars.iter().filter(|bar| bar.look == look) {
        let (lo, hi) = (x(scene, bar.from_us), x(scene, bar.from_us + bar.length_us));
        let high = (ROW - 2.0) * f64::from(bar.percent) / 100.0;
        path += &format!(
            "M{lo:.1} {:.1}h{:.1}v{high:.1}H{lo:.1}z",
            ROW - 1.0 - high,
            (hi - lo).max(0.5)
        );
    }
    path
}

fn curve(scene: &Scene, curve: &Curve) -> PicturePart {
    let sums = (0..curve.steps.len()).map(|step| {
        curve.series.iter().map(|one| one.values.get(step).copied().unwrap_or(0.0)).sum::<f32>()
    });
    let most = sums.fold(if curve.unit == "%" { 100.0 } else { 1.0 }, f32::max);
    let mut below = vec![0.0_f64; curve.steps.len()];
    let areas: Vec<Markup> = curve
        .series
        .iter()
        .map(|series| {
            let mut path = String::new();
            for ((step, value), below) in curve.steps.iter().zip(&series.values).zip(&mut below) {
                let high = f64::from(value / most) * (CURVE - 4.0);
                let (lo, hi) = (x(scene, step.0), x(scene, step.1));
                *below += high;
                path += &format!(
                    "M{lo:.1} {:.1}h{:.1}v{high:.1}H{lo:.1}z",
                    CURVE - 2.0 - *below,
                    (hi - lo).max(0.5)
                );
            }
            html! { path fill=(colour(series.look.name())) d=(path) {} }
        })
        .collect();
    let markup = html! { (row_name(&curve.name, CURVE)) @for area in areas { (area) } };
    PicturePart { height: CURVE, markup }
}

/// Draws the interval as a lighter field, with the time since its start.
fn axis(scene: &Scene, top: f64, height: f64) -> Markup {
    let wait = scene.verdict.interval.as_ref().map_or((0, 0), |interval| {
        (since_start_us(scene, interval.start_ns), since_start_us(scene, interval.end_ns))
    });
    let (from, to) = (x(scene, wait.0), x(scene, wait.1.min(length_us(scene))));
    let step = tick_step(length_us(scene));
    let ticks =
        (0..).map(|count| count * step).take_while(|after| wait.0 + after <= length_us(scene));
    html! {
        rect x=(from) y=(top) width=((to - from).max(1.0)) height=(height - top) fill=(colour("wait")) {}
        @for after in ticks {
            @let at = x(scene, wait.0 + after);
            line x1=(at) x2=(at) y1=(top - 4.0) y2=(height) stroke=(colour("line")) {}
            text x=(at) y=(top - 8.0) text-anchor="middle" fill=(colour("soft")) {
                @if after == 0 { "0" } @else { (span(after as f64 / 1_000.0)) }
            }
        }
    }
}

/// Returns the distance between two labels in microseconds: one, two or five times a power of ten.
fn tick_step(length_us: u64) -> u64 {
    let steps = (0..15).flat_map(|power| ROUND.map(|round| round * 10_u64.pow(power)));
    steps.into_iter().find(|step| length_us / step <= TICKS).unwrap_or(length_us)
}

fn legend(scene: &Scene) -> PicturePart {
    let bars = scene.tracks.iter().flat_map(|track| track.bars.iter().map(|bar| bar.look));
    let used: BTreeSet<Look> = bars.collect();
    let shown: Vec<_> = Look::ALL.iter().filter(|(look, ..)| used.contains(look)).collect();
    let columns = ((WIDTH - 16.0) / LEGEND_COLUMN) as usize;
    let markup = html! {
        @for (at, (look, _, words)) in shown.iter().enumerate() {
            @let left = 16.0 + LEGEND_COLUMN * (at % columns) as f64;
            @let top = 16.0 + ROW * (at / columns) as f64;
            rect x=(left) y=(top) width="11" height="11" fill=(colour(look.name())) {}
            text x=(left + 17.0) y=(top + 10.0) fill=(colour("ink")) { (words) }
        }
    };
    PicturePart {
        height: 16.0 + ROW * shown.len().div_ceil(columns) as f64,
        markup: PreEscaped(markup.into_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_has_a_colour_for_each_look() {
        assert!(
            Look::ALL.iter().all(|(look, ..)| colour(look.name()).starts_with('#')
                && colour(look.name()) != "#000000")
        );
    }

    #[test]
    fn labels_are_few_and_round() {
        assert_eq!([9, 80, 1_700_000, 40_000_000].map(tick_step), [2, 10, 200_000, 5_000_000]);
    }
}
