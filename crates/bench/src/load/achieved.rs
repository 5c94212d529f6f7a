// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work of a load over a period.

use super::ledger::LedgerReading;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Add;

/// Work of a load between two readings.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Achieved {
    pub seconds: f64,
    /// Runnable processes on average: those that ran or waited for a CPU.
    pub runnable_mean: f64,
    /// CPU time of all processes.
    pub cpu_s: f64,
    pub pages: u64,
    /// Pages touched in a millisecond of CPU time.
    pub pages_per_ms: f64,
    /// Work done.
    pub rounds: u64,
    pub rounds_per_s: f64,
    /// Short-lived children that ended.
    #[serde(rename = "births")]
    pub forks: u64,
    /// Processes and short-lived children that ended before their time.
    pub casualties: u64,
    /// Fewest rounds of a process in any ten seconds; `None` if not watched for that long.
    pub window_rounds_min: Option<u64>,
    /// CPU time of the manager meanwhile; `None` if none ran.
    #[serde(skip)]
    pub manager_cpu_s: Option<f64>,
}

impl Achieved {
    /// Returns the work from one reading to a later one.
    pub fn between(before: LedgerReading, after: LedgerReading) -> Achieved {
        let wall_ns = after.at.since(before.at).0.max(1) as f64;
        let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns) as f64;
        let pages = after.pages.saturating_sub(before.pages);
        let rounds = after.rounds.saturating_sub(before.rounds);
        let runnable_ns = after.runnable_ns.saturating_sub(before.runnable_ns);
        Achieved {
            seconds: wall_ns / 1e9,
            runnable_mean: runnable_ns as f64 / wall_ns,
            cpu_s: cpu_ns / 1e9,
            pages,
            pages_per_ms: ratio(pages as f64, cpu_ns / 1e6),
            rounds,
            rounds_per_s: rounds as f64 / (wall_ns / 1e9),
            forks: after.forks.saturating_sub(before.forks),
            casualties: after.casualties,
            window_rounds_min: None,
            manager_cpu_s: None,
        }
    }

    /// Combines two periods, one after the other.
    pub fn and(self, other: Achieved) -> Achieved {
        let seconds = self.seconds + other.seconds;
        let cpu_s = self.cpu_s + other.cpu_s;
        let (pages, rounds) = (self.pages + other.pages, self.rounds + other.rounds);
        Achieved {
            seconds,
            runnable_mean: ratio(
                self.runnable_mean * self.seconds + other.runnable_mean * other.seconds,
                seconds,
            ),
            cpu_s,
            pages,
            pages_per_ms: ratio(pages as f64, cpu_s * 1e3),
            rounds,
            rounds_per_s: ratio(rounds as f64, seconds),
            forks: self.forks + other.forks,
            casualties: self.casualties + other.casualties,
            window_rounds_min: [self.window_rounds_min, other.window_rounds_min]
                .into_iter()
                .flatten()
                .min(),
            manager_cpu_s: [self.manager_cpu_s, other.manager_cpu_s]
                .into_iter()
                .flatten()
                .reduce(f64::add),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_record::Nanos;

    #[test]
    fn what_was_done_is_a_difference() {
        let before = LedgerReading {
            at: Nanos(1_000_000_000),
            rounds: 100,
            pages: 50,
            cpu_ns: 7,
            runnable_ns: 9,
            forks: 1,
            casualties: 0,
        };
        let after = LedgerReading {
            at: Nanos(3_000_000_000),
            rounds: 500,
            pages: 4_050,
            cpu_ns: 2_000_000_007,
            runnable_ns: 8_000_000_009,
            forks: 4,
            casualties: 2,
        };
        let achieved = Achieved::between(before, after);
        assert_eq!(
            (achieved.runnable_mean, achieved.cpu_s, achieved.rounds_per_s),
            (4.0, 2.0, 200.0)
        );
        assert_eq!((achieved.pages_per_ms, achieved.forks, achieved.casualties), (2.0, 3, 2));
        let more = Achieved {
            seconds: 2.0,
            rounds: 800,
            window_rounds_min: Some(3),
            ..Achieved::default()
        };
        let both = achieved.and(more);
        assert_eq!((both.casualties, both.window_rounds_min), (2, Some(3)));
        assert_eq!((both.rounds_per_s, both.runnable_mean, both.pages_per_ms), (300.0, 2.0, 2.0));
        assert_eq!(Achieved::between(before, before).pages_per_ms, 0.0);
    }
}
