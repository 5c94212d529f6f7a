// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of a comparison beside a load: a table with a row for each turn, the effect of the
//! manager, and figure 2 of the paper as a plot.

use super::figures::{ArmRow, Compared, LostParts};
use super::scale::{ArmScale, KeyFigure};
use super::{Arm, ArmComparison, NOT_STEADY};
use crate::choice::{name, number};
use crate::experiment::BenchFigures;
use schemars::JsonSchema;
use serde::Serialize;
use tipme_measure::Document;
use tipme_report::conditions;
use tipme_report::plot::{Figure, LevelCurve, levels};

/// Words for one kind of measurement.
pub struct ArmTerms {
    /// Heading of the first column.
    pub heading: &'static str,
    /// Meaning of the times, as in "p95 of the delay".
    pub quantity: &'static str,
    pub scale: ArmScale,
    /// Results of the paper, a line each.
    pub paper: &'static [&'static str],
    /// Reference line of the plot, if the paper's scale is the same as ours.
    pub line_ms: Option<f64>,
}

/// Part of the figures that only one benchmark beside a load has.
pub trait ArmDetails: Serialize + JsonSchema {
    const TERMS: ArmTerms;

    /// Returns the bounds of the measurement, a line each.
    fn bounds(figures: &Compared<Self>) -> Vec<String>
    where
        Self: Sized;
}

impl<M: ArmDetails> BenchFigures for Compared<M> {
    /// Returns the bounds, the table, the results of the paper, and the conditions.
    fn text(document: &Document<Compared<M>>) -> String {
        let (rows, terms) = (&document.details.arms, &M::TERMS);
        let mut out = format!("{}\n", document.details.title);
        out.extend(notes(&document.details).iter().map(|line| format!("  {line}\n")));
        out += &format!("\n{}\n", arms(rows, terms.scale, terms.heading));
        out += &against_unloaded(rows, terms.scale);
        out += &waited(rows);
        out += &lost(rows);
        out += &progress(rows);
        out.extend(terms.paper.iter().map(|line| format!("  {line}\n")));
        out + &format!("{}\n", conditions(&document.machine))
    }

    /// Draws a curve of each arm over the level of the load.
    fn plots(document: &Document<Compared<M>>) -> Vec<(String, String)> {
        let details = &document.details;
        let footer = [notes(details), vec![conditions(&document.machine)]].concat().join("; ");
        let figure = Figure { title: details.title, footer: &footer, ..Figure::default() };
        let key_figure = KeyFigure::choose(&details.arms, M::TERMS.scale);
        let name = format!("{} of {}, ms", key_figure.name, M::TERMS.quantity);
        let plot = levels(&figure, &curves(&details.arms, key_figure), &name, M::TERMS.line_ms);
        vec![(format!("{}.svg", document.kind), plot)]
    }
}

/// Returns the bounds, the conditions and the arms that are missing.
fn notes<M: ArmDetails>(figures: &Compared<M>) -> Vec<String> {
    let place = (figures.load > 0).then(|| figures.conditions.place.clone());
    let lacking = figures.not_available.iter();
    let lacking =
        lacking.map(|one| format!("{}: not available, because {}", name(&one.arm), one.because));
    let steadiness = (!figures.conditions.realtime).then(|| NOT_STEADY.to_owned());
    M::bounds(figures).into_iter().chain(place).chain(lacking).chain(steadiness).collect()
}

/// Returns the number of turns and the missing arms, for the line before the start.
pub(crate) fn turns_words(comparison: &ArmComparison) -> String {
    let lacking = comparison.against.iter().filter_map(|arm| Some((name(arm), arm.lacks()?)));
    let missing =
        lacking.map(|(arm, because)| format!("; {arm}: not available, because {because}"));
    let turns = comparison.turns(0).len();
    format!("{} blocks of {turns} turns{}", comparison.blocks, missing.collect::<String>())
}

/// Describes the load.
pub(crate) fn load_words<M>(figures: &Compared<M>) -> String {
    let conditions = &figures.conditions;
    if figures.load == 0 {
        return format!("{} blocks; no load", conditions.blocks);
    }
    format!(
        "{} blocks; load {}: {} pages per ms, reuse {}, {} MiB at most",
        conditions.blocks,
        name(&conditions.kind),
        conditions.demand_pages_per_ms,
        conditions.reuse,
        conditions.memory_bytes >> 20
    )
}

/// Returns a curve for each arm, with a point for each turn that has the figure.
fn curves(rows: &[ArmRow], key_figure: KeyFigure) -> Vec<LevelCurve> {
    let mut curves: Vec<LevelCurve> = Vec::new();
    for row in rows {
        let Some(ms) = (key_figure.value)(&row.figures) else { continue };
        let (arm, point) = (name(&row.arm), (f64::from(row.level), ms));
        match curves.iter_mut().find(|curve| curve.name == arm) {
            Some(curve) => curve.points.push(point),
            None => curves.push(LevelCurve { name: arm, points: vec![point] }),
        }
    }
    curves
}

