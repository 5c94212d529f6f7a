// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of a scripted run over several applications, beside that of the paper.

use serde::{Deserialize, Serialize};
use tipme_measure::{Share, Summary};

/// The paper's table 1, in seconds: beside nothing, `make`, and a heavy synthetic load.
pub const PAPER: [(&str, [f64; 3]); 2] = [("unmanaged", [50.0, 89.0, 789.0]), ("managed", [49.0, 56.0, 96.0])];
/// The nearest rank of nothing is the first one.
const LEAST: Share = Share(0);
/// As in [`SystemRow::beside`].
const BESIDE: [&str; 3] = ["nothing", "build", "synthetic"];
/// What stands above their columns.
const HEADS: [&str; 3] = ["beside nothing", "build", "heavy synthetic"];

/// The runs of a script beside one thing with one arm.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SystemRow {
    /// `nothing`, `build` or `synthetic`.
    pub beside: String,
    /// `unmanaged` or `managed`.
    pub arm: String,
    pub median_s: f64,
    pub min_s: f64,
    pub max_s: f64,
    pub n: usize,
    /// The median, as a multiple of that of the same arm beside nothing; `null` where that was not measured.
    pub times_unloaded: Option<f64>,
    /// Keys that were not answered in time.
    pub unanswered: usize,
    /// Files of the build, or rounds of the load, in all; `null` beside nothing.
    pub done: Option<u64>,
    /// The same a second.
    pub done_per_s: Option<f64>,
    /// What of it is missing beside the same load unmanaged.
    pub throughput_lost_percent: Option<f64>,
    /// The fewest rounds that a process of the load did in any ten seconds; `null` without a load, and for a build.
    pub window_rounds_min: Option<u64>,
}

impl SystemRow {
    /// Of times in nanoseconds; `None` for none.
    pub fn of(beside: &str, arm: &str, times_ns: &[u64]) -> Option<SystemRow> {
        let times = Summary::new(times_ns.to_vec());
        let seconds = |ns: u64| ns as f64 / 1e9;
        Some(SystemRow {
            beside: beside.to_owned(),
            arm: arm.to_owned(),
            median_s: seconds(times.value(Share::P50)?),
            min_s: seconds(times.value(LEAST)?),
            max_s: seconds(times.max()?),
            n: times.n(),
            ..SystemRow::default()
        })
    }
}

/// Fills in how the rows compare with each other.
pub fn fill_system(rows: &mut [SystemRow]) {
    let before = rows.to_vec();
    let of = |beside: &str, arm: &str| before.iter().find(|row| row.beside == beside && row.arm == arm);
    for row in rows {
        let calm = of("nothing", &row.arm).filter(|calm| calm.median_s > 0.0);
        row.times_unloaded = calm.map(|calm| row.median_s / calm.median_s);
        let same = of(&row.beside, "unmanaged").filter(|_| row.arm != "unmanaged");
        let rates = same.and_then(|same| same.done_per_s).filter(|rate| *rate > 0.0).zip(row.done_per_s);
        row.throughput_lost_percent = rates.map(|(before, now)| 100.0 * (1.0 - now / before));
    }
}

/// The paper's table 1 with ours beside it: seconds, and multiples of the same arm's run beside nothing. What was not
/// run has no column.
pub fn system(rows: &[SystemRow]) -> String {
    let columns: Vec<usize> =
        (0..BESIDE.len()).filter(|column| rows.iter().any(|row| row.beside == BESIDE[*column])).collect();
    let heads = columns.iter().map(|column| format!("{:>18}", HEADS[*column]));
    let mut out = format!("{:24}{}\n", "seconds", heads.collect::<String>());
    for arm in ["unmanaged", "managed"] {
        let row = |column: &usize| rows.iter().find(|row| row.beside == BESIDE[*column] && row.arm == arm);
        let cells: Vec<Cell> =
            columns.iter().map(|column| Some((row(column)?.median_s, row(column)?.times_unloaded))).collect();
        if cells.iter().any(Option::is_some) {
            out += &line(arm, &cells);
        }
    }
    for (arm, seconds) in PAPER {
        let times = |column: &usize| Some((seconds[*column], Some(seconds[*column] / seconds[0])));
        out += &line(&format!("paper (1993), {arm}"), &columns.iter().map(times).collect::<Vec<Cell>>());
    }
    out + &losses(rows)
}

