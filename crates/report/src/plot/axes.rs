// SPDX-License-Identifier: MIT OR Apache-2.0
//! Axes with their grid, and curves in an area.

use super::page::{Anchor, Area, PAGE_WIDTH, Page, SMALL_SIZE, TEXT_SIZE, font, pixel};
use super::palette::{GRID, INK, colour, dashes};
use super::scale::{AxisTick, Scale};
use super::words::{duration, width};

/// Minimum distance in pixels between the labels of an axis.
const ROOM_X: f64 = 70.0;
const ROOM_Y: f64 = 26.0;
/// Style of a threshold line.
pub(super) const DASHES: &str = r#" stroke-dasharray="6 4""#;

/// Axis with its name and unit.
pub(super) struct Axis<'a> {
    pub scale: Scale,
    pub name: &'a str,
}

/// Draws both axes of an area with all labels.
pub(super) fn draw(page: &mut Page, area: &Area, across: &Axis<'_>, upwards: &Axis<'_>) {
    draw_upwards(page, area, upwards);
    draw_across(page, area, &across.scale);
    name_across(page, area, across);
}

/// Draws the vertical axis.
pub(super) fn draw_upwards(page: &mut Page, area: &Area, axis: &Axis<'_>) {
    for AxisTick { share, label } in axis.scale.ticks(area.height, ROOM_Y) {
        let y = area.y(share);
        page.line((area.left, y), (area.right(), y), &grid(&label));
        page.line((area.left - tick_length(&label), y), (area.left, y), &ink());
        if !label.is_empty() {
            page.text((area.left - 8.0, y + 4.0), Anchor::End, &font(SMALL_SIZE), &label);
        }
    }
    page.line((area.left, area.top), (area.left, area.bottom()), &ink());
    page.text_upwards(area, axis.name);
}

/// Draws the grid of the horizontal axis and its ticks, without labels.
pub(super) fn draw_across(page: &mut Page, area: &Area, scale: &Scale) {
    for AxisTick { share, label } in scale.ticks(area.width, ROOM_X) {
        let x = area.x(share);
        page.line((x, area.top), (x, area.bottom()), &grid(&label));
        page.line((x, area.bottom()), (x, area.bottom() + tick_length(&label)), &ink());
    }
    page.line((area.left, area.bottom()), (area.right(), area.bottom()), &ink());
}

/// Draws the labels and the name of the horizontal axis. A label that would touch the previous one
/// is left out.
pub(super) fn name_across(page: &mut Page, area: &Area, axis: &Axis<'_>) {
    let mut taken = 0.0;
    for AxisTick { share, label } in axis.scale.ticks(area.width, ROOM_X) {
        let half = width(&label, SMALL_SIZE) / 2.0;
        let x = area.x(share);
        if !label.is_empty() && x - half > taken && x + half <= PAGE_WIDTH {
            page.text((x, area.bottom() + 19.0), Anchor::Middle, &font(SMALL_SIZE), &label);
            taken = x + half + 4.0;
        }
    }
    page.text((area.x(0.5), area.bottom() + 38.0), Anchor::Middle, &font(TEXT_SIZE), axis.name);
    page.skip(44.0);
}

fn grid(label: &str) -> String {
    let opacity = if label.is_empty() { r#" stroke-opacity="0.5""# } else { "" };
    format!(r#"stroke="{GRID}"{opacity}"#)
}

fn tick_length(label: &str) -> f64 {
    if label.is_empty() { 2.0 } else { 5.0 }
}

fn ink() -> String {
    format!(r#"stroke="{INK}""#)
}

/// Draws a dashed line across an area. Its value stands beside the area, so that it hides no data.
pub(super) fn threshold(page: &mut Page, area: &Area, scale: &Scale, ms: f64) {
    let y = area.y(scale.share(ms));
    let style = format!(r#"stroke="{INK}" stroke-width="1.5"{DASHES}"#);
    page.line((area.left, y), (area.right(), y), &style);
    page.text((area.right() + 4.0, y + 4.0), Anchor::Start, &font(SMALL_SIZE), &duration(ms));
}

/// Draws a curve that rises in steps, from shares; `more` replaces its own dashes.
pub(super) fn stairs(
    page: &mut Page,
    area: &Area,
    points: &[(f64, f64)],
    index: usize,
    more: &str,
) {
    let mut data = String::new();
    for (x, y) in points {
        let (x, y) = (pixel(area.x(*x)), pixel(area.y(*y)));
        data.push_str(&if data.is_empty() { format!("M{x} {y}") } else { format!("H{x}V{y}") });
    }
    page.path(&data, &curve_style(index, more));
}

/// Draws a curve of straight segments, from shares.
pub(super) fn slopes(page: &mut Page, area: &Area, points: &[(f64, f64)], index: usize) {
    let mut data = String::new();
    for (x, y) in points {
        let command = if data.is_empty() { 'M' } else { 'L' };
        data.push_str(&format!("{command}{} {}", pixel(area.x(*x)), pixel(area.y(*y))));
    }
    page.path(&data, &curve_style(index, ""));
}

fn curve_style(index: usize, more: &str) -> String {
    let dashes = if more.is_empty() { dashes(index) } else { more };
    format!(
        r#"fill="none" stroke="{}" stroke-width="1.8" stroke-linejoin="round"{dashes}"#,
        colour(index)
    )
}

/// Draws a dot at the end of a curve, from shares.
pub(super) fn dot(page: &mut Page, area: &Area, (x, y): (f64, f64), index: usize) {
    let (x, y) = (area.x(x), area.y(y));
    page.rect((x - 2.5, y - 2.5, 5.0, 5.0), &format!(r#"rx="2.5" fill="{}""#, colour(index)));
}
