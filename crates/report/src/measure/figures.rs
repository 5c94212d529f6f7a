// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of a result.

use super::{EventOutcome, EventRow, MeasureDocument};
use crate::conditions;
use crate::plot::buckets::fitting;
use crate::plot::words::duration;
use crate::plot::{
    Figure, LatencySet, ProfileBar, Quantity, cumulative_by_count, cumulative_by_latency,
    histograms, latency_profile, latency_profile_zoom, percentiles,
};
use tipme_measure::ms;

/// Bucket widths of the histogram, ascending, and approximate maximum number of buckets.
const BUCKETS_MS: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
const BUCKETS_MAX: f64 = 120.0;
/// Length of the magnified profile in seconds.
const ZOOM_S: f64 = 4.0;

/// Returns file names and plots. The profile shows one repeat: the one with the median cumulative
/// latency.
pub fn figures(result: &MeasureDocument) -> Vec<(&'static str, String)> {
    let footer = footer(result);
    let name = format!("{} by script {}", application(result), result.details.script);
    let bars = bars(result);
    let threshold = result
        .details
        .classes
        .iter()
        .find(|class| class.class == "key")
        .map(|class| class.threshold_ms);
    let (from, to) = busiest(&bars);
    let (classes, repeats) = (by_class(result), by_repeat(result));
    let bucket = fitting(&classes, &BUCKETS_MS, BUCKETS_MAX);
    let titles = [
        "latency profile",
        "latency profile, magnified",
        "latencies by class",
        "cumulative latency by repeat",
        "percentiles by class",
    ]
    .map(|what| format!("{what}, {name}"));
    let [profile, zoom, histogram, sums, shares] = titles.each_ref().map(|title| Figure {
        title,
        quantity: Quantity::Latency,
        footer: &footer,
    });
    vec![
        ("latency-profile.svg", latency_profile(&profile, &bars, threshold)),
        ("latency-profile-zoom.svg", latency_profile_zoom(&zoom, &bars, threshold, from, to)),
        ("histogram.svg", histograms(&histogram, &classes, bucket)),
        ("cumulative-by-latency.svg", cumulative_by_latency(&sums, &repeats)),
        ("cumulative-by-count.svg", cumulative_by_count(&sums, &repeats)),
        ("percentiles.svg", percentiles(&shares, &classes)),
    ]
}

