// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cumulative latency of the events in order of duration, by latency and by count.

use super::axes::{self, Axis};
use super::page::{LegendEntry, PLOT_HEIGHT, Page};
use super::scale::Scale;
use super::thin::rising;
use super::values::{Sorted, extremes, sorted};
use super::{Figure, LatencySet};

const MS_PER_S: f64 = 1e3;

/// Plots the total latency of all events up to each latency. The horizontal axis is logarithmic.
pub fn cumulative_by_latency(figure: &Figure<'_>, sets: &[LatencySet]) -> String {
    let (mut page, sets) = begin(figure, sets, Sorted::summary);
    let Some((_, most)) = extremes(&sets) else { return page.nothing("no events") };
    let least = sets
        .iter()
        .filter_map(|set| set.values.iter().find(|value| **value > 0.0))
        .copied()
        .reduce(f64::min);
    let across = Scale::log(least.unwrap_or(most), most);
    let upwards = upwards(&sets);
    let area = page.area(PLOT_HEIGHT);
    let name = format!("{}, ms, logarithmic", figure.quantity.name());
    let up = format!("{}, s", figure.quantity.sum());
    axes::draw(
        &mut page,
        &area,
        &Axis { scale: across, name: &name },
        &Axis { scale: upwards, name: &up },
    );
    for (index, set) in sets.iter().enumerate() {
        let first = set.values.first().map(|value| (across.share(*value), 0.0));
        let points = sums(set).map(|(value, sum)| (across.share(value), upwards.share(sum)));
        let points = rising(first.into_iter().chain(points));
        axes::stairs(&mut page, &area, &points, index, "");
        points.last().into_iter().for_each(|point| axes::dot(&mut page, &area, *point, index));
    }
    page.finish()
}

/// Plots the total latency of the shortest event, the two shortest, and so on: the steeper the end,
/// the more a few events dominate the run. The name of a set should include the total time of its
/// run.
pub fn cumulative_by_count(figure: &Figure<'_>, sets: &[LatencySet]) -> String {
    let (mut page, sets) = begin(figure, sets, Sorted::summary);
    if extremes(&sets).is_none() {
        return page.nothing("no events");
    }
    let across = Scale::up_to(sets.iter().map(|set| set.values.len()).max().unwrap_or(0) as f64);
    let upwards = upwards(&sets);
    let area = page.area(PLOT_HEIGHT);
    let name = "events, the shortest first";
    let up = format!("{}, s", figure.quantity.sum());
    axes::draw(
        &mut page,
        &area,
        &Axis { scale: across, name },
        &Axis { scale: upwards, name: &up },
    );
    for (index, set) in sets.iter().enumerate().filter(|(_, set)| !set.values.is_empty()) {
        let points = sums(set).enumerate();
        let points = points
            .map(|(before, (_, sum))| (across.share(before as f64 + 1.0), upwards.share(sum)));
        let points = rising(std::iter::once((0.0, 0.0)).chain(points));
        axes::slopes(&mut page, &area, &points, index);
        points.last().into_iter().for_each(|point| axes::dot(&mut page, &area, *point, index));
    }
    page.finish()
}

/// Creates a page with a legend; `text` describes each set.
pub(super) fn begin(
    figure: &Figure<'_>,
    sets: &[LatencySet],
    text: fn(&Sorted) -> String,
) -> (Page, Vec<Sorted>) {
    let (sets, remarks) = sorted(sets);
    let mut page = Page::new(figure);
    page.remark(&remarks);
    let entries = sets.iter().enumerate().map(|(index, set)| LegendEntry::line(index, text(set)));
    page.legend(&entries.collect::<Vec<_>>());
    (page, sets)
}

fn upwards(sets: &[Sorted]) -> Scale {
    Scale::up_to(sets.iter().map(|set| set.total_ms).fold(0.0, f64::max) / MS_PER_S)
}

/// Returns each latency in milliseconds with the sum of all up to it in seconds.
fn sums(set: &Sorted) -> impl Iterator<Item = (f64, f64)> {
    set.values.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some((*value, *sum / MS_PER_S))
    })
}
