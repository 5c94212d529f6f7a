// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of a comparison: for each class, all results on the same axes.

use super::{ComparedResult, NAME_CHARS, letter};
use crate::conditions::conditions;
use crate::plot::words::{count, duration, plain};
use crate::plot::{Figure, LatencySet, Quantity, class_plots, cumulative_by_count};
use tipme_measure::{ClassComparison, ComparedSide, Comparison, RunGroup, latencies_ms};

/// Maximum number of classes with plots.
const CLASSES_MAX: usize = 64;

/// Maximum number of characters of a name in a file name.
const FILE_NAME_CHARS: usize = 40;

/// Returns file names and SVGs: histograms, percentiles, and cumulative time by length and by
/// count.
pub fn plots(
    kind: &str,
    files: &[ComparedResult<'_>],
    comparison: &Comparison,
) -> Vec<(String, String)> {
    let classes = comparison
        .groups
        .iter()
        .flat_map(|group| group.classes.iter().map(move |class| (group, class)));
    let mut plots = Vec::new();
    for (index, (group, class)) in classes.take(CLASSES_MAX).enumerate() {
        let run = group.run.as_deref().unwrap_or_default();
        let title = [kind, run, &class.class].map(|name| plain(name, NAME_CHARS)).join(" ");
        let file = format!("{:02}-{}", index + 1, safe(&format!("{run} {}", class.class)));
        let (sets, footer) = (sets(files, group, class), footer(files, class));
        let quantity = Quantity::of_class(&class.class);
        let named = class_plots(&Figure { title: &title, quantity, footer: &footer }, &sets);
        plots.extend(named.map(|(name, svg)| (format!("{file}-{name}.svg"), svg)));
        let title = format!("{title}: {} by count", quantity.sum());
        let figure = Figure { title: &title, quantity, footer: &footer };
        plots.push((
            format!("{file}-cumulative-latency-by-count.svg"),
            cumulative_by_count(&figure, &sets),
        ));
    }
    plots
}

fn sets(
    files: &[ComparedResult<'_>],
    group: &RunGroup,
    class: &ClassComparison,
) -> Vec<LatencySet> {
    let sides: Vec<ComparedSide<'_>> = files.iter().map(ComparedResult::side).collect();
    let latencies = latencies_ms(&sides, group.run.as_deref(), &class.class);
    let names =
        files.iter().enumerate().map(|(index, file)| format!("{} {}", letter(index), file.name));
    names.zip(latencies).map(|(name, values_ms)| LatencySet { name, values_ms }).collect()
}

/// Describes the number of events, the missing ones, and the conditions of the measurement.
fn footer(files: &[ComparedResult<'_>], class: &ClassComparison) -> String {
    let threshold = class
        .threshold_ms
        .map_or_else(|| "No threshold".to_owned(), |ms| format!("Threshold {}", duration(ms)));
    let mut parts = vec![threshold];
    for (index, (file, figures)) in files.iter().zip(&class.sides).enumerate() {
        let Some(figures) = figures else { continue };
        parts.push(format!(
            "{}: n={}, {} censored, {} lost, {:.1} s, {}",
            letter(index),
            count(figures.n),
            figures.censored,
            figures.lost,
            file.machine.duration_s,
            conditions(file.machine)
        ));
    }
    parts.join(". ")
}

/// Reduces a name to letters, digits and dashes: names come from files and become file names.
fn safe(name: &str) -> String {
    let letters = name.trim().chars().take(FILE_NAME_CHARS);
    letters
        .map(
            |letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::{Events, MeasuredMachine, Run, compare};

    fn run(class: &str, latencies_ms: &[u64]) -> Run {
        let mut events = Events::of(class, None);
        latencies_ms.iter().for_each(|latency| events.push(0, latency * 1_000_000));
        Run { classes: vec![events], ..Run::default() }
    }

    #[test]
    fn every_class_has_its_plots_on_common_axes() {
        let machine = MeasuredMachine::default();
        let one = [run("../key", &[5, 7, 100])];
        let two = [run("../key", &[500]), run("click", &[7])];
        let files = [("one", &one[..]), ("<two>", &two)].map(|(name, runs)| ComparedResult {
            name,
            machine: &machine,
            runs,
        });
        let comparison = compare(&files.map(|file| file.side()));
        let plots = plots("measure", &files, &comparison);
        let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(plots.len(), 8);
        assert_eq!(names[0], "01----key-histograms.svg");
        assert_eq!(names[7], "02-click-cumulative-latency-by-count.svg");
        assert!(
            plots
                .iter()
                .all(|(_, svg)| svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"))
        );
        assert!(
            plots[0].1.contains("B &lt;two&gt;")
                && plots[0].1.contains("A: n=3, 0 censored, 0 lost"),
            "{}",
            plots[0].1
        );
    }
}
