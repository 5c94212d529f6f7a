// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of a timer measurement.

use crate::conditions::conditions;
use crate::plot::{Figure, LatencySet, Quantity, budgets, histograms, percentiles};
use crate::timer::heading;
use tipme_measure::timer::{BIN_NS, Outlier, TimerDetails, WakeUpSeries};
use tipme_measure::{Document, ms};

/// Maximum number of outliers drawn, the worst first.
const DRAWN: usize = 20;

/// Returns file names with their plots.
pub fn plots(document: &Document<TimerDetails>) -> Vec<(String, String)> {
    let footer = heading(document);
    let intervals = sets(document, |series| series.intervals());
    let lateness = sets(document, |series| series.lateness().to_vec());
    let [between, late] = [
        ("Times between wake-ups", Quantity::Interval),
        ("Lateness of wake-ups", Quantity::Lateness),
    ]
    .map(|(title, quantity)| Figure { title, quantity, footer: &footer });
    let mut plots = vec![
        ("timer-intervals.svg".to_owned(), histograms(&between, &intervals, ms(BIN_NS))),
        ("timer-lateness.svg".to_owned(), percentiles(&late, &lateness)),
    ];
    let worst = worst(&document.details.outliers);
    if !worst.is_empty() {
        let footer = conditions(&document.machine);
        let figure = Figure {
            title: "What the latest wake-ups waited for",
            quantity: Quantity::Lateness,
            footer: &footer,
        };
        plots.push(("timer-budgets.svg".to_owned(), budgets(&figure, &worst)));
    }
    plots
}

/// Returns one set per mechanism with the values of all its threads, in milliseconds.
fn sets(
    document: &Document<TimerDetails>,
    values_ns: impl Fn(&WakeUpSeries<'_>) -> Vec<u64>,
) -> Vec<LatencySet> {
    let details = &document.details;
    let mut sets = Vec::new();
    for mechanism in details.mechanisms.iter().map(|measured| measured.mechanism) {
        let threads = details.threads.iter().zip(&document.runs);
        let series = threads
            .filter(|(thread, _)| thread.mechanism == mechanism)
            .filter_map(|(_, run)| WakeUpSeries::new(run, details.period_ns));
        let values_ms = series.flat_map(|series| values_ns(&series)).map(ms).collect();
        sets.push(LatencySet { name: mechanism.name().to_owned(), values_ms });
    }
    sets
}

/// Returns the latest explained wakeups.
fn worst(outliers: &[Outlier]) -> Vec<(String, Vec<(String, f64)>)> {
    let mut known: Vec<(&Outlier, &Vec<_>)> =
        outliers.iter().filter_map(|outlier| Some((outlier, outlier.budget.as_ref()?))).collect();
    known.sort_by(|(one, _), (other, _)| other.lateness_us.total_cmp(&one.lateness_us));
    let drawn = known.into_iter().take(DRAWN).enumerate();
    drawn
        .map(|(index, (outlier, portions))| {
            let name = format!("{}. {}, CPU {}", index + 1, outlier.mechanism.name(), outlier.cpu);
            let parts = portions.iter().map(|portion| {
                let name =
                    if portion.name.is_empty() { portion.cause.name() } else { &portion.name };
                (name.to_owned(), portion.us / 1e3)
            });
            (name, parts.collect())
        })
        .collect()
}
