// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of a scripted run over several applications, beside that of the paper.

use serde::{Deserialize, Serialize};

/// The paper's table 1, in seconds: beside nothing, `make`, and a heavy synthetic load.
pub const PAPER: [(&str, [f64; 3]); 2] = [("unmanaged", [50.0, 89.0, 789.0]), ("managed", [49.0, 56.0, 96.0])];
/// As in [`SystemRow::beside`].
const BESIDE: [&str; 3] = ["nothing", "build", "synthetic"];

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
    /// Files of the build, or rounds of the load, a second; `null` beside nothing.
    pub done_per_s: Option<f64>,
    /// What of it is missing beside the same load unmanaged.
    pub throughput_lost_percent: Option<f64>,
}

impl SystemRow {
    /// Of times in nanoseconds; `None` for none.
    pub fn of(beside: &str, arm: &str, times_ns: &[u64]) -> Option<SystemRow> {
        let mut sorted = times_ns.to_vec();
        sorted.sort_unstable();
        let seconds = |ns: u64| ns as f64 / 1e9;
        Some(SystemRow {
            beside: beside.to_owned(),
            arm: arm.to_owned(),
            median_s: seconds(*sorted.get(tipme_measure::nearest_rank(sorted.len(), tipme_measure::Share::P50)?)?),
            min_s: seconds(*sorted.first()?),
            max_s: seconds(*sorted.last()?),
            n: sorted.len(),
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

/// The paper's table 1 with ours beside it: seconds, and multiples of the same arm's run beside nothing.
pub fn system(rows: &[SystemRow]) -> String {
    let mut out = format!("{:24}{:>18}{:>18}{:>18}\n", "seconds", "beside nothing", "build", "heavy synthetic");
    for arm in ["unmanaged", "managed"] {
        let cells = BESIDE.map(|beside| rows.iter().find(|row| row.beside == beside && row.arm == arm));
        if cells.iter().any(Option::is_some) {
            out += &line(arm, &cells.map(|row| row.map(|row| (row.median_s, row.times_unloaded))));
        }
    }
    for (arm, seconds) in PAPER {
        let calm = seconds[0];
        out += &line(&format!("paper (1993), {arm}"), &seconds.map(|seconds| Some((seconds, Some(seconds / calm)))));
    }
    out + &losses(rows)
}

fn line(name: &str, cells: &[Option<(f64, Option<f64>)>]) -> String {
    let cell = |cell: &Option<(f64, Option<f64>)>| match cell {
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
    lost.chain(unanswered).collect()
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
        insta::assert_snapshot!(system(&rows), @r"
        seconds                     beside nothing             build   heavy synthetic
        unmanaged                    20.0 (1.00 x)     30.0 (1.50 x)                 -
        managed                      20.0 (1.00 x)     21.0 (1.05 x)                 -
        paper (1993), unmanaged      50.0 (1.00 x)     89.0 (1.78 x)   789.0 (15.78 x)
        paper (1993), managed        49.0 (1.00 x)     56.0 (1.14 x)     96.0 (1.96 x)
          build, managed: 1.0 % of the throughput beside it lost
        ");
    }

    #[test]
    fn nothing_compares_with_nothing() {
        assert_eq!(SystemRow::of("build", "managed", &[]), None);
        let mut alone = vec![SystemRow::of("build", "managed", &[S]).expect("a time")];
        alone[0].unanswered = 2;
        fill_system(&mut alone);
        assert_eq!(alone[0].times_unloaded, None);
        assert!(system(&alone).contains("2 keys not answered in time"));
    }
}
