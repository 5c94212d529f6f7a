// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of a run of `tipme idle`.

use tipme_measure::idle::{Bin, IdleDetails, Observed};
use tipme_measure::{Document, ms};
use tipme_report::conditions;
use tipme_report::plot::{self, Figure, LatencySet, Quantity};

/// Bin width for the whole run, and for its busiest part.
const BINS_NS: (u64, u64) = (10_000_000, 1_000_000);
/// Length of the busiest part.
const PART_NS: u64 = 1_000_000_000;

/// Returns SVG images with their file names: for each CPU the whole run and its busiest second, and
/// the gaps of all CPUs.
pub(in crate::idle) fn plots(document: &Document<IdleDetails>) -> Vec<(String, String)> {
    let observed = &document.details.observed;
    let footer = conditions(&document.machine);
    let mut plots: Vec<(String, String)> = Vec::new();
    for one in observed {
        plots.push((format!("idle-cpu{}-10ms.svg", one.cpu), whole(one, &footer)));
        plots.push((format!("idle-cpu{}-1ms.svg", one.cpu), busiest(one, &footer)));
    }
    let title = "How much of the stolen time gaps up to each length make up";
    let figure = Figure { title, quantity: Quantity::Gap, footer: &footer };
    let sets: Vec<LatencySet> = observed.iter().map(set).collect();
    plots.push(("idle-gaps.svg".to_owned(), plot::cumulative_by_latency(&figure, &sets)));
    plots
}

fn set(observed: &Observed) -> LatencySet {
    let values_ms = observed.gaps.iter().map(|gap| ms(gap.length_ns)).collect();
    LatencySet { name: format!("cpu {}", observed.cpu), values_ms }
}

fn whole(observed: &Observed, footer: &str) -> String {
    let title = format!("CPU {}: time stolen from the idle loop, in bins of 10 ms", observed.cpu);
    draw(&title, footer, observed, &observed.bins(BINS_NS.0), BINS_NS.0)
}

fn busiest(observed: &Observed, footer: &str) -> String {
    let parts = observed.bins(PART_NS);
    let busiest = parts.iter().max_by_key(|part| part.stolen_ns);
    let (from, length) =
        busiest.map_or((observed.begin_ns, 0), |part| (part.start_ns, part.length_ns));
    let bins = tipme_measure::idle::bins(&observed.gaps, from, from + length, BINS_NS.1);
    let title = format!("CPU {}: the busiest second, in bins of 1 ms", observed.cpu);
    draw(&title, footer, observed, &bins, BINS_NS.1)
}

fn draw(title: &str, footer: &str, observed: &Observed, bins: &[Bin], width_ns: u64) -> String {
    let points =
        bins.iter().map(|bin| ((bin.start_ns - observed.begin_ns) as f64 / 1e9, bin.utilisation()));
    let figure = Figure { title, quantity: Quantity::Gap, footer };
    plot::utilisation(&figure, &points.collect::<Vec<_>>(), ms(width_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::idle::Gap;
    use tipme_measure::{MeasuredMachine, SCHEMA};

    #[test]
    fn each_cpu_has_its_plots() {
        let gaps = vec![Gap { start_ns: 2_500_000_000, length_ns: 3_000_000 }];
        let observed = Observed {
            cpu: 4,
            begin_ns: 1_000_000_000,
            end_ns: 4_000_000_000,
            gaps,
            ..Observed::default()
        };
        let (kind, version) = ("idle".to_owned(), String::new());
        let details = IdleDetails { observed: vec![observed], ..IdleDetails::default() };
        let document = Document {
            schema: SCHEMA,
            kind,
            version,
            machine: MeasuredMachine::default(),
            runs: Vec::new(),
            details,
        };
        let plots = plots(&document);
        let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["idle-cpu4-10ms.svg", "idle-cpu4-1ms.svg", "idle-gaps.svg"]);
        assert!(
            plots
                .iter()
                .all(|(_, svg)| svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"))
        );
    }
}
