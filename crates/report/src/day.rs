// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies of a day, as text and as a picture.

mod picture;

use crate::layout::{Layout, Tone, padded};
use crate::plot::words::{count, duration, or_dash, plain};
use crate::strip::blocks;
pub use picture::picture;
use std::fmt::Write;
use tipme_measure::lived::{DayFigures, HourShare, LivedFigures, LivedRate, LongWait};
use tipme_measure::ms;

/// Maximum number of characters of a program's name.
const NAME_CHARS: usize = 16;
/// Number of longest waits shown.
const LONGEST: usize = 8;

/// Formats all figures of a day, the totals first. `clock` formats seconds since 1970 as time of
/// day.
pub fn text(
    date: &str,
    day: &DayFigures,
    clock: &dyn Fn(f64) -> String,
    layout: &Layout,
) -> String {
    if day.all.n == 0 {
        return layout.paragraph(&format!("{date}: no answers were counted{}.", lost(day.lost)));
    }
    let mut out = head(date, day, layout);
    out += &applications(&day.applications, layout);
    out += &hours(&day.hours, clock, layout);
    out += &longest(&day.longest, clock, layout);
    out
}

fn lost(answers: u64) -> String {
    if answers == 0 { String::new() } else { format!(", {} lost", count(answers)) }
}

fn head(date: &str, day: &DayFigures, layout: &Layout) -> String {
    let all = &day.all;
    let waited = format!(
        "{date}: you waited {} ({} of it over a threshold) and thought {}.",
        duration(all.wait_ms),
        duration(all.noticed_wait_ms),
        long_time(all.think_ms)
    );
    let presses = format!(
        "{} presses answered, {} without a visible answer{}: p50 {}, p98 {}, longest {}, IP98 {}; \
         {} in total",
        count(all.n),
        count(all.silent),
        lost(day.lost),
        or_dash(all.p50_ms),
        or_dash(all.p98_ms),
        or_dash(all.max_ms),
        or_dash(all.interaction_p98_ms),
        duration(all.total_ms)
    );
    let mut out =
        layout.paint_lines(Tone::Strong, &layout.paragraph(&waited)) + &layout.paragraph(&presses);
    out += &all.elr.as_ref().map(|rate| layout.paragraph(&rate_in_words(rate))).unwrap_or_default();
    out + &strip(&day.distribution) + "\n"
}

/// Formats the figure of merit with its sensitivity.
fn rate_in_words(rate: &LivedRate) -> String {
    let top = rate.top_class.as_ref().zip(rate.top_share);
    let top = top.map(|(class, share)| format!("; {:.0}% of it by class {class}", 100.0 * share));
    format!(
        "excess latency rate: {:.1} ms/min at T, {:.1} at 0.9 T, {:.1} at 1.1 T{}",
        rate.at_ms_per_minute,
        rate.below_ms_per_minute,
        rate.above_ms_per_minute,
        top.unwrap_or_default()
    )
}

