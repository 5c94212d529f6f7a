// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of results: figures in columns, statements about the differences, and plots.

mod plots;
mod tables;

use crate::conditions::conditions;
use crate::plot::words::{count, number, plain};
use tables::{NAME_CHARS, letter};
use tipme_measure::{ComparedSide, Comparison, MeasuredMachine, Run};

pub use plots::plots;

/// One result.
#[derive(Clone, Copy, Debug)]
pub struct ComparedResult<'a> {
    pub name: &'a str,
    pub machine: &'a MeasuredMachine,
    pub runs: &'a [Run],
}

impl<'a> ComparedResult<'a> {
    /// Converts to the input of [`tipme_measure::compare`].
    pub fn side(&self) -> ComparedSide<'a> {
        ComparedSide { name: self.name, runs: self.runs }
    }
}

/// Formats the comparison of results of this kind.
pub fn text(kind: &str, files: &[ComparedResult<'_>], comparison: &Comparison) -> String {
    let mut lines = vec![format!("{} results of tipme {}", files.len(), command(kind))];
    lines.extend(files.iter().enumerate().map(|(index, file)| head(index, file)));
    lines.extend(machines(files));
    for group in &comparison.groups {
        lines.extend(tables::group(group));
    }
    lines.extend(unmatched(comparison));
    lines.extend(remark(comparison));
    lines.join("\n") + "\n"
}

/// Commands that produce results but are not benchmarks.
const VERBS: [&str; 3] = ["idle", "load", "measure"];

/// Returns the command that produced results of this kind.
pub fn command(kind: &str) -> String {
    let kind = plain(kind, NAME_CHARS);
    if VERBS.contains(&kind.as_str()) { kind } else { format!("bench {kind}") }
}

/// Formats `A before.json: 5 runs, 61.2 s; kernel …`.
fn head(index: usize, file: &ComparedResult<'_>) -> String {
    let seconds = number(file.machine.duration_s);
    let runs = if file.runs.len() == 1 {
        "1 run".to_owned()
    } else {
        format!("{} runs", count(file.runs.len()))
    };
    let conditions = conditions(file.machine);
    let under = if conditions.is_empty() { String::new() } else { format!("; {conditions}") };
    format!("{}  {}: {runs}, {seconds} s{under}", letter(index), plain(file.name, NAME_CHARS))
}

/// Property of a machine; `None` if only other results include it.
type Property = fn(&MeasuredMachine) -> Option<String>;

/// Compared properties, with their names.
const PROPERTIES: [(&str, Property); 9] = [
    ("kernel", |machine| Some(machine.kernel.clone())),
    ("CPU", |machine| Some(machine.cpu.clone())),
    ("number of CPUs", |machine| Some(machine.cpus.to_string())),
    ("memory", |machine| {
        Some(format!("{:.1} GiB", machine.memory_bytes as f64 / (1u64 << 30) as f64))
    }),
    ("HZ", |machine| Some(or_unknown(machine.hz.as_ref()))),
    // Only results measured by root include it.
    ("preemption", |machine| machine.preemption.clone()),
    ("clock", |machine| Some(or_unknown(machine.clock_source.as_ref()))),
    ("virtualised", |machine| Some(or_unknown(machine.virtualised.as_ref()))),
    ("governor", |machine| Some(or_unknown(machine.governor.as_ref()))),
];

/// Lists the differences between the machines, if there are any.
fn machines(files: &[ComparedResult<'_>]) -> Option<String> {
    let mut differences = Vec::new();
    for (name, property) in PROPERTIES {
        let values = files.iter().map(|file| Some(plain(&property(file.machine)?, NAME_CHARS)));
        let Some(values) = values.collect::<Option<Vec<String>>>() else { continue };
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            differences.push(format!("{name} ({})", values.join(" | ")));
        }
    }
    (!differences.is_empty()).then(|| format!("The machines differ: {}.", differences.join(", ")))
}

fn or_unknown(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

/// Lists the runs without a counterpart, by result, after an empty line.
fn unmatched(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for side in 0..comparison.sides.len() {
        let runs = comparison.unmatched.iter().filter(|one| one.side == side);
        let names: Vec<String> =
            runs.map(|one| format!("{:?}", plain(&one.run, NAME_CHARS))).collect();
        if !names.is_empty() {
            lines.push(format!("Only in {}: {}.", letter(side), names.join(", ")));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}

/// Describes the confidence of the intervals.
fn remark(comparison: &Comparison) -> Vec<String> {
    let intervals = comparison.intervals();
    if intervals == 0 {
        return Vec::new();
    }
    let share = number(comparison.confidence_percent);
    let draws = count(comparison.resamples);
    let line = format!(
        "Each interval has {share}% confidence, bootstrapped over the repeats ({draws} draws)."
    );
    let chance = format!(
        "{} intervals: about one in twenty misses the true value by chance.",
        count(intervals)
    );
    let lines = [String::new(), line].into_iter();
    lines.chain((intervals > 5).then_some(chance)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::{Events, InputClass, ThresholdProfile, compare};

    const MS: u64 = 1_000_000;

    /// Returns repeats of keys with these latencies in milliseconds, slightly longer in each
    /// repeat.
    fn keys(repeats: u64, latencies_ms: &[u64]) -> Vec<Run> {
        let mut runs = Vec::new();
        for number in 1..=repeats {
            let mut events =
                Events::of("key", Some(InputClass::Key.limits(ThresholdProfile::Default)));
            for (at, latency) in latencies_ms.iter().enumerate() {
                events.push(at as u64 * MS, latency * MS + number * MS / 10);
            }
            runs.push(Run {
                name: format!("repeat {number}"),
                duration_ns: 60_000 * MS,
                interactive_ns: Some(60_000 * MS),
                lost: 0,
                classes: vec![events],
            });
        }
        runs
    }

    fn compared(kind: &str, sides: &[(&str, &[Run])]) -> String {
        let machine = MeasuredMachine { duration_s: 301.5, ..MeasuredMachine::default() };
        let files: Vec<ComparedResult<'_>> = sides
            .iter()
            .map(|(name, runs)| ComparedResult { name, machine: &machine, runs })
            .collect();
        let sides: Vec<ComparedSide<'_>> = files.iter().map(ComparedResult::side).collect();
        text(kind, &files, &compare(&sides))
    }

    #[test]
    fn a_difference_is_printed_with_its_interval() {
        let (quick, slow): (Vec<u64>, Vec<u64>) = ((80..130).collect(), (95..145).collect());
        let (before, after) = (keys(5, &quick), keys(5, &slow));
        let text = compared("measure", &[("before.json", &before), ("after.json", &after)]);
        insta::assert_snapshot!(text, @r#"
        2 results of tipme measure
        A  before.json: 5 runs, 302 s
        B  after.json: 5 runs, 302 s

        class key: threshold 100 ms, frustrating from 400 ms
                                         A             B
          repeats                        5             5
          n                            250           250
          p50                       104 ms        120 ms
          p98                       128 ms        144 ms
          maximum                   130 ms        144 ms
          IP98                      128 ms        144 ms
          ELR at 0.9 T          792 ms/min  1,490 ms/min
          ELR at T              444 ms/min  1,004 ms/min
          ELR at 1.1 T          196 ms/min    606 ms/min
          Apdex                       0.70          0.55
          censored                       0             0
          lost, all classes              0             0
          latency per repeat  5.24 s ±0.2%  5.99 s ±0.1%
          p50: B is 15 ms longer than A (14.7 ms to 15.3 ms)
          p98: B is 15 ms longer than A (14.7 ms to 15.3 ms)
          ELR: B is 560 ms/min higher than A (550 ms/min to 570 ms/min)

        Each interval has 95% confidence, bootstrapped over the repeats (4,000 draws).
        "#);
    }

    #[test]
    fn few_repeats_and_unfinished_events_allow_no_statement() {
        let (mut few, many) = (keys(2, &[5, 7]), keys(5, &[5; 40]));
        few[0].classes[0].censored = 1;
        few[0].lost = 3;
        let text = compared("measure", &[("one", &few), ("two", &many)]);
        insta::assert_snapshot!(text, @r#"
        2 results of tipme measure
        A  one: 2 runs, 302 s
        B  two: 5 runs, 302 s

        class key: threshold 100 ms, frustrating from 400 ms
                                          A             B
          repeats                         2             5
          n                               4           200
          p50                             -        5.3 ms
          p98                             -             -
          maximum                 >= 7.2 ms        5.5 ms
          IP98                    >= 7.2 ms        5.5 ms
          ELR at 0.9 T          >= 0 ms/min      0 ms/min
          ELR at T              >= 0 ms/min      0 ms/min
          ELR at 1.1 T          >= 0 ms/min      0 ms/min
          Apdex                     <= 1.00          1.00
          censored                        1             0
          lost, all classes               3             0
          latency per repeat  12.3 ms ±1.1%  212 ms ±3.0%
          A and B not compared: too few repeats, each result needs at least 5
        "#);
    }

    #[test]
    fn runs_are_compared_with_those_of_the_same_name() {
        let [none, hog, children] = ["none", "hog\u{1b}[2J", "8 children"]
            .map(|name| Run { name: name.to_owned(), ..keys(1, &[5, 6]).swap_remove(0) });
        let (first, second) = ([none.clone(), hog], [none, children]);
        let text = compared("fork", &[("one", &first), ("two", &second)]);
        insta::assert_snapshot!(text, @r#"
        2 results of tipme bench fork
        A  one: 2 runs, 302 s
        B  two: 2 runs, 302 s

        none, class key: threshold 100 ms, frustrating from 400 ms
                                     A         B
          repeats                    1         1
          n                          2         2
          p50                        -         -
          p98                        -         -
          maximum               6.1 ms    6.1 ms
          IP98                  6.1 ms    6.1 ms
          ELR at 0.9 T        0 ms/min  0 ms/min
          ELR at T            0 ms/min  0 ms/min
          ELR at 1.1 T        0 ms/min  0 ms/min
          Apdex                   1.00      1.00
          censored                   0         0
          lost, all classes          0         0
          latency per repeat   11.2 ms   11.2 ms
          A and B not compared: too few repeats, each result needs at least 5

        Only in A: "hog�[2J".
        Only in B: "8 children".
        "#);
    }

    /// Returns repeats of two keys and a window each.
    fn with_windows(latency: u64) -> Vec<Run> {
        let mut runs = keys(5, &[105, 50]);
        for run in &mut runs {
            let mut windows =
                Events::of("window", Some(InputClass::Window.limits(ThresholdProfile::Default)));
            windows.push(0, latency * MS);
            run.classes.push(windows);
        }
        runs
    }

    #[test]
    fn classes_add_up_to_a_whole() {
        let (one, two, three) = (with_windows(1_100), with_windows(900), keys(5, &[7]));
        let text = compared("measure", &[("one", &one), ("two", &two), ("three", &three)]);
        insta::assert_snapshot!(text, @r#"
        3 results of tipme measure
        A  one: 5 runs, 302 s
        B  two: 5 runs, 302 s
        C  three: 5 runs, 302 s

        class key: threshold 100 ms, frustrating from 400 ms
                                         A             B             C
          repeats                        5             5             5
          n                             10            10             5
          p50                      50.5 ms       50.5 ms             -
          p98                            -             -             -
          maximum                   106 ms        106 ms        7.5 ms
          IP98                      106 ms        106 ms        7.5 ms
          ELR at 0.9 T         15.3 ms/min   15.3 ms/min      0 ms/min
          ELR at T              5.3 ms/min    5.3 ms/min      0 ms/min
          ELR at 1.1 T            0 ms/min      0 ms/min      0 ms/min
          Apdex                       0.75          0.75          1.00
          censored                       0             0             0
          lost, all classes              0             0             0
          latency per repeat  156 ms ±0.2%  156 ms ±0.2%  7.3 ms ±2.2%
          p50: no significant difference between A and B (-263 µs to +263 µs)
          p98 of A and B not compared: too few events
          ELR: no significant difference between A and B (-0.263 ms/min to +0.263 ms/min)
          p50 of A and C not compared: too few events
          p98 of A and C not compared: too few events
          ELR: C is 5.3 ms/min lower than A (5.11 ms/min to 5.49 ms/min)

        class window: threshold 1 s, frustrating from 2 s
                                        A             B  C
          repeats                       5             5  -
          n                             5             5  -
          p50                           -             -  -
          p98                           -             -  -
          maximum                   1.1 s        900 ms  -
          IP98                      1.1 s        900 ms  -
          ELR at 0.9 T         200 ms/min      0 ms/min  -
          ELR at T             100 ms/min      0 ms/min  -
          ELR at 1.1 T           0 ms/min      0 ms/min  -
          Apdex                      0.50          1.00  -
          censored                      0             0  -
          lost, all classes             0             0  -
          latency per repeat  1.1 s ±0.0%  900 ms ±0.0%  -
          p50 of A and B not compared: too few events
          p98 of A and B not compared: too few events
          ELR: B is 100 ms/min lower than A (100 ms/min to 100 ms/min)
          A and C: no figures in common

        all classes, each with its own threshold
                                         A             B             C
          n                             15            15             5
          IP98                       1.1 s        900 ms        7.5 ms
          ELR at 0.9 T          215 ms/min   15.3 ms/min      0 ms/min
          ELR at T              105 ms/min    5.3 ms/min      0 ms/min
          ELR at 1.1 T            0 ms/min      0 ms/min      0 ms/min
          top class             window 95%      key 100%             -
          latency per repeat  1.26 s ±0.0%  1.06 s ±0.0%  7.3 ms ±2.2%
          ELR: B is 100 ms/min lower than A (99.7 ms/min to 100 ms/min)
          ELR: C is 105 ms/min lower than A (105 ms/min to 105 ms/min)

        Each interval has 95% confidence, bootstrapped over the repeats (4,000 draws).
        6 intervals: about one in twenty misses the true value by chance.
        "#);
    }

    fn differing_machines(machines: &[&MeasuredMachine]) -> Option<String> {
        let files = machines.iter().map(|machine| ComparedResult { name: "", machine, runs: &[] });
        super::machines(&files.collect::<Vec<_>>())
    }

    #[test]
    fn differences_between_machines_are_listed() {
        let one = MeasuredMachine {
            kernel: "6.1".to_owned(),
            cpus: 2,
            hz: Some(250),
            ..MeasuredMachine::default()
        };
        let two = MeasuredMachine {
            kernel: "6.18".to_owned(),
            cpus: 2,
            load_average: Some([9.0; 3]),
            ..MeasuredMachine::default()
        };
        let differ = "The machines differ: kernel (6.1 | 6.18), HZ (250 | unknown).";
        assert_eq!(differing_machines(&[&one, &two]).as_deref(), Some(differ));
        let busy = MeasuredMachine {
            load_average: Some([9.0; 3]),
            begun_unix_s: 7,
            duration_s: 3.0,
            ..one.clone()
        };
        assert_eq!(differing_machines(&[&one, &busy]), None);
        let [lazy, full] = ["lazy", "full"]
            .map(|mode| MeasuredMachine { preemption: Some(mode.to_owned()), ..one.clone() });
        let differ = "The machines differ: preemption (lazy | full).";
        assert_eq!(differing_machines(&[&lazy, &full]).as_deref(), Some(differ));
        assert_eq!(differing_machines(&[&one, &lazy]), None, "only root can read it");
    }
}