/// Seconds, and the multiple; `None` where nothing was measured.
type Cell = Option<(f64, Option<f64>)>;

fn line(name: &str, cells: &[Cell]) -> String {
    let cell = |cell: &Cell| match cell {
        None => "-".to_owned(),
        Some((seconds, None)) => format!("{seconds:.1}"),
        Some((seconds, Some(times))) => format!("{seconds:.1} ({times:.2} x)"),
    };
    format!("{name:24}{}\n", cells.iter().map(|one| format!("{:>18}", cell(one))).collect::<String>())
}

fn losses(rows: &[SystemRow]) -> String {
    let lost = rows.iter().filter_map(|row| {
        let percent = row.throughput_lost_percent?;
        Some(format!("  {}, {}: {percent:.1} % of the throughput beside it lost\n", row.beside, row.arm))
    });
    let unanswered = rows.iter().filter(|row| row.unanswered > 0);
    let unanswered =
        unanswered.map(|row| format!("  {}, {}: {} keys not answered in time\n", row.beside, row.arm, row.unanswered));
    let watched = rows.iter().filter_map(|row| Some((row, row.window_rounds_min?)));
    let watched = watched.map(|(row, rounds)| {
        let starved = if rounds == 0 { "; starved" } else { "" };
        let (beside, arm) = (&row.beside, &row.arm);
        format!("  {beside}, {arm}: every process of the load did {rounds} rounds or more in any 10 s{starved}\n")
    });
    lost.chain(unanswered).chain(watched).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn ours_stands_beside_the_papers() {
        let row = |beside: &str, arm: &str, s: u64, rate: Option<f64>| SystemRow {
            done_per_s: rate,
            ..SystemRow::of(beside, arm, &[s * S, (s + 1) * S, (s - 1) * S]).expect("there are times")
        };
        let mut rows = vec![
            row("nothing", "unmanaged", 20, None),
            row("nothing", "managed", 20, None),
            row("build", "unmanaged", 30, Some(10.0)),
            row("build", "managed", 21, Some(9.9)),
        ];
        fill_system(&mut rows);
        assert_eq!((rows[2].times_unloaded, rows[2].throughput_lost_percent), (Some(1.5), None));
        assert_eq!((rows[2].min_s, rows[2].median_s, rows[2].max_s, rows[2].n), (29.0, 30.0, 31.0, 3));
        insta::assert_snapshot!(system(&rows), @r"
        seconds                     beside nothing             build
        unmanaged                    20.0 (1.00 x)     30.0 (1.50 x)
        managed                      20.0 (1.00 x)     21.0 (1.05 x)
        paper (1993), unmanaged      50.0 (1.00 x)     89.0 (1.78 x)
        paper (1993), managed        49.0 (1.00 x)     56.0 (1.14 x)
          build, managed: 1.0 % of the throughput beside it lost
        ");
    }

    #[test]
    fn nothing_compares_with_nothing() {
        assert_eq!(SystemRow::of("build", "managed", &[]), None);
        let mut alone = vec![SystemRow::of("build", "managed", &[S]).expect("a time")];
        (alone[0].unanswered, alone[0].window_rounds_min) = (2, Some(0));
        fill_system(&mut alone);
        assert_eq!(alone[0].times_unloaded, None);
        let text = system(&alone);
        assert!(text.contains("2 keys not answered in time") && text.contains("0 rounds or more in any 10 s; starved"));
        assert!(!text.contains("beside nothing") && !text.contains("heavy synthetic"), "{text}");
    }
}
