// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms below each other on the same axes, for comparing before and after.

use super::axes::{self, Axis};
use super::buckets;
use super::page::{Area, PLOT_WIDTH, Page, pixel};
use super::palette::colour;
use super::scale::Scale;
use super::values::{extremes, sorted};
use super::words::number;
use super::{Figure, LatencySet};

/// Height of one of several panels, and of a single one.
const PANEL_HEIGHT: f64 = 120.0;
const ALONE_HEIGHT: f64 = 260.0;

/// Plots the number of events by latency in buckets, on a logarithmic axis; empty buckets stay
/// blank.
pub fn histograms(figure: &Figure<'_>, sets: &[LatencySet], bucket_ms: f64) -> String {
    let bucket = buckets::usable(bucket_ms);
    let mut page = Page::new(figure);
    let (sets, remarks) = sorted(sets);
    page.remark(&remarks);
    let Some((least, most)) = extremes(&sets) else { return page.nothing("no events") };
    let across = Scale::around(
        bucket * buckets::place(least, bucket) as f64,
        bucket * (buckets::place(most, bucket) as f64 + 1.0),
    );
    let counts: Vec<Vec<(u64, u64)>> =
        sets.iter().map(|set| buckets::counts(&set.values, bucket)).collect();
    let upwards =
        Scale::counts(counts.iter().flatten().map(|(_, count)| *count).max().unwrap_or(0));
    let height = if sets.len() == 1 { ALONE_HEIGHT } else { PANEL_HEIGHT };
    let mut area = None;
    for (index, (set, counts)) in sets.iter().zip(&counts).enumerate() {
        page.caption(&set.extent());
        let panel = page.area(height);
        draw_panel(&mut page, &panel, &Panel { counts, bucket, across, upwards, index });
        area = Some(panel);
    }
    let (what, width) = (figure.quantity.name(), number(bucket));
    let name = format!("{what}, ms, in buckets of {width} ms{}", crowded(&across, bucket));
    if let Some(last) = area {
        axes::name_across(&mut page, &last, &Axis { scale: across, name: &name });
    }
    page.finish()
}

struct Panel<'a> {
    counts: &'a [(u64, u64)],
    bucket: f64,
    across: Scale,
    upwards: Scale,
    index: usize,
}

/// Returns a remark for the axis if a bucket is narrower than a pixel.
fn crowded(across: &Scale, bucket: f64) -> String {
    let per_pixel = across.span() / bucket / PLOT_WIDTH;
    if per_pixel <= 1.0 {
        String::new()
    } else {
        format!(" (the fullest of each {} is drawn)", number(per_pixel.ceil()))
    }
}

fn draw_panel(page: &mut Page, area: &Area, panel: &Panel<'_>) {
    if panel.counts.is_empty() {
        page.empty(area, "no events");
        return;
    }
    axes::draw_upwards(page, area, &Axis { scale: panel.upwards, name: "events" });
    axes::draw_across(page, area, &panel.across);
    let columns: String = columns(area, panel)
        .into_iter()
        .map(|(x, width, top)| block(area, x, width, top))
        .collect();
    page.path(&columns, &format!(r#"fill="{}""#, colour(panel.index)));
}

/// Returns left edge, width and top of each column in pixels. Of buckets that share a pixel, only
/// the fullest is drawn.
fn columns(area: &Area, panel: &Panel<'_>) -> Vec<(f64, f64, f64)> {
    let width = area.width * panel.bucket / panel.across.span();
    let mut out: Vec<(f64, f64, f64)> = Vec::new();
    for (at, count) in panel.counts {
        let left = area.x(panel.across.share(*at as f64 * panel.bucket));
        let left = if width < 1.0 { left.floor() } else { left };
        let top = area.y(panel.upwards.share(*count as f64));
        match out.last_mut() {
            Some((known, _, highest)) if *known == left => *highest = highest.min(top),
            _ => out.push((left, shown_width(width), top)),
        }
    }
    out
}

/// Returns the drawn width; wide columns leave a gap.
fn shown_width(width: f64) -> f64 {
    if width > 4.0 { width - 1.0 } else { width.max(1.0) }
}

fn block(area: &Area, x: f64, width: f64, top: f64) -> String {
    format!(
        "M{} {}V{}h{}V{}Z",
        pixel(x),
        pixel(area.bottom()),
        pixel(top),
        pixel(width),
        pixel(area.bottom())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_buckets_in_one_pixel_the_fullest_is_drawn() {
        let area = Area { left: 0.0, top: 0.0, width: 100.0, height: 100.0 };
        let counts: Vec<(u64, u64)> = (0..10_000).map(|at| (at, 1 + at % 50)).collect();
        let (across, upwards) = (Scale::linear(0.0, 10_000.0), Scale::counts(50));
        let columns =
            columns(&area, &Panel { counts: &counts, bucket: 1.0, across, upwards, index: 0 });
        assert_eq!(columns.len(), 100);
        assert!(columns.iter().all(|column| column.2 == 0.0));
    }
}
