// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison beside a load: a table with a row for each turn, what the manager changes, and the paper's figure 2
//! in characters.

mod chart;

pub use chart::chart;

use serde::{Deserialize, Serialize};
use tipme_measure::{Share, Summary};

/// As in the paper's text: "character echoing should happen within 50 milliseconds".
pub const PAPER_PROTOTYPE_MS: f64 = 50.0;

const P95: Share = Share(9_500);

/// Times of one turn, over all blocks, by nearest rank.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ArmFigures {
    /// `null` where there is no value.
    pub p50_ms: Option<f64>,
    /// `null` with fewer than 100 values, as everywhere: there are not five above it.
    pub p95_ms: Option<f64>,
    /// `null` with fewer than 500.
    pub p99_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub n: usize,
    /// How many had not ended when they were given up: their times are at least what counts here.
    pub unanswered: usize,
}

impl ArmFigures {
    /// Of times in nanoseconds, in any order.
    pub fn of(times_ns: Vec<u64>, unanswered: usize) -> ArmFigures {
        let summary = Summary::new(times_ns);
        let ms = |ns: u64| ns as f64 / 1e6;
        ArmFigures {
            p50_ms: summary.value(Share::P50).map(ms),
            p95_ms: summary.shown(P95).map(ms),
            p99_ms: summary.shown(Share::P99).map(ms),
            max_ms: summary.max().map(ms),
            n: summary.n(),
            unanswered,
        }
    }
}

/// One turn of a comparison.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ArmRow {
    /// As in `load 20, managed`.
    pub turn: String,
    /// `unmanaged`, `managed`, `nice19`, `autogroup`, `weight`.
    pub arm: String,
    /// Runnable processes aimed at.
    pub level: u32,
    pub figures: ArmFigures,
    /// Runnable processes of the load on average; `null` without a load.
    pub runnable_mean: Option<f64>,
    /// Work that the load did.
    pub rounds_per_s: Option<f64>,
    /// What of it is missing beside the same load unmanaged; below 0 where there is more.
    pub throughput_lost_percent: Option<f64>,
    /// The fewest rounds that a process of the load did in any ten seconds; 0 is starvation, `null` was not watched.
    pub window_rounds_min: Option<u64>,
}

/// The one figure by which turns are compared and drawn.
#[derive(Clone, Copy, Debug)]
pub struct KeyFigure {
    /// `p95`, or `median` where a turn has too few values for that.
    pub name: &'static str,
    pub of: fn(&ArmFigures) -> Option<f64>,
}

impl KeyFigure {
    /// The same for all turns.
    pub fn of(rows: &[ArmRow], scale: Scale) -> KeyFigure {
        let many = scale == Scale::Latency && rows.iter().all(|row| row.figures.p95_ms.is_some());
        match many {
            true => KeyFigure { name: "p95", of: |figures| figures.p95_ms },
            false => KeyFigure { name: "median", of: |figures| figures.p50_ms },
        }
    }
}

/// What the times of a table are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Milliseconds, many of them: percentiles.
    Latency,
    /// Seconds, few of them: the median and the longest.
    Elapsed,
}

impl Scale {
    fn shown(self, ms: Option<f64>) -> String {
        match (self, ms) {
            (_, None) => "-".to_owned(),
            (Scale::Latency, Some(ms)) => format!("{ms:.2}"),
            (Scale::Elapsed, Some(ms)) => format!("{:.2}", ms / 1e3),
        }
    }

    fn unit(self) -> &'static str {
        if self == Scale::Latency { "ms" } else { "s" }
    }
}

/// A table with a row for each turn.
pub fn arms(rows: &[ArmRow], scale: Scale, of: &str) -> String {
    let unit = scale.unit();
    let head = format!(
        "{of:22} {:>6} {:>9} {:>9} {:>9} {:>9}  {:>8} {:>7}\n",
        "n",
        format!("p50 {unit}"),
        format!("p95 {unit}"),
        format!("p99 {unit}"),
        format!("max {unit}"),
        "runnable",
        "lost %"
    );
    std::iter::once(head).chain(rows.iter().map(|row| line(row, scale))).collect()
}

fn line(row: &ArmRow, scale: Scale) -> String {
    let figures = &row.figures;
    let median = scale.shown(figures.p50_ms);
    let unanswered = match figures.unanswered {
        0 => String::new(),
        many => format!("  ({many} not answered in time)"),
    };
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    format!(
        "{:22} {:>6} {median:>9} {:>9} {:>9} {:>9}  {:>8} {:>7}{unanswered}\n",
        row.turn,
        figures.n,
        scale.shown(figures.p95_ms),
        scale.shown(figures.p99_ms),
        scale.shown(figures.max_ms),
        number(row.runnable_mean),
        number(row.throughput_lost_percent),
    )
}

/// A line for each turn beside a load: how its p95, or its median where times are few, compares with unloaded.
pub fn against_unloaded(rows: &[ArmRow], scale: Scale) -> String {
    let Some(calm) = rows.iter().find(|row| row.level == 0 && row.arm == "unmanaged") else { return String::new() };
    let key_figure = KeyFigure::of(rows, scale);
    let loaded = rows.iter().filter(|row| row.level > 0);
    let lines = loaded.filter_map(|row| {
        let (ms, calm) = ((key_figure.of)(&row.figures)?, (key_figure.of)(&calm.figures).filter(|ms| *ms > 0.0)?);
        let (name, more) = (key_figure.name, scale.shown(Some(ms - calm)));
        Some(format!("  {}: {name} {:.2} times unloaded, {more} {} more\n", row.turn, ms / calm, scale.unit()))
    });
    lines.collect()
}

