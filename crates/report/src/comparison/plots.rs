// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of a comparison: for each class, all results on the same axes.

use super::{ComparedResult, NAME_CHARS, letter};
use crate::conditions::conditions;
use crate::plot::words::{count, duration, plain};
use crate::plot::{
    Figure, LatencySet, Quantity, cumulative_by_count, cumulative_by_latency, histograms,
    percentiles,
};
use tipme_measure::{ClassComparison, ComparedSide, Comparison, RunGroup, latencies_ms};

/// Maximum number of classes with plots.
const CLASSES_MAX: usize = 64;

/// Maximum number of characters of a name in a file name.
const FILE_NAME_CHARS: usize = 40;

/// Bucket widths of a histogram, and maximum number of buckets: the first width that needs no more
/// is used.
const BUCKETS_MS: [f64; 5] = [0.001, 0.01, 0.1, 1.0, 10.0];
const BUCKETS_MAX: f64 = 200.0;

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
    let of = |(index, (group, class)): (usize, (&RunGroup, &ClassComparison))| {
        let sets = sets(files, group, class);
        let run = group.run.as_deref().unwrap_or_default();
        let title = [kind, run, &class.class].map(|name| plain(name, NAME_CHARS)).join(" ");
        let footer = footer(files, class);
        let quantity = Quantity::of_class(&class.class);
        let (sum, length) = (quantity.sum(), quantity.name());
        let name = |what: &str| {
            format!("{:02}-{}-{what}.svg", index + 1, safe(&format!("{run} {}", class.class)))
        };
        let draw = |file: &str, what: &str, plot: &dyn Fn(&Figure<'_>) -> String| {
            let title = format!("{title}: {what}");
            (name(file), plot(&Figure { title: &title, quantity, footer: &footer }))
        };
        [
            draw("histograms", "histograms", &|figure| histograms(figure, &sets, bucket_ms(&sets))),
            draw("percentiles", "percentiles", &|figure| percentiles(figure, &sets)),
            draw("cumulative-latency-by-latency", &format!("{sum} by {length}"), &|figure| {
                cumulative_by_latency(figure, &sets)
            }),
            draw("cumulative-latency-by-count", &format!("{sum} by count"), &|figure| {
                cumulative_by_count(figure, &sets)
            }),
        ]
    };
    classes.take(CLASSES_MAX).enumerate().flat_map(of).collect()
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
    let side = |(index, file): (usize, &ComparedResult<'_>)| {
        let figures = class.sides.get(index)?.as_ref()?;
        let (n, censored, lost) = (count(figures.n), figures.censored, figures.lost);
        let under = conditions(file.machine);
        Some(format!(
            "{}: n={n}, {censored} censored, {lost} lost, {:.1} s, {under}",
            letter(index),
            file.machine.duration_s
        ))
    };
    let sides: Vec<String> = files.iter().enumerate().filter_map(side).collect();
    format!("{threshold}. {}", sides.join(". "))
}

/// Returns the first bucket width that needs few enough buckets, or 10 ms.
fn bucket_ms(sets: &[LatencySet]) -> f64 {
    let most = sets.iter().flat_map(|set| &set.values_ms).copied().fold(0.0, f64::max);
    BUCKETS_MS.into_iter().find(|bucket| most / bucket <= BUCKETS_MAX).unwrap_or(BUCKETS_MS[4])
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

    #[test]
    fn every_class_has_its_plots_on_common_axes() {
        let of = |class: &str, latencies: &[u64]| {
            let mut events = Events::of(class, None);
            latencies.iter().for_each(|latency| events.push(0, latency * 1_000_000));
            Run { classes: vec![events], ..Run::default() }
        };
        let machine = MeasuredMachine::default();
        let (one, two) = ([of("../key", &[5, 7, 100])], [of("../key", &[500]), of("click", &[7])]);
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

    #[test]
    fn buckets_follow_the_longest() {
        let of = |values_ms: &[f64]| {
            bucket_ms(&[LatencySet { name: String::new(), values_ms: values_ms.to_vec() }])
        };
        assert_eq!(
            [of(&[0.05]), of(&[150.0]), of(&[1.0, 250.0]), of(&[1e9]), of(&[])],
            [0.001, 1.0, 10.0, 10.0, 0.001]
        );
    }
}
