// SPDX-License-Identifier: MIT OR Apache-2.0
//! Percentiles on an axis of 1 / (1 - p), on which each further nine takes the same room.

use super::axes::{self, Axis};
use super::cumulative::begin;
use super::page::{Area, PLOT_HEIGHT, Page};
use super::scale::Scale;
use super::thin::rising;
use super::values::{Sorted, extremes};
use super::{Figure, LatencySet};

/// Minimum number of values above a reliable percentile, as for printed percentiles.
const VALUES_ABOVE: f64 = 5.0;
const DOTS: &str = r#" stroke-dasharray="2 3""#;

/// Plots times over their percentile by nearest rank, up to the largest value. Lines are dotted
/// where fewer than five values lie above.
pub fn percentiles(figure: &Figure<'_>, sets: &[LatencySet]) -> String {
    let (mut page, sets) = begin(figure, sets, Sorted::extent);
    let Some((_, most)) = extremes(&sets) else { return page.nothing("no events") };
    page.remark(&[
        "Dotted: fewer than five values lie above; the dot is the largest value.".to_owned()
    ]);
    let across = Scale::tail(sets.iter().map(|set| set.values.len()).max().unwrap_or(0));
    let upwards = Scale::up_to(most);
    let area = page.area(PLOT_HEIGHT);
    let name = "share of the events, on an axis of 1 / (1 - share)";
    let up = format!("{}, ms", figure.quantity.name());
    axes::draw(
        &mut page,
        &area,
        &Axis { scale: across, name },
        &Axis { scale: upwards, name: &up },
    );
    for (index, set) in sets.iter().enumerate().filter(|(_, set)| !set.values.is_empty()) {
        let n = set.values.len() as f64;
        let points = set.values.iter().enumerate();
        let points = points
            .map(|(below, value)| (across.share(n / (n - below as f64)), upwards.share(*value)));
        draw_curve(&mut page, &area, &rising(points), across.share(n / VALUES_ABOVE), index);
    }
    page.finish()
}

/// Draws the steps of one set, dotted from the share `dotted` on.
fn draw_curve(page: &mut Page, area: &Area, points: &[(f64, f64)], dotted: f64, index: usize) {
    let sure = points.iter().take_while(|point| point.0 <= dotted).count();
    axes::stairs(page, area, &points[..sure], index, "");
    axes::stairs(page, area, &points[sure.saturating_sub(1)..], index, DOTS);
    points.last().into_iter().for_each(|point| axes::dot(page, area, *point, index));
}