/// Returns a table with a row for each turn.
fn arms(rows: &[ArmRow], scale: ArmScale, of: &str) -> String {
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

fn line(row: &ArmRow, scale: ArmScale) -> String {
    let figures = &row.figures;
    let median = scale.shown(figures.p50_ms);
    let unanswered = match figures.unanswered {
        0 => String::new(),
        many => format!("  ({many} not answered in time)"),
    };
    format!(
        "{:22} {:>6} {median:>9} {:>9} {:>9} {:>9}  {:>8} {:>7}{unanswered}\n",
        row.turn,
        figures.n,
        scale.shown(figures.p95_ms),
        scale.shown(figures.p99_ms),
        scale.shown(figures.max_ms),
        number(row.runnable_mean, 1),
        number(row.throughput_lost_percent, 1),
    )
}

/// Returns the turn without a load and without a manager.
fn calm(rows: &[ArmRow]) -> Option<&ArmRow> {
    rows.iter().find(|row| row.level == 0 && row.arm == Arm::Unmanaged)
}

/// Returns a line for each turn beside a load that compares its p95, or its median if times are
/// few, with the unloaded turn.
fn against_unloaded(rows: &[ArmRow], scale: ArmScale) -> String {
    let Some(calm) = calm(rows) else { return String::new() };
    let key_figure = KeyFigure::choose(rows, scale);
    let loaded = rows.iter().filter(|row| row.level > 0);
    let lines = loaded.filter_map(|row| {
        let (ms, calm) = (
            (key_figure.value)(&row.figures)?,
            (key_figure.value)(&calm.figures).filter(|ms| *ms > 0.0)?,
        );
        let (name, more) = (key_figure.name, scale.shown(Some(ms - calm)));
        Some(format!(
            "  {}: {name} {:.2} times unloaded, {more} {} more\n",
            row.turn,
            ms / calm,
            scale.unit()
        ))
    });
    lines.collect()
}

/// Returns a line for each turn beside a load with the run-queue delay of the answering threads,
/// where measured.
fn waited(rows: &[ArmRow]) -> String {
    let calm = calm(rows).and_then(|row| row.run_queue_delay_ms);
    let unloaded = calm.map_or_else(String::new, |ms| format!(" (unloaded {ms:.2} ms)"));
    let loaded = rows.iter().filter(|row| row.level > 0);
    let delays = loaded.filter_map(|row| Some((&row.turn, row.run_queue_delay_ms?)));
    delays
        .map(|(turn, ms)| format!("  {turn}: {ms:.2} ms waiting for a CPU each time{unloaded}\n"))
        .collect()
}

/// Returns a line for each turn that changed the throughput of the load, with the spread of its
/// blocks.
fn lost(rows: &[ArmRow]) -> String {
    let lines = rows.iter().filter_map(|row| {
        let (lost, (least, most)) = (row.throughput_lost_percent?, row.lost_between()?);
        let apart = if least < 0.0 && most > 0.0 { "; the blocks differ by more: no loss is shown" } else { "" };
        Some(format!(
            "  {}: {lost:.1}% of the load's throughput lost, {least:.1} to {most:.1}% by block{apart}{}\n",
            row.turn,
            row.lost_parts.map(lost_words).unwrap_or_default()
        ))
    });
    lines.collect()
}

/// Splits a loss into less CPU time and slower work.
fn lost_words(parts: LostParts) -> String {
    let LostParts { cpu_time_percent, slower_percent, .. } = parts;
    let manager = parts
        .manager_percent
        .map(|percent| format!(" (the manager itself took {percent:.1}% of what the load had)"));
    let manager = manager.unwrap_or_default();
    format!(
        "; {cpu_time_percent:.1}% less CPU time{manager}, and {slower_percent:.1}% less done in the same CPU time"
    )
}

/// Returns a line for each turn with a watched load: the progress of its processes.
fn progress(rows: &[ArmRow]) -> String {
    rows.iter().filter_map(|row| Some(progress_line(&row.turn, row.window_rounds_min?))).collect()
}

/// Returns the fewest rounds that any process of the load did in ten seconds, as a line.
pub(crate) fn progress_line(turn: &str, rounds: u64) -> String {
    let starved = if rounds == 0 { "; starved" } else { "" };
    format!(
        "  {turn}: every process of the load did {rounds} rounds or more in any 10 s{starved}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::ArmTurn;
    use super::super::figures::{ArmFigures, fill_lost};
    use super::*;
    use crate::load::Achieved;

    const MS: u64 = 1_000_000;

    fn row(arm: Arm, level: u32, times_ms: &[u64], rounds_per_s: f64) -> ArmRow {
        let figures = ArmFigures::new(times_ms.iter().map(|ms| ms * MS).collect(), 0);
        let load = Achieved { runnable_mean: 19.84, rounds_per_s, ..Achieved::default() };
        ArmRow::new(ArmTurn { level, arm }, figures, (level > 0).then_some(load))
    }

    fn rows() -> Vec<ArmRow> {
        let [quick, slow] =
            [1, 40].map(|ms| (0..100).map(|more| ms + more / 50).collect::<Vec<u64>>());
        let mut rows = vec![
            row(Arm::Unmanaged, 0, &quick, 0.0),
            row(Arm::Unmanaged, 20, &slow, 1_000.0),
            row(Arm::Managed, 20, &quick, 990.0),
        ];
        fill_lost(&mut rows);
        rows
    }

    #[test]
    fn each_turn_has_a_row() {
        insta::assert_snapshot!(arms(&rows(), ArmScale::Latency, "typing"), @r"
        typing                      n    p50 ms    p95 ms    p99 ms    max ms  runnable  lost %
        unloaded                  100      1.00      2.00         -      2.00         -       -
        load 20, unmanaged        100     40.00     41.00         -     41.00      19.8       -
        load 20, managed          100      1.00      2.00         -      2.00      19.8     1.0
        ");
        insta::assert_snapshot!(against_unloaded(&rows(), ArmScale::Latency), @r"
          load 20, unmanaged: p95 20.50 times unloaded, 39.00 ms more
          load 20, managed: p95 1.00 times unloaded, 0.00 ms more
        ");
    }

    #[test]
    fn run_queue_delays_are_shown_where_they_were_measured() {
        let mut rows = rows();
        assert_eq!(waited(&rows), "");
        for (row, ms) in rows.iter_mut().zip([0.25, 30.0, 0.5]) {
            row.run_queue_delay_ms = Some(ms);
        }
        insta::assert_snapshot!(waited(&rows), @r"
          load 20, unmanaged: 30.00 ms waiting for a CPU each time (unloaded 0.25 ms)
          load 20, managed: 0.50 ms waiting for a CPU each time (unloaded 0.25 ms)
        ");
    }

    #[test]
    fn few_long_times_are_shown_by_their_median() {
        let mut few = row(Arm::Managed, 20, &[3_000, 1_000, 2_000], 1.0);
        few.figures.unanswered = 1;
        let text = arms(&[few], ArmScale::Elapsed, "scrolling");
        assert!(
            text.contains("p50 s") && text.contains("      2.00         -         -      3.00"),
            "{text}"
        );
        assert!(text.contains("(1 not answered in time)"), "{text}");
    }

    #[test]
    fn where_a_turn_has_too_few_values_medians_are_compared() {
        let mut few = rows();
        assert_eq!(KeyFigure::choose(&few, ArmScale::Latency).name, "p95");
        assert_eq!(KeyFigure::choose(&few, ArmScale::Elapsed).name, "median");
        few[1].figures = ArmFigures::new((0..99).map(|ms| ms * MS).collect(), 0);
        let key_figure = KeyFigure::choose(&few, ArmScale::Latency);
        assert_eq!((key_figure.name, (key_figure.value)(&few[1].figures)), ("median", Some(49.0)));
    }

    #[test]
    fn starvation_is_shown() {
        let mut rows = rows();
        assert_eq!(progress(&rows), "");
        (rows[1].window_rounds_min, rows[2].window_rounds_min) = (Some(812), Some(0));
        insta::assert_snapshot!(progress(&rows), @r"
          load 20, unmanaged: every process of the load did 812 rounds or more in any 10 s
          load 20, managed: every process of the load did 0 rounds or more in any 10 s; starved
        ");
    }

    #[test]
    fn a_loss_is_shown_with_its_parts() {
        let mut rows = rows();
        rows[2].throughput_lost_by_block_percent = vec![0.5, 1.5];
        let parts =
            LostParts { cpu_time_percent: 0.4, slower_percent: 0.6, manager_percent: Some(0.2) };
        rows[2].lost_parts = Some(parts);
        insta::assert_snapshot!(lost(&rows), @"  load 20, managed: 1.0% of the load's throughput lost, 0.5 to 1.5% by block; 0.4% less CPU time (the manager itself took 0.2% of what the load had), and 0.6% less done in the same CPU time");
    }

    #[test]
    fn nothing_measured_gives_no_number() {
        let empty = row(Arm::Managed, 5, &[], 0.0);
        assert!(arms(std::slice::from_ref(&empty), ArmScale::Latency, "typing").contains('-'));
        assert_eq!(against_unloaded(&[empty], ArmScale::Latency), "");
    }
}