fn application(result: &MeasureDocument) -> String {
    let path = result.details.application.first().map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn footer(result: &MeasureDocument) -> String {
    let details = &result.details;
    let seconds = result.runs.iter().map(|run| ms(run.duration_ns)).sum::<f64>();
    format!(
        "{}, {} events in {}, {} answered, {} without a visible answer, {} open, {} lost; {}; {}",
        super::repeats(result.runs.len()),
        details.scripted,
        duration(seconds),
        details.answered,
        details.silent,
        details.open,
        details.lost,
        details.instrument.name(),
        conditions(&result.machine)
    )
}

/// Returns the events that have a latency.
fn timed(result: &MeasureDocument) -> impl Iterator<Item = (&EventRow, f64)> {
    result.details.events.iter().filter_map(|event| Some((event, event.latency_ms?)))
}

/// Returns the events of the repeat with the median cumulative latency, except its start.
fn bars(result: &MeasureDocument) -> Vec<ProfileBar> {
    let mut order: Vec<(usize, f64)> =
        result.details.cumulative.repeats_ms.iter().copied().enumerate().collect();
    order.sort_by(|one, other| one.1.total_cmp(&other.1));
    let middle = order.get(order.len().saturating_sub(1) / 2).map_or(1, |(index, _)| index + 1);
    let own: Vec<(&EventRow, f64)> = timed(result)
        .filter(|(event, _)| event.repeat == middle && event.class != "start")
        .collect();
    let begin = own.iter().map(|(event, _)| event.t_ns).min().unwrap_or_default();
    own.into_iter()
        .map(|(event, latency_ms)| ProfileBar {
            start_s: event.t_ns.saturating_sub(begin) as f64 / 1e9,
            latency_ms,
            censored: event.outcome == EventOutcome::Open,
        })
        .collect()
}

/// Returns the part of the run around its longest event.
fn busiest(bars: &[ProfileBar]) -> (f64, f64) {
    let longest = bars.iter().max_by(|one, other| one.latency_ms.total_cmp(&other.latency_ms));
    let from = longest.map_or(0.0, |bar| (bar.start_s - ZOOM_S / 2.0).max(0.0));
    (from, from + ZOOM_S)
}

/// Returns the latencies by class. The start is left out, since it would flatten all others.
fn by_class(result: &MeasureDocument) -> Vec<LatencySet> {
    let classes = result.details.classes.iter().filter(|class| class.class != "start");
    let sets = classes.map(|class| LatencySet {
        name: class.class.clone(),
        values_ms: timed(result)
            .filter(|(event, _)| event.class == class.class)
            .map(|(_, ms)| ms)
            .collect(),
    });
    sets.filter(|set| !set.values_ms.is_empty()).collect()
}

/// Returns the latencies by repeat. The start is left out, as in the cumulative latency.
fn by_repeat(result: &MeasureDocument) -> Vec<LatencySet> {
    let runs = result.runs.iter().enumerate();
    let sets = runs.map(|(index, run)| LatencySet {
        name: format!("repeat {} ({} elapsed)", index + 1, duration(ms(run.duration_ns))),
        values_ms: timed(result)
            .filter(|(event, _)| event.repeat == index + 1 && event.class != "start")
            .map(|(_, ms)| ms)
            .collect(),
    });
    sets.collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ClassFigures, CumulativeLatencies, MeasureDetails};
    use super::*;
    use tipme_measure::{MeasuredMachine, Run, SCHEMA};

    fn result(latencies_ms: &[(usize, f64)]) -> MeasureDocument {
        let events = latencies_ms.iter().enumerate().map(|(index, (repeat, ms))| EventRow {
            repeat: *repeat,
            t_ns: 1_000_000_000 * (index as u64 + 1),
            class: "key".to_owned(),
            latency_ms: Some(*ms),
            ..EventRow::default()
        });
        let details = MeasureDetails {
            application: vec!["/usr/bin/mousepad".to_owned()],
            script: "editor".to_owned(),
            events: events.collect(),
            classes: vec![ClassFigures {
                class: "key".to_owned(),
                threshold_ms: 100.0,
                ..ClassFigures::default()
            }],
            cumulative: CumulativeLatencies {
                repeats_ms: vec![30.0, 10.0, 20.0],
                ..CumulativeLatencies::default()
            },
            ..MeasureDetails::default()
        };
        let (machine, runs) = (MeasuredMachine::default(), vec![Run::default(); 3]);
        MeasureDocument {
            schema: SCHEMA,
            kind: "measure".to_owned(),
            version: "0".to_owned(),
            machine,
            runs,
            details,
        }
    }

    #[test]
    fn there_are_six_plots() {
        let plots = figures(&result(&[(1, 30.0), (2, 10.0), (3, 5.0), (3, 15.0)]));
        assert_eq!(plots.len(), 6);
        for (name, svg) in &plots {
            assert!(
                svg.starts_with("<svg") && svg.contains("mousepad by script editor"),
                "{name}: {svg}"
            );
        }
    }

    #[test]
    fn the_profile_is_that_of_the_repeat_in_the_middle() {
        let bars = bars(&result(&[(1, 30.0), (2, 10.0), (3, 5.0), (3, 15.0)]));
        assert_eq!(
            bars.iter().map(|bar| (bar.start_s, bar.latency_ms)).collect::<Vec<_>>(),
            [(0.0, 5.0), (1.0, 15.0)]
        );
        assert_eq!(busiest(&bars), (0.0, 4.0));
    }

    #[test]
    fn a_result_without_events_has_plots() {
        assert_eq!(figures(&result(&[])).len(), 6);
        let long = by_class(&result(&[(1, 700.0)]));
        let buckets = [&[], &long[..]].map(|sets| fitting(sets, &BUCKETS_MS, BUCKETS_MAX));
        assert_eq!(buckets, [1.0, 10.0]);
    }
}
