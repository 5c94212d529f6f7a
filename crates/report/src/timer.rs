// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of `tipme bench timer`: tables as in Jones and Regehr (1999), budgets and plots.

mod explained;
mod plots;
mod units;

use crate::conditions::conditions;
use crate::plot::words::{count, plain};
use crate::table::table;
pub use plots::plots;
use std::collections::BTreeMap;
use tipme_measure::Document;
use tipme_measure::timer::{
    BIN_NS, Clocks, ClocksApart, Spread, TimerDetails, TimerFigures, TimerMechanism, WakeUpSeries,
};
use units::duration_us;

/// Maximum number of rows of a histogram; higher values share the last one.
const BINS_MAX: usize = 60;
/// Minimum drift between clocks, in milliseconds; smaller differences arise from reading them one
/// after the other.
const APART_MS: f64 = 1.0;
/// Maximum number of characters of a file name.
const TITLE_CHARS: usize = 24;

/// Column of the tables: title and figures.
type FiguresColumn<'a> = (&'a str, &'a TimerFigures);

/// Formats all of one result.
pub fn text(document: &Document<TimerDetails>) -> String {
    let details = &document.details;
    let columns = details.mechanisms.iter().map(|one| (one.mechanism.name(), &one.figures));
    let columns: Vec<FiguresColumn<'_>> = columns.collect();
    let mut parts =
        vec![heading(document), statistics(&columns), histogram(&columns), threads(document)];
    parts.extend(before_and_after(details));
    parts.push(offered_clocks(&details.clocks));
    parts.extend(clock_table(&details.clocks));
    parts.extend(details.clocks_apart.as_ref().and_then(drift));
    parts.push(explained::text(document));
    parts.extend(details.notes.iter().map(|note| format!("Note: {}\n", plain(note, 400))));
    parts.join("\n")
}

/// Formats `A wake-up every 1 ms for 10 s, policy other, CPUs 0,1: 20,000 deadlines, …`.
fn heading(document: &Document<TimerDetails>) -> String {
    let details = &document.details;
    let time = document.runs.first().map_or(0.0, |run| run.duration_ns as f64 / 1e3);
    let mut cpus: Vec<u32> = details.threads.iter().map(|thread| thread.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    format!(
        "A wake-up every {} for {}, policy {}, CPUs {}: {} deadlines, {} wake-ups, {} overruns, {} lost, threshold {}{}.\n{}\n",
        duration_us(details.period_ns as f64 / 1e3),
        duration_us(time),
        plain(&details.policy, TITLE_CHARS),
        cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        total(details, |figures| figures.expected),
        total(details, |figures| figures.lateness_us.n),
        total(details, |figures| figures.overruns),
        total(details, |figures| figures.lost),
        threshold(details),
        memory(details),
        conditions(&document.machine),
    )
}

/// Formats the sum of a count over all mechanisms.
fn total(details: &TimerDetails, figure: fn(&TimerFigures) -> u64) -> String {
    count(details.mechanisms.iter().map(|measured| figure(&measured.figures)).sum::<u64>())
}

/// Formats the lateness from which a wakeup counts as very late.
fn threshold(details: &TimerDetails) -> String {
    let mut thresholds: Vec<f64> =
        details.mechanisms.iter().map(|measured| measured.outlier_threshold_us).collect();
    thresholds.sort_by(f64::total_cmp);
    thresholds.dedup();
    thresholds.into_iter().map(duration_us).collect::<Vec<_>>().join(" and ")
}

fn memory(details: &TimerDetails) -> &'static str {
    if details.threads.iter().all(|thread| thread.locked) {
        ", memory locked"
    } else {
        ", memory not locked"
    }
}

