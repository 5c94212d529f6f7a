// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU utilisation over time.

use super::Figure;
use super::axes::{self, Axis};
use super::page::{Area, LegendEntry, MarkStyle, PLOT_HEIGHT, Page, pixel};
use super::palette::{CALM, colour};
use super::scale::Scale;
use super::thin::{COLUMNS, column};
use super::values::{is_moment, is_time, remarks};
use super::words::{count, number};

/// Index of the lighter variant of [`CALM`].
const LIGHT: usize = 5;

/// Plots utilisation in bins: the start of each in seconds, and its share between 0 and 1. Times
/// without a bin stay blank.
///
/// If bins are narrower than half a pixel, each column shows its busiest bin in light and the mean
/// of its bins in dark.
pub fn utilisation(figure: &Figure<'_>, bins: &[(f64, f64)], bin_ms: f64) -> String {
    let mut page = Page::new(figure);
    let bin_s = if is_time(bin_ms) { bin_ms / 1e3 } else { 0.0 };
    let known =
        bins.iter().copied().filter(|(start, share)| is_moment(*start) && share.is_finite());
    let known: Vec<(f64, f64)> =
        known.map(|(start, share)| (start, share.clamp(0.0, 1.0))).collect();
    page.remark(&remarks(bins.len() - known.len(), "shares of time", 0, ""));
    let Some(first) = known.iter().map(|bin| bin.0).reduce(f64::min) else {
        return page.nothing("no records");
    };
    let last = known.iter().map(|bin| bin.0).fold(first, f64::max);
    let across = Scale::linear(first, last + bin_s);
    let spans: Vec<UtilisationSpan> =
        known.iter().map(|(start, share)| span(&across, *start, bin_s, *share)).collect();
    let crowded = spans.len() > COLUMNS;
    page.legend(&legend(&known, bin_ms, crowded));
    let area = page.area(PLOT_HEIGHT);
    let axis = Axis { scale: across, name: "time, s" };
    axes::draw(
        &mut page,
        &area,
        &axis,
        &Axis { scale: Scale::linear(0.0, 100.0), name: "utilisation, %" },
    );
    if crowded {
        let (busiest, means) = columns(&spans);
        page.path(&blocks(&area, &busiest), &fill(colour(LIGHT)));
        page.path(&blocks(&area, &means), &fill(CALM));
    } else {
        page.path(&blocks(&area, &spans), &fill(CALM));
    }
    page.finish()
}

/// Part of the width with its utilisation, both as shares.
#[derive(Clone, Copy, PartialEq, Debug)]
struct UtilisationSpan {
    from: f64,
    to: f64,
    height: f64,
}

fn span(across: &Scale, start: f64, bin_s: f64, height: f64) -> UtilisationSpan {
    UtilisationSpan { from: across.share(start), to: across.share(start + bin_s), height }
}

fn legend(bins: &[(f64, f64)], bin_ms: f64, crowded: bool) -> Vec<LegendEntry> {
    let mean = bins.iter().map(|bin| bin.1).sum::<f64>() / bins.len().max(1) as f64;
    let all = format!(
        "{} bins of {} ms, mean {}%",
        count(bins.len()),
        number(bin_ms),
        number(100.0 * mean)
    );
    if !crowded {
        return vec![LegendEntry { mark: MarkStyle::Box(CALM), text: all }];
    }
    vec![
        LegendEntry {
            mark: MarkStyle::Box(CALM),
            text: format!("{all}; each column: mean of its bins"),
        },
        LegendEntry { mark: MarkStyle::Box(colour(LIGHT)), text: "its busiest bin".to_owned() },
    ]
}

/// Returns the busiest bin and the mean of the bins of each column that has any.
fn columns(spans: &[UtilisationSpan]) -> (Vec<UtilisationSpan>, Vec<UtilisationSpan>) {
    let mut sums = vec![(0u64, 0.0, 0.0f64); COLUMNS];
    for span in spans {
        // With this many non-overlapping bins, each is narrower than a column and touches at most
        // two.
        let (first, last) = (column(span.from), column(span.to - f64::EPSILON));
        for (n, sum, most) in &mut sums[first..=last.clamp(first, first + 1).min(COLUMNS - 1)] {
            *n += 1;
            *sum += span.height;
            *most = most.max(span.height);
        }
    }
    let (mut busiest, mut means) = (Vec::new(), Vec::new());
    for (index, (n, sum, most)) in sums.into_iter().enumerate().filter(|(_, (n, ..))| *n > 0) {
        let [from, to] = [index, index + 1].map(|edge| edge as f64 / COLUMNS as f64);
        busiest.push(UtilisationSpan { from, to, height: most });
        means.push(UtilisationSpan { from, to, height: sum / n as f64 });
    }
    (busiest, means)
}

/// Returns one outline for all spans, each at least half a pixel wide.
fn blocks(area: &Area, spans: &[UtilisationSpan]) -> String {
    let mut path = String::new();
    for span in spans.iter().filter(|span| span.height > 0.0) {
        let (left, right) = (area.x(span.from), area.x(span.to).max(area.x(span.from) + 0.5));
        let [left, right, top, bottom] =
            [left, right, area.y(span.height), area.bottom()].map(pixel);
        path += &format!("M{left} {bottom}V{top}H{right}V{bottom}Z");
    }
    path
}

fn fill(colour: &str) -> String {
    format!(r#"fill="{colour}""#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_its_busiest_bin_and_its_mean() {
        let n = 10 * COLUMNS;
        let spans: Vec<UtilisationSpan> = (0..n)
            .map(|index| UtilisationSpan {
                from: index as f64 / n as f64,
                to: (index + 1) as f64 / n as f64,
                height: if index == 777 { 1.0 } else { 0.2 },
            })
            .collect();
        let (busiest, means) = columns(&spans);
        assert_eq!((busiest.len(), means.len()), (COLUMNS, COLUMNS));
        assert_eq!(busiest[77].height, 1.0);
        assert!(
            means[77].height > 0.25
                && means[77].height < 0.35
                && (means[5].height - 0.2).abs() < 1e-9
        );
    }

    #[test]
    fn time_between_bins_stays_blank() {
        let spans = [
            UtilisationSpan { from: 0.0, to: 0.1, height: 1.0 },
            UtilisationSpan { from: 0.9, to: 1.0, height: 1.0 },
        ];
        let (busiest, _) = columns(&spans);
        assert!(busiest.iter().all(|span| span.from < 0.002 || span.from >= 0.9));
    }
}
