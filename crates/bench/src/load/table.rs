// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of a load: its options and its work.

use super::options::LoadOutcome;
use crate::choice::name;

/// Formats the outcome in some lines.
pub fn text(outcome: &LoadOutcome) -> String {
    let achieved = &outcome.achieved;
    let average = outcome.load_average_1min;
    let average = average.map_or_else(String::new, |average| {
        format!("; load average of the last minute {average:.2}")
    });
    let least = achieved.window_rounds_min;
    let least = least
        .map_or_else(String::new, |rounds| format!("; every process {rounds} or more in any 10 s"));
    let casualties = match achieved.casualties {
        0 => String::new(),
        many => format!(
            "  ended early    {many} processes, before their time; see dmesg where memory ran out\n"
        ),
    };
    let forks = if achieved.forks > 0 {
        format!(", {} short lives", achieved.forks)
    } else {
        String::new()
    };
    format!(
        "load {}: {} processes {}, {:.1} s\n  \
         runnable       {:.1} on average, {} aimed at{average}\n  \
         CPU time       {:.1} s, {:.2} CPUs\n  \
         page demand    {:.1} pages per ms of CPU time, {} asked for; reuse {}\n  \
         memory         {} MiB at most\n  \
         throughput     {:.1} rounds a second, {} rounds{forks}{least}\n\
         {casualties}",
        name(&outcome.load),
        outcome.level,
        outcome.place,
        achieved.seconds,
        achieved.runnable_mean,
        outcome.level,
        achieved.cpu_s,
        if achieved.seconds > 0.0 { achieved.cpu_s / achieved.seconds } else { 0.0 },
        achieved.pages_per_ms,
        outcome.demand_pages_per_ms,
        outcome.reuse,
        outcome.memory_bytes >> 20,
        achieved.rounds_per_s,
        achieved.rounds,
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Achieved, LoadKind};
    use super::*;

    fn outcome(achieved: Achieved) -> LoadOutcome {
        LoadOutcome {
            schema: 1,
            load: LoadKind::Forks,
            place: "in one session of their own".to_owned(),
            level: 20,
            load_average_1min: Some(12.5),
            memory_bytes: 1 << 30,
            demand_pages_per_ms: 4,
            reuse: 0.1,
            achieved,
        }
    }

    #[test]
    fn what_was_achieved_stands_beside_what_was_asked_for() {
        let achieved = Achieved {
            runnable_mean: 19.87,
            seconds: 60.0,
            cpu_s: 118.8,
            pages_per_ms: 3.95,
            rounds: 110_000,
            rounds_per_s: 1_833.3,
            forks: 3_000,
            casualties: 2,
            window_rounds_min: Some(310),
            ..Achieved::default()
        };
        insta::assert_snapshot!(text(&outcome(achieved)), @r"
        load forks: 20 processes in one session of their own, 60.0 s
          runnable       19.9 on average, 20 aimed at; load average of the last minute 12.50
          CPU time       118.8 s, 1.98 CPUs
          page demand    4.0 pages per ms of CPU time, 4 asked for; reuse 0.1
          memory         1024 MiB at most
          throughput     1833.3 rounds a second, 110000 rounds, 3000 short lives; every process 310 or more in any 10 s
          ended early    2 processes, before their time; see dmesg where memory ran out
        ");
        let nothing =
            text(&LoadOutcome { load_average_1min: None, ..outcome(Achieved::default()) });
        assert!(
            nothing.contains("0.00 CPUs")
                && !nothing.contains("short lives")
                && !nothing.contains("last minute")
        );
        assert!(!nothing.contains("ended early") && !nothing.contains("in any 10 s"), "{nothing}");
    }
}
