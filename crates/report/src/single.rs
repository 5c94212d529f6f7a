// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result of any kind, limited to the common part: the latencies of each class, by run.

use crate::conditions::conditions;
use crate::plot::words::{count, or_dash, plain};
use crate::plot::{Figure, LatencySet, Quantity, class_plots};
use std::collections::BTreeMap;
use tipme_measure::{MeasuredMachine, Run, Share, Summary, ms};

/// Maximum number of classes shown.
const CLASSES_MAX: usize = 16;
/// Maximum number of characters of a name.
const NAME_CHARS: usize = 40;
/// Latencies of one class in nanoseconds, by the names of the runs in order.
type Class<'a> = (&'a str, Vec<(String, Vec<u64>)>);

/// Formats a table of all classes and runs.
pub fn text(runs: &[Run]) -> String {
    let mut lines = Vec::new();
    for (class, runs) in classes(runs) {
        lines.push(format!(
            "{:<24}{:>10}{:>12}{:>12}{:>12}",
            plain(class, NAME_CHARS),
            "n",
            "p50",
            "p98",
            "max"
        ));
        lines.extend(runs.into_iter().map(|(name, latencies)| line(&name, latencies)));
        lines.push(String::new());
    }
    lines.join("\n")
}

fn line(name: &str, latencies: Vec<u64>) -> String {
    let summary = Summary::new(latencies);
    let [p50, p98, max] = [summary.shown(Share::P50), summary.shown(Share::P98), summary.max()]
        .map(|ns| or_dash(ns.map(ms)));
    format!("  {name:<22}{:>10}{p50:>12}{p98:>12}{max:>12}", count(summary.n()))
}

/// Plots histograms, percentiles and the sum for each class, with each run as a set.
pub fn plots(machine: &MeasuredMachine, runs: &[Run]) -> Vec<String> {
    let footer = conditions(machine);
    let mut plots = Vec::new();
    for (class, runs) in classes(runs) {
        let sets: Vec<LatencySet> = runs
            .into_iter()
            .map(|(name, latencies)| LatencySet {
                name,
                values_ms: latencies.into_iter().map(ms).collect(),
            })
            .collect();
        let (title, quantity) = (plain(class, NAME_CHARS), Quantity::of_class(class));
        let figure = Figure { title: &title, quantity, footer: &footer };
        plots.extend(class_plots(&figure, &sets).map(|(_, svg)| svg));
    }
    plots
}

/// Returns the classes in order of their names; runs with the same name are merged.
fn classes(runs: &[Run]) -> Vec<Class<'_>> {
    let mut classes: BTreeMap<&str, Vec<(String, Vec<u64>)>> = BTreeMap::new();
    for run in runs {
        let name = plain(&run.name, NAME_CHARS);
        for events in &run.classes {
            let of = classes.entry(&events.class).or_default();
            match of.iter_mut().find(|(known, _)| *known == name) {
                Some((_, latencies)) => latencies.extend(&events.latencies_ns),
                None => of.push((name.clone(), events.latencies_ns.clone())),
            }
        }
    }
    classes.into_iter().take(CLASSES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::Events;

    fn run(name: &str, latencies_ms: &[u64]) -> Run {
        let mut events = Events { class: "interval".to_owned(), ..Events::default() };
        latencies_ms.iter().enumerate().for_each(|(at, ms)| events.push(at as u64, ms * 1_000_000));
        Run { name: name.to_owned(), classes: vec![events], ..Run::default() }
    }

    #[test]
    fn runs_are_grouped_by_class_and_name() {
        let runs = [run("none", &[1; 20]), run("hog", &[5, 9]), run("none", &[2])];
        insta::assert_snapshot!(text(&runs), @r"
        interval                         n         p50         p98         max
          none                          21        1 ms           -        2 ms
          hog                            2           -           -        9 ms
        ");
        let plots = plots(&MeasuredMachine::default(), &runs);
        assert_eq!(plots.len(), 3);
        assert!(plots[0].contains("none: n 21, longest 2 ms"), "{}", plots[0]);
    }
}