/// Formats `2 h 13 min`, `4 min`, and shorter times as durations.
fn long_time(ms: f64) -> String {
    let minutes = (ms / 60e3) as u64;
    match minutes {
        0 => duration(ms),
        1..60 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Formats all latencies in one line, with a column per doubling.
fn strip(distribution: &[(f64, u64)]) -> String {
    let mut doublings: Vec<(u64, u64)> = Vec::new();
    for (upper_ms, n) in distribution {
        // The first column ends below 2^16 ns.
        let place = (upper_ms * 1e6).log2().ceil().clamp(16.0, 37.0) as u64;
        match doublings.last_mut() {
            Some((last, sum)) if *last == place => *sum += n,
            _ => doublings.push((place, *n)),
        }
    }
    let ends = doublings.first().zip(doublings.last());
    let Some(((first, _), (last, _))) = ends else { return String::new() };
    let fullest = doublings.iter().map(|(_, n)| *n).max().unwrap_or(1);
    let from = if *first == 16 { "0 ms".to_owned() } else { duration(ms(1 << (first - 1))) };
    format!(
        "{from} {} {}  (each column covers twice the range of the previous one, █={})\n",
        blocks(&doublings, fullest),
        duration(ms(1 << last)),
        count(fullest)
    )
}

fn applications(applications: &[LivedFigures], layout: &Layout) -> String {
    let head = format!(
        "{:16} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "application", "think", "wait", "over T", "n", "p50", "p98", "max", "IP98", "ms/min"
    );
    let mut out = layout.paint(Tone::Strong, &head) + "\n";
    for one in applications {
        let _ = writeln!(
            out,
            "{} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
            padded(&plain(&one.application, NAME_CHARS), NAME_CHARS),
            long_time(one.think_ms),
            duration(one.wait_ms),
            duration(one.noticed_wait_ms),
            count(one.n),
            or_dash(one.p50_ms),
            or_dash(one.p98_ms),
            or_dash(one.max_ms),
            or_dash(one.interaction_p98_ms),
            one.elr.as_ref().map_or("-".to_owned(), |rate| format!("{:.1}", rate.at_ms_per_minute)),
        );
    }
    out + "\n"
}

fn hours(hours: &[HourShare], clock: &dyn Fn(f64) -> String, layout: &Layout) -> String {
    let head =
        format!("{:16} {:>9} {:>9} {:>9} {:>7}", "hour from", "think", "wait", "over T", "n");
    let mut out = layout.paint(Tone::Strong, &head) + "\n";
    for hour in hours {
        let from = clock(hour.start_s as f64);
        let _ = writeln!(
            out,
            "{:16} {:>9} {:>9} {:>9} {:>7}",
            from.get(..5).unwrap_or(&from),
            long_time(hour.think_ms),
            duration(hour.wait_ms),
            duration(hour.noticed_wait_ms),
            count(hour.n)
        );
    }
    out
}

fn longest(longest: &[LongWait], clock: &dyn Fn(f64) -> String, layout: &Layout) -> String {
    if longest.is_empty() {
        return String::new();
    }
    let mut out =
        format!("\n{}\n", layout.paint(Tone::Strong, "longest waits over their threshold"));
    for long in longest.iter().take(LONGEST) {
        let presses =
            if long.presses > 1 { format!(", {} presses", long.presses) } else { String::new() };
        let marked = long
            .incident
            .as_ref()
            .map(|id| format!("; tipme diagnose {}", plain(id, 40)))
            .unwrap_or_default();
        let what = format!(
            "{} in {}{presses}{marked}",
            plain(&long.class, NAME_CHARS),
            plain(&long.application, NAME_CHARS)
        );
        out += &layout
            .item(&format!("{}  {:>8}  ", clock(long.at_s), duration(long.latency_ms)), &what);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(application: &str) -> LivedFigures {
        LivedFigures {
            application: application.to_owned(),
            wait_ms: 41_000.0,
            noticed_wait_ms: 12_300.0,
            think_ms: 7_980_000.0,
            n: 3_214,
            silent: 45,
            total_ms: 43_210.0,
            p50_ms: Some(2.13),
            max_ms: Some(1_240.0),
            elr: Some(LivedRate {
                below_ms_per_minute: 15.0,
                at_ms_per_minute: 12.34,
                above_ms_per_minute: 10.1,
                top_class: Some("key".to_owned()),
                top_share: Some(0.8),
            }),
            ..LivedFigures::default()
        }
    }

    fn clock(at_s: f64) -> String {
        format!("{:02}:{:02}:{:02}", at_s as u64 / 3_600, at_s as u64 / 60 % 60, at_s as u64 % 60)
    }

    #[test]
    fn a_day_is_printed_from_the_sum_to_the_longest() {
        let long = LongWait {
            at_s: 50_601.5,
            latency_ms: 1_240.0,
            application: "mousepad".to_owned(),
            class: "key".to_owned(),
            presses: 3,
            incident: Some("20260131T140325.123Z".to_owned()),
        };
        let hour = HourShare {
            start_s: 50_400,
            n: 3_214,
            wait_ms: 41_000.0,
            noticed_wait_ms: 12_300.0,
            think_ms: 90e3,
        };
        let day = DayFigures {
            all: figures(""),
            applications: vec![figures("mousepad"), figures("a\u{202e}b")],
            hours: vec![hour],
            longest: vec![long],
            distribution: vec![(0.065, 3), (2.1, 3_000), (2.6, 200), (1_240.0, 11)],
            lost: 2,
            ..DayFigures::default()
        };
        insta::assert_snapshot!(text("2026-01-31", &day, &clock, &Layout::default()), @r"
        2026-01-31: you waited 41 s (12.3 s of it over a threshold) and thought 2 h 13 min.
        3,214 presses answered, 45 without a visible answer, 2 lost: p50 2.13 ms, p98 -, longest 1.24 s, IP98 -; 43.2 s in total
        excess latency rate: 12.3 ms/min at T, 15.0 at 0.9 T, 10.1 at 1.1 T; 80% of it by class key
        0 ms ▂     █        ▃ 2.15 s  (each column covers twice the range of the previous one, █=3,200)

        application          think      wait    over T       n       p50       p98       max      IP98    ms/min
        mousepad         2 h 13 min      41 s    12.3 s   3,214   2.13 ms         -    1.24 s         -      12.3
        a�b              2 h 13 min      41 s    12.3 s   3,214   2.13 ms         -    1.24 s         -      12.3

        hour from            think      wait    over T       n
        14:00                1 min      41 s    12.3 s   3,214

        longest waits over their threshold
        14:03:21    1.24 s  key in mousepad, 3 presses; tipme diagnose 20260131T140325.123Z
        ");
    }

    #[test]
    fn a_day_without_answers_says_so() {
        let day = DayFigures { lost: 7, ..DayFigures::default() };
        assert_eq!(
            text("2026-01-31", &day, &clock, &Layout::default()),
            "2026-01-31: no answers were counted, 7 lost.\n"
        );
    }
}
