// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of a scripted run over several applications, beside that of the paper.

use super::figures::{PAPER, PaperRow, SystemFigures, SystemRow};
use super::options::Beside;
use crate::arms::{Arm, NOT_STEADY, progress_line};
use crate::choice::name;
use crate::experiment::BenchFigures;
use tipme_measure::Document;
use tipme_report::conditions;

/// Columns in the order of the paper's figures.
const COLUMNS: [Beside; 3] = [Beside::Nothing, Beside::Build, Beside::Synthetic];

impl BenchFigures for SystemFigures {
    /// Formats the activity, the conditions, and the times.
    fn text(document: &Document<SystemFigures>) -> String {
        let figures = &document.details;
        let (blocks, changes, keys) = (figures.blocks, figures.changes, figures.keys);
        let runs =
            format!("{blocks} runs each; {changes} changes of the focus and {keys} keys a run");
        let build = figures.build.as_ref().map(|work| format!("build: {work}"));
        let load = figures.synthetic.as_ref().map(|load| format!("heavy synthetic: {load}"));
        let steadiness = (!figures.realtime).then(|| NOT_STEADY.to_owned());
        let lines = [Some(runs), build, load, figures.place.clone(), steadiness];
        let mut out = format!("{}: {}\n", figures.title, figures.applications.join(", "));
        out.extend(lines.into_iter().flatten().map(|line| format!("  {line}\n")));
        out + &format!("\n{}{}\n", table(&figures.rows), conditions(&document.machine))
    }
}

fn head(column: Beside) -> &'static str {
    match column {
        Beside::Nothing => "beside nothing",
        Beside::Build => "build",
        Beside::Synthetic => "heavy synthetic",
    }
}

/// Formats the paper's table 1 beside our figures: seconds, and multiples of the same arm's run
/// beside nothing. Jobs that were not run have no column.
fn table(rows: &[SystemRow]) -> String {
    let columns: Vec<Beside> =
        COLUMNS.into_iter().filter(|column| rows.iter().any(|row| row.beside == *column)).collect();
    let heads = columns.iter().map(|column| format!("{:>18}", head(*column)));
    let mut out = format!("{:24}{}\n", "seconds", heads.collect::<String>());
    for arm in [Arm::Unmanaged, Arm::Managed] {
        let cells = columns.iter().map(|column| {
            let row = rows.iter().find(|row| (row.beside, row.arm) == (*column, arm))?;
            Some((row.median_s, row.times_unloaded))
        });
        let cells: Vec<Cell> = cells.collect();
        if cells.iter().any(Option::is_some) {
            out += &line(&name(&arm), &cells);
        }
    }
    for PaperRow { arm, seconds } in PAPER {
        let cells = columns.iter().map(|column| {
            let time = seconds[*column as usize];
            Some((time, Some(time / seconds[0])))
        });
        let cells: Vec<Cell> = cells.collect();
        out += &line(&format!("paper (1993), {}", name(&arm)), &cells);
    }
    out + &losses(rows)
}

/// Seconds, and the multiple; `None` if not measured.
type Cell = Option<(f64, Option<f64>)>;

fn line(words: &str, cells: &[Cell]) -> String {
    let mut line = format!("{words:24}");
    for cell in cells {
        let cell = match cell {
            None => "-".to_owned(),
            Some((seconds, None)) => format!("{seconds:.1}"),
            Some((seconds, Some(times))) => format!("{seconds:.1} ({times:.2} x)"),
        };
        line += &format!("{cell:>18}");
    }
    line + "\n"
}

/// As in `build, managed`.
fn turn(row: &SystemRow) -> String {
    format!("{}, {}", name(&row.beside), name(&row.arm))
}

fn losses(rows: &[SystemRow]) -> String {
    let lost = rows.iter().filter_map(|row| {
        let percent = row.throughput_lost_percent?;
        Some(format!("  {}: {percent:.1}% of the throughput beside it lost\n", turn(row)))
    });
    let unanswered = rows.iter().filter(|row| row.unanswered > 0);
    let unanswered = unanswered
        .map(|row| format!("  {}: {} keys not answered in time\n", turn(row), row.unanswered));
    let watched =
        rows.iter().filter_map(|row| Some(progress_line(&turn(row), row.window_rounds_min?)));
    lost.chain(unanswered).chain(watched).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::fill;
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn ours_stands_beside_the_papers() {
        let mut rows = [
            (Beside::Nothing, Arm::Unmanaged, 20, None),
            (Beside::Nothing, Arm::Managed, 20, None),
            (Beside::Build, Arm::Unmanaged, 30, Some(10.0)),
            (Beside::Build, Arm::Managed, 21, Some(9.9)),
        ]
        .map(|(beside, arm, s, done_per_s)| {
            let row = SystemRow::new(beside, arm, &[s * S, (s + 1) * S, (s - 1) * S]);
            SystemRow { done_per_s, ..row.expect("there are times") }
        });
        fill(&mut rows);
        assert_eq!((rows[2].times_unloaded, rows[2].throughput_lost_percent), (Some(1.5), None));
        assert_eq!(
            (rows[2].min_s, rows[2].median_s, rows[2].max_s, rows[2].n),
            (29.0, 30.0, 31.0, 3)
        );
        insta::assert_snapshot!(table(&rows), @r"
        seconds                     beside nothing             build
        unmanaged                    20.0 (1.00 x)     30.0 (1.50 x)
        managed                      20.0 (1.00 x)     21.0 (1.05 x)
        paper (1993), unmanaged      50.0 (1.00 x)     89.0 (1.78 x)
        paper (1993), managed        49.0 (1.00 x)     56.0 (1.14 x)
          build, managed: 1.0% of the throughput beside it lost
        ");
    }

    #[test]
    fn nothing_compares_with_nothing() {
        assert_eq!(SystemRow::new(Beside::Build, Arm::Managed, &[]), None);
        let mut alone = vec![SystemRow::new(Beside::Build, Arm::Managed, &[S]).expect("a time")];
        (alone[0].unanswered, alone[0].window_rounds_min) = (2, Some(0));
        fill(&mut alone);
        assert_eq!(alone[0].times_unloaded, None);
        let text = table(&alone);
        assert!(
            text.contains("2 keys not answered in time")
                && text.contains("0 rounds or more in any 10 s; starved")
        );
        assert!(!text.contains("beside nothing") && !text.contains("heavy synthetic"), "{text}");
    }
}