/// A line for each turn whose load was watched: whether all of its processes got on.
pub fn progress(rows: &[ArmRow]) -> String {
    let watched = rows.iter().filter_map(|row| Some((&row.turn, row.window_rounds_min?)));
    let lines = watched.map(|(turn, rounds)| {
        let starved = if rounds == 0 { "; starved" } else { "" };
        format!("  {turn}: every process of the load did {rounds} rounds or more in any 10 s{starved}\n")
    });
    lines.collect()
}

/// Fills in what of the load's work is missing beside the same load unmanaged.
pub fn fill_lost(rows: &mut [ArmRow]) {
    let unmanaged: Vec<(u32, f64)> = rows
        .iter()
        .filter(|row| row.arm == "unmanaged")
        .filter_map(|row| Some((row.level, row.rounds_per_s.filter(|rate| *rate > 0.0)?)))
        .collect();
    for row in rows.iter_mut().filter(|row| row.arm != "unmanaged") {
        let before = unmanaged.iter().find(|(level, _)| *level == row.level);
        row.throughput_lost_percent =
            before.zip(row.rounds_per_s).map(|((_, before), now)| 100.0 * (1.0 - now / before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn row(arm: &str, level: u32, times_ms: &[u64], rounds_per_s: f64) -> ArmRow {
        let turn = if level == 0 { "unloaded".to_owned() } else { format!("load {level}, {arm}") };
        ArmRow {
            turn,
            arm: arm.to_owned(),
            level,
            figures: ArmFigures::of(times_ms.iter().map(|ms| ms * MS).collect(), 0),
            runnable_mean: (level > 0).then_some(19.84),
            rounds_per_s: (level > 0).then_some(rounds_per_s),
            throughput_lost_percent: None,
            window_rounds_min: None,
        }
    }

    fn rows() -> Vec<ArmRow> {
        let hundred = |ms: u64| (0..100).map(|more| ms + more / 50).collect::<Vec<u64>>();
        let mut rows = vec![
            row("unmanaged", 0, &hundred(1), 0.0),
            row("unmanaged", 20, &hundred(40), 1_000.0),
            row("managed", 20, &hundred(1), 990.0),
        ];
        fill_lost(&mut rows);
        rows
    }

    #[test]
    fn each_turn_has_a_row() {
        insta::assert_snapshot!(arms(&rows(), Scale::Latency, "typing"), @r"
        typing                      n    p50 ms    p95 ms    p99 ms    max ms  runnable  lost %
        unloaded                  100      1.00      2.00         -      2.00         -       -
        load 20, unmanaged        100     40.00     41.00         -     41.00      19.8       -
        load 20, managed          100      1.00      2.00         -      2.00      19.8     1.0
        ");
        insta::assert_snapshot!(against_unloaded(&rows(), Scale::Latency), @r"
          load 20, unmanaged: p95 20.50 times unloaded, 39.00 ms more
          load 20, managed: p95 1.00 times unloaded, 0.00 ms more
        ");
    }

    #[test]
    fn few_long_times_are_shown_by_their_median() {
        let mut few = row("managed", 20, &[3_000, 1_000, 2_000], 1.0);
        few.figures.unanswered = 1;
        let text = arms(&[few], Scale::Elapsed, "scrolling");
        assert!(text.contains("p50 s") && text.contains("      2.00         -         -      3.00"), "{text}");
        assert!(text.contains("(1 not answered in time)"), "{text}");
    }

    #[test]
    fn a_percentile_is_told_where_enough_values_lie_above_it_and_nowhere_else() {
        let of = |n: u64| ArmFigures::of((0..n).map(|ms| ms * MS).collect(), 0);
        assert_eq!((of(99).p95_ms, of(99).p50_ms, of(99).max_ms), (None, Some(49.0), Some(98.0)));
        assert_eq!((of(100).p95_ms, of(499).p99_ms, of(500).p99_ms), (Some(94.0), None, Some(494.0)));
        let mut few = rows();
        assert_eq!(KeyFigure::of(&few, Scale::Latency).name, "p95");
        assert_eq!(KeyFigure::of(&few, Scale::Elapsed).name, "median");
        few[1].figures = of(99);
        let key_figure = KeyFigure::of(&few, Scale::Latency);
        assert_eq!((key_figure.name, (key_figure.of)(&few[1].figures)), ("median", Some(49.0)));
    }

    #[test]
    fn starvation_is_told() {
        let mut rows = rows();
        assert_eq!(progress(&rows), "");
        (rows[1].window_rounds_min, rows[2].window_rounds_min) = (Some(812), Some(0));
        insta::assert_snapshot!(progress(&rows), @r"
          load 20, unmanaged: every process of the load did 812 rounds or more in any 10 s
          load 20, managed: every process of the load did 0 rounds or more in any 10 s; starved
        ");
    }

    #[test]
    fn nothing_measured_gives_no_number() {
        assert_eq!(ArmFigures::of(Vec::new(), 0), ArmFigures::default());
        let empty = ArmRow { turn: "load 5, managed".to_owned(), level: 5, ..ArmRow::default() };
        assert!(arms(std::slice::from_ref(&empty), Scale::Latency, "typing").contains('-'));
        assert_eq!(against_unloaded(&[empty], Scale::Latency), "");
    }
}
