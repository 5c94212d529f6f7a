// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text output of a validation.

use tipme_measure::idle::{Check, Echo, Taken, Trial, Validation};

/// Meaning of the two kinds of stolen shares.
const NAMED: &str = "With names it is what other threads had; without, also interrupts and what a hypervisor took, which most\n\
                     kernels count as the loop's own.\n";

/// Formats three tables: events of known CPU time, echoes, and shares under different loads.
pub(super) fn validation(validation: &Validation) -> String {
    let parts =
        [trials(&validation.trials), echoes(&validation.echoes), checks(&validation.checks)];
    parts.join("\n") + "\n" + verdict(validation)
}

fn verdict(validation: &Validation) -> &'static str {
    match (validation.is_good(), validation.is_disturbed()) {
        (true, _) => "All within the limits.\n",
        (false, true) => {
            "Not judged: others had too much of the CPU. Measure again where less runs beside.\n"
        }
        (false, false) => "NOT all within the limits.\n",
    }
}

fn limit(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0} {unit}"))
}

fn word(good: bool) -> &'static str {
    if good { "ok" } else { "FAILED" }
}

/// Formats the judgment of a trial, with the reasons for its limits.
fn judged(trial: &Trial) -> String {
    let word = if trial.is_disturbed() { "not judged" } else { word(trial.is_good()) };
    let (p50_us, p90_us) = trial.allowed_us();
    match &trial.taken {
        Some(Taken { others_share, steal_share }) if trial.p50_us_max.is_some() => {
            let (others, steal) = (100.0 * others_share, 100.0 * steal_share);
            format!(
                "{word}; others had {others:.2}%, the hypervisor {steal:.2}%: \
                 {p50_us:.0} and {p90_us:.0} µs more are allowed"
            )
        }
        _ => word.to_owned(),
    }
}

/// Formats the limit of a share, with the allowance for a hypervisor.
fn points(check: &Check) -> String {
    match check.difference_points_max {
        Some(most) if check.steal_points() >= 0.05 => {
            format!("{most:.0}+{:.1} pt", check.steal_points())
        }
        most => limit(most, "pt"),
    }
}

fn trials(trials: &[Trial]) -> String {
    let range =
        trials.first().map_or((0.0, 0.0), |trial| (trial.injected_ms_min, trial.injected_ms_max));
    let head = format!(
        "Stolen time of each event against the CPU time that the kernel charged for it, {:.2} to {:.2} ms:\n{}",
        range.0,
        range.1,
        "method             events  error p50      p90       max      bias   limits p50, p90\n"
    );
    let rows = trials.iter().map(|trial| {
        let errors = &trial.errors;
        format!(
            "{:<17} {:>7} {:>7.1} µs {:>5.1} µs {:>6.1} µs {:>+6.1} µs   {}, {}  {}\n",
            trial.method,
            errors.n,
            errors.p50_us,
            errors.p90_us,
            errors.max_us,
            errors.bias_us,
            limit(trial.p50_us_max, "µs"),
            limit(trial.p90_us_max, "µs"),
            judged(trial)
        )
    });
    head + &rows.collect::<String>()
}

fn echoes(echoes: &[Echo]) -> String {
    let head = "A program that reads a character, computes and echoes it (median):\n\
                method             echoes  its own time stamps  idle loop  what they miss\n";
    let rows = echoes.iter().map(|echo| {
        format!(
            "{:<17} {:>7} {:>17.3} ms {:>7.3} ms {:>12.1} µs\n",
            echo.method, echo.n, echo.conventional_ms, echo.stolen_ms, echo.missed_us
        )
    });
    head.to_owned() + &rows.collect::<String>()
}

fn checks(checks: &[Check]) -> String {
    let head = "Stolen share against the kernel's account of the loops' CPU time:\n\
                method             load      stolen     check   worst CPU     limit   records  longest record\n";
    let rows = checks.iter().map(|check| {
        format!(
            "{:<17}  {:<7} {:>7.2}%  {:>7.2}%  {:>+6.2} pt  {:>8}  {:>8}  {:>11.1} ms  {}\n",
            check.method,
            check.load,
            100.0 * check.stolen_share,
            100.0 * check.check_share,
            check.difference_points,
            points(check),
            check.records,
            check.longest_record_ms,
            word(check.is_good())
        )
    });
    let named = checks.iter().any(|check| check.method == "gaps with names");
    head.to_owned() + &rows.collect::<String>() + if named { NAMED } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tipme_measure::idle::Errors;

    #[test]
    fn limits_stand_beside_the_errors() {
        let errors = Errors { n: 240, p50_us: 11.2, p90_us: 40.0, max_us: 900.0, bias_us: 9.0 };
        let trial = Trial {
            method: "gaps".to_owned(),
            injected_ms_min: 0.05,
            injected_ms_max: 9.9,
            errors,
            p50_us_max: Some(35.0),
            p90_us_max: Some(100.0),
            taken: Some(Taken { others_share: 0.0011, steal_share: 0.002 }),
        };
        let echo = Echo {
            method: "gaps".to_owned(),
            n: 100,
            conventional_ms: 5.01,
            stolen_ms: 5.04,
            missed_us: 31.0,
        };
        let check = Check {
            method: "gaps".to_owned(),
            load: "loaded".to_owned(),
            stolen_share: 0.997,
            check_share: 0.96,
            difference_points: 3.7,
            difference_points_max: Some(2.0),
            steal_share: 0.004,
            records: 9,
            longest_record_ms: 412.0,
        };
        let all = Validation { trials: vec![trial], echoes: vec![echo], checks: vec![check] };
        insta::assert_snapshot!(validation(&all), @r"
        Stolen time of each event against the CPU time that the kernel charged for it, 0.05 to 9.90 ms:
        method             events  error p50      p90       max      bias   limits p50, p90
        gaps                  240    11.2 µs  40.0 µs  900.0 µs   +9.0 µs   35 µs, 100 µs  ok; others had 0.11%, the hypervisor 0.20%: 15 and 31 µs more are allowed

        A program that reads a character, computes and echoes it (median):
        method             echoes  its own time stamps  idle loop  what they miss
        gaps                  100             5.010 ms   5.040 ms         31.0 µs

        Stolen share against the kernel's account of the loops' CPU time:
        method             load      stolen     check   worst CPU     limit   records  longest record
        gaps               loaded    99.70%    96.00%   +3.70 pt  2+0.4 pt         9        412.0 ms  FAILED

        NOT all within the limits.
        ");
    }
}