/// Formats table 1 of the paper, with the lateness that it does not show.
fn statistics(columns: &[FiguresColumn<'_>]) -> String {
    let mut rows = vec![head("", columns)];
    for (name, cell) in STATISTICS {
        let cells = columns.iter().filter_map(|column| cell(column.1));
        rows.push(std::iter::once((*name).to_owned()).chain(cells).collect());
    }
    table(&rows)
}

/// Formats the cell of a row; `None` for a title.
type Cell = fn(&TimerFigures) -> Option<String>;

/// Rows of the statistics.
const STATISTICS: &[(&str, Cell)] = &[
    ("Times between wake-ups", |_| None),
    ("  Number", |figures| Some(count(figures.interval_us.n))),
    ("  Minimum µs", |figures| Some(cell_us(figures.interval_us.min))),
    ("  Maximum µs", |figures| Some(cell_us(figures.interval_us.max))),
    ("  Average µs", |figures| Some(cell_us(figures.interval_us.mean))),
    ("  Std Dev µs", |figures| Some(cell_us(figures.interval_us.sd))),
    ("Lateness of wake-ups", |_| None),
    ("  p50 µs", |figures| Some(cell_us(figures.lateness_us.p50))),
    ("  p99 µs", |figures| Some(cell_us(figures.lateness_us.p99))),
    ("  p99.9 µs", |figures| Some(cell_us(figures.lateness_us.p999))),
    ("  Maximum µs", |figures| Some(cell_us(figures.lateness_us.max))),
    ("Lateness of all deadlines, including missed ones", |_| None),
    ("  p50 µs", |figures| Some(cell_us(figures.lateness_corrected_us.p50))),
    ("  p99 µs", |figures| Some(cell_us(figures.lateness_corrected_us.p99))),
    ("  p99.9 µs", |figures| Some(cell_us(figures.lateness_corrected_us.p999))),
    ("Overruns", |figures| Some(count(figures.overruns))),
    ("Overruns per second and CPU", |figures| Some(format!("{:.2}", figures.overruns_per_s))),
    ("Lost", |figures| Some(count(figures.lost))),
    ("Drift µs per second", |figures| Some(cell_us(figures.drift_us_per_s))),
];

/// Formats table 2 of the paper.
fn histogram(columns: &[FiguresColumn<'_>]) -> String {
    let mut bins: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (index, column) in columns.iter().enumerate() {
        for (from, count) in &column.1.histogram_100us {
            let counts = bins.entry(*from).or_insert_with(|| vec![0; columns.len()]);
            counts[index] = counts[index].saturating_add(*count);
        }
    }
    let last = bins.keys().copied().nth(BINS_MAX - 1).unwrap_or(u64::MAX);
    let above = bins.split_off(&last);
    let mut rows = vec![head("Times between wake-ups falling within", columns)];
    rows.extend(bins.iter().map(|(from, counts)| {
        bin_row(format!("{from}-{} µs", from.saturating_add(BIN_NS / 1_000)), counts)
    }));
    if !above.is_empty() {
        let sums =
            (0..columns.len()).map(|index| above.values().map(|counts| counts[index]).sum::<u64>());
        rows.push(bin_row(format!("{last} µs and more"), &sums.collect::<Vec<_>>()));
    }
    table(&rows)
}

fn bin_row(name: String, counts: &[u64]) -> Vec<String> {
    let cells = counts.iter().map(|n| if *n == 0 { String::new() } else { count(*n) });
    std::iter::once(name).chain(cells).collect()
}

/// Formats one line per thread, since CPUs differ.
fn threads(document: &Document<TimerDetails>) -> String {
    let details = &document.details;
    let mut rows = vec![
        ["Thread", "CPU", "wake-ups", "overruns", "p50 µs", "p99 µs", "maximum µs"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (thread, run) in details.threads.iter().zip(&document.runs) {
        let Some(series) = WakeUpSeries::new(run, details.period_ns) else { continue };
        let late = Spread::of(series.lateness().to_vec());
        rows.push(vec![
            thread.mechanism.name().to_owned(),
            thread.cpu.to_string(),
            count(series.n()),
            count(series.overruns()),
            cell_us(late.p50),
            cell_us(late.p99),
            cell_us(late.max),
        ]);
    }
    table(&rows)
}

/// Formats table 3 of the paper: a rounding fault and its fix. The modern fault is to sleep for a
/// period instead of until a deadline.
fn before_and_after(details: &TimerDetails) -> Option<String> {
    let period = duration_us(details.period_ns as f64 / 1e3);
    Some(format!(
        "Before: sleeping for {period} after each wake-up gives {}.\n\
         After:  sleeping until each deadline gives {}.\n",
        delivery(details, TimerMechanism::Relative)?,
        delivery(details, TimerMechanism::Absolute)?
    ))
}

/// Describes how regularly a mechanism woke the threads; `None` if it was not measured.
fn delivery(details: &TimerDetails, mechanism: TimerMechanism) -> Option<String> {
    let measured = details.mechanisms.iter().find(|measured| measured.mechanism == mechanism)?;
    let figures = &measured.figures;
    Some(format!(
        "{} on average, {} later each second, {:.1} wake-ups per second missing on each CPU",
        figures.interval_us.mean.map_or_else(|| "no interval".to_owned(), duration_us),
        duration_us(figures.drift_us_per_s.unwrap_or(0.0).max(0.0)),
        figures.overruns_per_s,
    ))
}

/// Describes the timers and clocks of the kernel.
fn offered_clocks(clocks: &Clocks) -> String {
    let [ticks, slack] = [
        clocks.hz.map(|hz| hz.to_string()),
        clocks.slack_ns.map(|ns| duration_us(ns as f64 / 1e3)),
    ]
    .map(|value| value.unwrap_or_else(|| "unknown".to_owned()));
    let resolutions: Vec<String> = clocks
        .resolutions_ns
        .iter()
        .map(|(name, ns)| format!("{} {}", plain(name, TITLE_CHARS), duration_us(*ns as f64 / 1e3)))
        .collect();
    format!(
        "Kernel clocks: HZ {ticks}, high-resolution timers {}, \
         timer slack of ordinary threads {slack}; resolution {}.\n",
        if clocks.high_resolution { "on" } else { "off" },
        resolutions.join(", "),
    )
}

/// Formats the clock source and every clock; `None` for old results without these data.
fn clock_table(clocks: &Clocks) -> Option<String> {
    if clocks.clocks.is_empty() {
        return None;
    }
    let mut rows =
        vec![["Clock", "Resolution", "Observed step", "Read cost"].map(str::to_owned).to_vec()];
    for clock in &clocks.clocks {
        let [resolution, step] =
            [clock.resolution_ns, clock.step_ns].map(|ns| ns.map(|ns| ns as f64));
        let [resolution, step, read] = [resolution, step, clock.read_ns]
            .map(|ns| ns.map_or("-".to_owned(), |ns| duration_us(ns / 1e3)));
        rows.push(vec![plain(&clock.name, TITLE_CHARS), resolution, step, read]);
    }
    Some(format!(
        "Clock source: {} (of {}); events: {}.\n{}",
        names(clocks.source.iter()),
        names(clocks.sources.iter()),
        names(clocks.event_devices.iter().map(|(_, device)| device)),
        table(&rows)
    ))
}

/// Lists names without repetitions that follow each other.
fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<String> = names.map(|name| plain(name, TITLE_CHARS)).collect();
    names.dedup();
    if names.is_empty() { "unknown".to_owned() } else { names.join(", ") }
}

/// Reports clocks that drifted apart during the measurement, if any did.
fn drift(apart: &ClocksApart) -> Option<String> {
    let mut reasons = Vec::new();
    if apart.suspended_ms.abs() >= APART_MS {
        reasons.push(format!("the machine was suspended for {:.0} ms", apart.suspended_ms));
    }
    if apart.set_ms.abs() >= APART_MS {
        reasons.push(format!("the real-time clock was set by {:.0} ms", apart.set_ms));
    }
    let seconds = apart.seconds;
    (!reasons.is_empty())
        .then(|| format!("Clocks drifted apart in these {seconds:.1} s: {}.\n", reasons.join("; ")))
}

fn head(name: &str, columns: &[FiguresColumn<'_>]) -> Vec<String> {
    std::iter::once(name.to_owned())
        .chain(columns.iter().map(|column| column.0.to_owned()))
        .collect()
}

/// Formats a figure in microseconds, with at least three digits; `-` if there is none.
fn cell_us(value: Option<f64>) -> String {
    match value {
        Some(us) if us.abs() >= 100.0 => format!("{us:.0}"),
        // Adding zero removes the sign of a value rounded to zero.
        Some(us) => format!("{:.1}", (us * 10.0).round() / 10.0 + 0.0),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::timer::{
        LATENESS, LatenessCause, Measured, MeasuredThread, OfferedClock, Outlier, budget, culprits,
    };
    use tipme_measure::{Events, MeasuredMachine, Run, SCHEMA};

    #[test]
    fn times_have_the_unit_that_suits_them() {
        assert_eq!(
            [1_000.0, 250.0, 1_059.4, 2.5e6, 0.001, 0.0].map(duration_us),
            ["1 ms", "250 µs", "1.059 ms", "2.5 s", "1 ns", "0 µs"]
        );
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn columns_stand_side_by_side_and_empty_bins_are_blank() {
        let [one, other] = [[(0, 4_880), (1_900, 5_014)], [(0, 1), (900, 9_609)]]
            .map(|bins| TimerFigures { histogram_100us: bins.to_vec(), ..TimerFigures::default() });
        let columns = [("before", &one), ("after", &other)];
        insta::assert_snapshot!(histogram(&columns), @r"
        Times between wake-ups falling within  before  after
        0-100 µs                                4,880      1
        900-1000 µs                                    9,609
        1900-2000 µs                            5,014
        ");
    }

    fn run(late: fn(u64) -> u64) -> Run {
        let mut events = Events::of(LATENESS, None);
        (1..=40).for_each(|number| events.push(number * 1_000_000, late(number)));
        Run { duration_ns: 50_000_000, classes: vec![events], ..Run::default() }
    }

    fn measured(mechanism: TimerMechanism, run: &Run, outliers_over: u64) -> Measured {
        let series: Vec<_> = WakeUpSeries::new(run, 1_000_000).into_iter().collect();
        let figures = TimerFigures::of(&series);
        Measured { mechanism, figures, outlier_threshold_us: 1_000.0, outliers_over }
    }

    /// Returns a document with two mechanisms on one CPU: one that falls behind, and one with an
    /// explained late wakeup.
    fn document() -> Document<TimerDetails> {
        let runs = vec![run(|number| number * 60_000), run(|_| 55_000)];
        let mechanisms = [
            measured(TimerMechanism::Relative, &runs[0], 0),
            measured(TimerMechanism::Absolute, &runs[1], 1),
        ];
        let times = [
            (LatenessCause::Thread, "burner\u{1b}[2J".to_owned(), 6_930_000),
            (LatenessCause::Timer, String::new(), 70_000),
        ];
        let outlier = Outlier {
            mechanism: TimerMechanism::Absolute,
            cpu: 0,
            deadline_ns: 11_000_000,
            lateness_us: 7_000.0,
            budget: Some(budget(&times, 7_000_000)),
            culprit_begin_ns: Some(10_500_000),
        };
        let details = TimerDetails {
            mechanism: TimerMechanism::Relative,
            period_ns: 1_000_000,
            policy: "other".to_owned(),
            figures: mechanisms[0].figures.clone(),
            threads: mechanisms
                .iter()
                .map(|measured| MeasuredThread {
                    mechanism: measured.mechanism,
                    cpu: 0,
                    tid: 7,
                    locked: true,
                    slack_ns: Some(50_000),
                })
                .collect(),
            mechanisms: mechanisms.to_vec(),
            clocks: Clocks {
                hz: Some(250),
                high_resolution: true,
                slack_ns: Some(50_000),
                ..Clocks::default()
            },
            clocks_apart: None,
            culprits: culprits(std::slice::from_ref(&outlier)),
            outliers: vec![outlier],
            notes: vec!["Something is not known.".to_owned()],
        };
        let (kind, version, machine) =
            ("timer".to_owned(), String::new(), MeasuredMachine::default());
        Document { schema: SCHEMA, kind, version, machine, runs, details }
    }

    #[test]
    fn all_of_a_result_is_printed() {
        let text = text(&document());
        for part in [
            "A wake-up every 1 ms for 50 ms, policy other, CPUs 0: 100 deadlines, 80 wake-ups, 20 \
             overruns, 0 lost, threshold 1 ms, memory locked",
            "Before: sleeping for 1 ms after each wake-up gives 1.06 ms on average, 60 ms later \
             each second",
            "After:  sleeping until each deadline gives 1 ms on average, 0 µs later each second",
            "HZ 250, high-resolution timers on, timer slack of ordinary threads 50 µs",
            "1 wake-ups were very late: 1 absolute over 1 ms",
            "7 ms  absolute on CPU 0 at 0.010 s: 99% thread burner",
            "thread burner",
            "Note: Something is not known.",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn plots_are_drawn() {
        let plotted = plots(&document());
        let names: Vec<&str> = plotted.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["timer-intervals.svg", "timer-lateness.svg", "timer-budgets.svg"]);
        let mut calm = document();
        calm.details.outliers.clear();
        assert_eq!(plots(&calm).len(), 2);
    }

    #[test]
    fn a_long_histogram_ends_in_one_row() {
        let figures = TimerFigures {
            histogram_100us: (0..100).map(|bin| (bin * 100, 1)).collect(),
            ..TimerFigures::default()
        };
        let text = histogram(&[("all", &figures)]);
        assert_eq!(text.lines().count(), 1 + BINS_MAX);
        assert!(text.ends_with("5900 µs and more                        41\n"), "{text}");
    }

    #[test]
    fn every_clock_has_its_row_and_drift_is_reported() {
        let figures = OfferedClock {
            name: "monotonic-coarse".to_owned(),
            resolution_ns: Some(4_000_000),
            step_ns: Some(4_000_000),
            read_ns: Some(12.0),
        };
        let clocks = Clocks {
            source: Some("tsc".to_owned()),
            sources: vec!["tsc".to_owned(), "kvm-clock".to_owned()],
            event_devices: [0, 1]
                .map(|cpu| (format!("clockevent{cpu}"), "lapic-deadline".to_owned()))
                .to_vec(),
            clocks: vec![figures],
            ..Clocks::default()
        };
        let text = clock_table(&clocks).expect("there is a clock");
        assert!(
            text.starts_with("Clock source: tsc (of tsc, kvm-clock); events: lapic-deadline.\n"),
            "{text}"
        );
        assert!(text.contains("monotonic-coarse") && text.lines().count() == 3, "{text}");
        assert_eq!(clock_table(&Clocks::default()), None);
        let slept = ClocksApart { seconds: 10.0, suspended_ms: 2_000.0, ..ClocksApart::default() };
        assert_eq!(
            drift(&slept).as_deref(),
            Some("Clocks drifted apart in these 10.0 s: the machine was suspended for 2000 ms.\n")
        );
        assert_eq!(drift(&ClocksApart { seconds: 10.0, ..ClocksApart::default() }), None);
    }
}
