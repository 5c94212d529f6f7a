// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a load was asked for, and what it achieved.

use serde::Serialize;

/// A load that has ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LoadOutcome {
    pub schema: u32,
    /// `cpu`, `forks`, `big` or `stream`.
    pub load: String,
    /// Where its processes were, in words.
    pub place: String,
    /// Runnable processes that were aimed at, and their mean number.
    pub level: u32,
    pub runnable_mean: f64,
    /// What the kernel says of the last minute, with everything else that ran or waited for a disk.
    pub load_average_1min: Option<f64>,
    /// Bound of all processes together.
    pub memory_bytes: u64,
    pub seconds: f64,
    pub cpu_s: f64,
    /// Different pages touched in a millisecond of CPU time, as asked for and as achieved.
    pub demand_pages_per_ms: u32,
    pub pages_per_ms: f64,
    /// The share of these that the millisecond before had touched too, as asked for.
    pub reuse: f64,
    pub pages: u64,
    /// Work done.
    pub rounds: u64,
    pub rounds_per_s: f64,
    /// Short-lived children that ended.
    #[serde(rename = "births")]
    pub forks: u64,
    /// Processes and short-lived children that ended before their time.
    pub casualties: u64,
    /// The fewest rounds that a process did in any ten seconds; 0 is starvation, `null` where it ran for less.
    pub window_rounds_min: Option<u64>,
}

/// Some lines for people.
pub fn load(outcome: &LoadOutcome) -> String {
    let average = outcome.load_average_1min;
    let average = average.map_or_else(String::new, |average| format!("; load average of the last minute {average:.2}"));
    let least = outcome.window_rounds_min;
    let least = least.map_or_else(String::new, |rounds| format!("; every process {rounds} or more in any 10 s"));
    let casualties = match outcome.casualties {
        0 => String::new(),
        many => format!("  ended early    {many} processes, before their time; see dmesg where memory ran out\n"),
    };
    let forks = if outcome.forks > 0 { format!(", {} short lives", outcome.forks) } else { String::new() };
    format!(
        "load {}: {} processes {}, {:.1} s\n  \
         runnable       {:.1} on average, {} aimed at{average}\n  \
         CPU time       {:.1} s, {:.2} CPUs\n  \
         page demand    {:.1} pages per ms of CPU time, {} asked for; reuse {}\n  \
         memory         {} MiB at most\n  \
         throughput     {:.1} rounds a second, {} rounds{forks}{least}\n\
         {casualties}",
        outcome.load,
        outcome.level,
        outcome.place,
        outcome.seconds,
        outcome.runnable_mean,
        outcome.level,
        outcome.cpu_s,
        if outcome.seconds > 0.0 { outcome.cpu_s / outcome.seconds } else { 0.0 },
        outcome.pages_per_ms,
        outcome.demand_pages_per_ms,
        outcome.reuse,
        outcome.memory_bytes >> 20,
        outcome.rounds_per_s,
        outcome.rounds,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_achieved_stands_beside_what_was_asked_for() {
        let outcome = LoadOutcome {
            schema: 1,
            load: "forks".to_owned(),
            place: "in one session of their own".to_owned(),
            level: 20,
            runnable_mean: 19.87,
            load_average_1min: Some(12.5),
            memory_bytes: 1 << 30,
            seconds: 60.0,
            cpu_s: 118.8,
            demand_pages_per_ms: 4,
            pages_per_ms: 3.95,
            reuse: 0.1,
            rounds: 110_000,
            rounds_per_s: 1_833.3,
            forks: 3_000,
            casualties: 2,
            window_rounds_min: Some(310),
            ..LoadOutcome::default()
        };
        insta::assert_snapshot!(load(&outcome), @r"
        load forks: 20 processes in one session of their own, 60.0 s
          runnable       19.9 on average, 20 aimed at; load average of the last minute 12.50
          CPU time       118.8 s, 1.98 CPUs
          page demand    4.0 pages per ms of CPU time, 4 asked for; reuse 0.1
          memory         1024 MiB at most
          throughput     1833.3 rounds a second, 110000 rounds, 3000 short lives; every process 310 or more in any 10 s
          ended early    2 processes, before their time; see dmesg where memory ran out
        ");
        let nothing = load(&LoadOutcome::default());
        assert!(nothing.contains("0.00 CPUs") && !nothing.contains("short lives") && !nothing.contains("last minute"));
        assert!(!nothing.contains("ended early") && !nothing.contains("in any 10 s"), "{nothing}");
    }
}
