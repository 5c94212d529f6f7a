// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison with the baseline: latencies of the same kind at other times, with this one marked.

use crate::figures::span;
use crate::page::budget::figure;
use crate::text::usual_in_words;
use maud::{Markup, html};
use tipme_analysis::model::{Baseline, Interval};
use tipme_analysis::scene::{Scene, UsualLatencies};

/// Number of bars in the picture.
const COLUMNS: usize = 40;
/// Height of the picture, and position of the bars in it.
const HEIGHT: f64 = 150.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 122.0;

/// Renders the distribution, or the known part of it.
pub(super) fn section(scene: &Scene, interval: &Interval) -> Markup {
    let baseline = scene.verdict.baseline.as_ref();
    html! {
        section aria-labelledby="usual" {
            h2 #usual { "Is that usual?" }
            p { "Usual time in the same application: " (usual_in_words(baseline))
                ". Such delays are noticeable from " (span(interval.threshold_ms)) " on." }
            @match scene.usual.as_ref().filter(|observed| !observed.latencies_ms.is_empty()) {
                Some(observed) => (picture(observed, interval)),
                None => (learned(baseline)),
            }
        }
    }
}

fn learned(baseline: Option<&Baseline>) -> Markup {
    let text = match baseline {
        Some(known) if known.stored => {
            "The baseline was learned before this window; individual times are not kept."
        }
        _ => "The window contains no other delay of this kind.",
    };
    html! { p.hint { (text) } }
}

/// Logarithmic axis from the shortest to the longest latency.
struct LogAxis {
    least: f64,
    most: f64,
}

impl LogAxis {
    fn new(observed: &UsualLatencies, interval: &Interval) -> LogAxis {
        let all =
            observed.latencies_ms.iter().chain([&interval.latency_ms, &interval.threshold_ms]);
        let positive = all.copied().filter(|ms| *ms > 0.0);
        let least = positive.clone().fold(f64::MAX, f64::min);
        let most = positive.fold(f64::MIN_POSITIVE, f64::max);
        LogAxis { least: (least / 1.5).clamp(1e-4, 1e9), most: (most * 1.5).clamp(2e-4, 1e10) }
    }

    /// Returns the position in percent of the width.
    fn place(&self, ms: f64) -> f64 {
        let share = (ms.max(self.least) / self.least).ln() / (self.most / self.least).ln();
        (share * 100.0).clamp(0.0, 100.0)
    }

    /// Returns the powers of ten on the axis.
    fn ticks(&self) -> Vec<f64> {
        (-4..=10)
            .map(|power| 10_f64.powi(power))
            .filter(|ms| (self.least..=self.most).contains(ms))
            .collect()
    }
}

fn picture(observed: &UsualLatencies, interval: &Interval) -> Markup {
    let axis = LogAxis::new(observed, interval);
    let counts = counts(&axis, observed);
    let fullest = counts.iter().copied().max().unwrap_or(1).max(1);
    let label = format!(
        "{} others from {} to {}, this one {}",
        observed.n,
        span(observed.latencies_ms.first().copied().unwrap_or_default()),
        span(observed.latencies_ms.last().copied().unwrap_or_default()),
        span(interval.latency_ms)
    );
    html! {
        svg.usual width="100%" height=(HEIGHT) role="img" aria-label=(label) {
            @for (at, count) in counts.iter().enumerate() { @if *count > 0 { (column(at, *count, fullest)) } }
            line.axis x1="0" x2="100%" y1=(BOTTOM) y2=(BOTTOM) {}
            @for ms in axis.ticks() { (tick(&axis, ms)) }
            (mark(&axis, interval.threshold_ms, "noticeable from here on", 12.0, "threshold"))
            (mark(&axis, interval.latency_ms, &format!("this one, {}", span(interval.latency_ms)), 30.0, "this"))
        }
        p.hint { (hint(observed)) }
    }
}

/// Describes the counts of the columns, which cover only a sample if there are very many latencies.
fn hint(observed: &UsualLatencies) -> String {
    let shown = observed.latencies_ms.len();
    let rest = if shown < observed.n {
        format!("; of all {} others, an even sample of {shown} is counted", observed.n)
    } else {
        String::new()
    };
    format!("Each column counts others of that length; the axis is logarithmic{rest}.")
}

fn counts(axis: &LogAxis, observed: &UsualLatencies) -> Vec<usize> {
    let mut counts = vec![0; COLUMNS];
    for ms in &observed.latencies_ms {
        counts[((axis.place(*ms) / 100.0 * COLUMNS as f64) as usize).min(COLUMNS - 1)] += 1;
    }
    counts
}

fn column(at: usize, count: usize, fullest: usize) -> Markup {
    let width = 100.0 / COLUMNS as f64;
    let height = ((BOTTOM - TOP) * count as f64 / fullest as f64).max(2.0);
    html! {
        rect.look-input x={ (figure(at as f64 * width)) "%" } width={ (figure(width * 0.85)) "%" }
            y=(figure(BOTTOM - height)) height=(figure(height)) { title { (count) } }
    }
}

fn tick(axis: &LogAxis, ms: f64) -> Markup {
    let text = if ms >= 1_000.0 { format!("{} s", ms / 1_000.0) } else { format!("{ms} ms") };
    html! { (label(axis.place(ms), HEIGHT - 8.0, &text, "tick")) }
}

fn mark(axis: &LogAxis, ms: f64, text: &str, y: f64, class: &str) -> Markup {
    let x = axis.place(ms);
    html! {
        line.{ "mark " (class) } x1={ (figure(x)) "%" } x2={ (figure(x)) "%" } y1=(y + 4.0) y2=(BOTTOM) {}
        (label(x, y, text, class))
    }
}

/// Draws a label at a position of the axis, kept inside the picture.
fn label(x: f64, y: f64, text: &str, class: &str) -> Markup {
    let anchor = match x {
        ..12.0 => "start",
        88.0.. => "end",
        _ => "middle",
    };
    html! { text.{ (class) } x={ (figure(x)) "%" } y=(y) text-anchor=(anchor) { (text) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_sample_are_marked_as_such() {
        let [all, sample] =
            [2, 7].map(|n| hint(&UsualLatencies { latencies_ms: vec![1.0, 2.0], n }));
        assert_eq!(all, "Each column counts others of that length; the axis is logarithmic.");
        assert!(
            sample.ends_with("logarithmic; of all 7 others, an even sample of 2 is counted."),
            "{sample}"
        );
    }
}
