// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result of a measurement as text.

use super::{
    ClassFigures, Instrument, InterArrival, LONG_MS, LongEvent, MeasureDetails, MeasureDocument,
    MilestoneFigures, OperationCounters, spread,
};
use crate::conditions;
use crate::plot::words::{count, decimal, duration, or_dash, plain};
use crate::strip::strip;
use std::fmt::Write;
use tipme_measure::{DEVIATION_MAX_PERCENT, EventJoin};

/// Maximum number of characters of applications, labels and reasons.
const NAME_CHARS: usize = 24;
const REASON_CHARS: usize = 200;
/// Bucket width of the line of blocks.
const STRIP_MS: f64 = 10.0;

/// Formats all figures, the most important first.
pub fn text(result: &MeasureDocument) -> String {
    let details = &result.details;
    let mut out = head(result);
    out += &classes(details);
    out += &cumulative(details);
    out += &rates(details);
    out += &long_events(&details.long_events);
    out += &inter_arrival(&details.inter_arrival);
    out += &counters(&details.counters);
    out += &driver(details);
    out
}

fn head(result: &MeasureDocument) -> String {
    let details = &result.details;
    let seconds = result.runs.iter().map(|run| run.duration_ns as f64 / 1e9).sum::<f64>();
    let application = plain(details.application.first().map_or("", String::as_str), NAME_CHARS);
    let mut out = format!(
        "{}: {}\n",
        plain(&details.script, NAME_CHARS),
        plain(&details.about, REASON_CHARS)
    );
    let _ = writeln!(
        out,
        "{application}, {}, {} inputs and starts in {}; {} answered, {} without a visible answer, \
         {} open, {} lost",
        super::repeats(result.runs.len()),
        count(details.scripted),
        duration(seconds * 1e3),
        count(details.answered),
        count(details.silent),
        count(details.open),
        count(details.lost),
    );
    let exact = details.events.iter().filter(|event| event.join == Some(EventJoin::Exact)).count();
    let _ = match &details.instrument_why {
        None => writeln!(
            out,
            "timed by the display tap: {} drawings joined to their input exactly, {} by time only",
            count(exact),
            count((details.answered + details.open) as usize - exact)
        ),
        Some(why) => writeln!(
            out,
            "timed by {}; drawings joined to their input by time only, which is speculative ({})",
            if details.instrument == Instrument::Screencopy {
                "pictures of the screen"
            } else {
                "the reports of the DAMAGE extension"
            },
            plain(why, REASON_CHARS)
        ),
    };
    let _ = writeln!(out, "{}\n", conditions(&result.machine));
    out
}

fn classes(details: &MeasureDetails) -> String {
    let mut out = format!(
        "{:11} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}  {:>5} {:>6} {:>5} {:>5}\n",
        "class", "n", "p50", "p98", "max", "IP98", "T", "Apdex", "silent", "open", "lost"
    );
    for class in &details.classes {
        out += &class_row(class);
        out += &class
            .handled
            .as_ref()
            .map(|figures| milestone_row("  handled", figures))
            .unwrap_or_default();
        out += &class
            .completed
            .as_ref()
            .map(|figures| milestone_row("  completed", figures))
            .unwrap_or_default();
    }
    let all: Vec<f64> = details.events.iter().filter_map(|event| event.latency_ms).collect();
    let _ = writeln!(
        out,
        "all events: IP98 {}; {}\n",
        or_dash(details.interaction_p98_ms),
        strip(&all, STRIP_MS)
    );
    out
}

fn class_row(class: &ClassFigures) -> String {
    format!(
        "{:11} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}  {:>5} {:>6} {:>5} {:>5}{}\n",
        plain(&class.class, NAME_CHARS),
        count(class.n),
        or_dash(class.p50_ms),
        or_dash(class.p98_ms),
        or_dash(class.max_ms),
        or_dash(class.interaction_p98_ms),
        duration(class.threshold_ms),
        class.apdex.map_or("-".to_owned(), |apdex| decimal(apdex.score, 2)),
        class.silent,
        class.open,
        class.lost,
        if class.exceeded { "  over the threshold" } else { "" }
    )
}

fn milestone_row(name: &str, figures: &MilestoneFigures) -> String {
    let row = format!(
        "{name:11} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}  {:>5} {:>6} {:>5}",
        count(figures.n),
        or_dash(figures.p50_ms),
        or_dash(figures.p98_ms),
        duration(figures.max_ms),
        "",
        duration(figures.threshold_ms),
        "",
        "",
        figures.open,
    );
    format!("{row}{}\n", if figures.exceeded { "        over the threshold" } else { "" })
}

fn cumulative(details: &MeasureDetails) -> String {
    let cumulative = &details.cumulative;
    let repeats: Vec<String> = cumulative.repeats_ms.iter().map(|ms| duration(*ms)).collect();
    let verdict = match (cumulative.deviation_percent, cumulative.usable) {
        (Some(percent), Some(true)) => {
            format!("standard deviation {percent:.1}% of the mean: usable")
        }
        (Some(percent), _) => format!(
            "standard deviation {percent:.1}% of the mean: UNUSABLE for a comparison, over \
             {DEVIATION_MAX_PERCENT:.0}%"
        ),
        (None, _) => "one repeat: deviation unknown".to_owned(),
    };
    format!(
        "cumulative latency by repeat, without the start: {}\n  mean {}, {verdict}\n{}",
        repeats.join(", "),
        or_dash(cumulative.mean_ms),
        spread::text(details)
    )
}

fn rates(details: &MeasureDetails) -> String {
    let mut out = String::new();
    match &details.elr {
        None => out += "excess latency rate: unknown, without any interaction\n",
        Some(elr) => {
            let top = match (&elr.top_class, elr.top_share) {
                (Some(class), Some(share)) => {
                    format!("; {:.0}% of it from {class}", share * 100.0)
                }
                _ => String::new(),
            };
            let _ = writeln!(
                out,
                "excess latency rate: {} ms/min at T, {} at 0.9 T, {} at 1.1 T{top}",
                decimal(elr.rate.at_ms_per_minute, 1),
                decimal(elr.rate.below_ms_per_minute, 1),
                decimal(elr.rate.above_ms_per_minute, 1)
            );
        }
    }
    let _ = writeln!(
        out,
        "wait {} ({} of it over a threshold), think {}, background {}\n",
        or_dash(details.wait_ms),
        or_dash(details.noticed_wait_ms),
        or_dash(details.think_ms),
        or_dash(details.background_ms)
    );
    out
}

fn long_events(rows: &[LongEvent]) -> String {
    if rows.is_empty() {
        return format!("no events over {LONG_MS:.0} ms\n\n");
    }
    let mut out = format!(
        "{:26} {:8} {:>10} {:>10} {:>10} {:>10} {:>12}\n",
        format!("events over {LONG_MS:.0} ms"),
        "class",
        "first",
        "later min",
        "later p50",
        "later max",
        "count"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:26} {:8} {:>10} {:>10} {:>10} {:>10} {:>12}",
            plain(&row.label, NAME_CHARS),
            plain(&row.class, NAME_CHARS),
            or_dash(row.first_ms),
            or_dash(row.later_min_ms),
            or_dash(row.later_p50_ms),
            or_dash(row.later_max_ms),
            format!("{} of {}", row.n_long, row.n)
        );
    }
    out + "\n"
}

fn inter_arrival(rows: &[InterArrival]) -> String {
    let mut out = format!(
        "{:>9} {:>7} {:>12} {:>12} {:>6}  period\n",
        "over", "events", "mean gap", "deviation", "CV"
    );
    for row in rows {
        let [mean, deviation] = [row.mean_s, row.deviation_s]
            .map(|value| value.map_or("-".to_owned(), |s| format!("{s:.2} s")));
        let _ = writeln!(
            out,
            "{:>9} {:>7} {mean:>12} {deviation:>12} {:>6}  {}",
            duration(row.threshold_ms),
            count(row.n),
            row.variation.map_or("-".to_owned(), |variation| format!("{variation:.2}")),
            row.period_s.map_or("none".to_owned(), |period| format!("{period:.2} s"))
        );
    }
    out + "\n"
}

fn counters(rows: &[OperationCounters]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "{:12} {:8} {:>7}   {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "operation",
        "class",
        "inputs",
        "CPU each",
        "switches",
        "faults",
        "cycles",
        "instr.",
        "cache m.",
        "TLB m."
    );
    for row in rows {
        let _ = write!(
            out,
            "{:12} {:8} {:>7}   {:>10}",
            plain(&row.label, NAME_CHARS),
            plain(&row.class, NAME_CHARS),
            count(row.n),
            or_dash(row.cpu_ms.map(|ms| ms / row.n.max(1) as f64)),
        );
        for value in [
            row.context_switches,
            row.page_faults,
            row.cycles,
            row.instructions,
            row.cache_misses,
            row.tlb_misses,
        ] {
            let each = value.map(|value| decimal(value as f64 / row.n.max(1) as f64, 1));
            let _ = write!(out, " {:>9}", each.as_deref().unwrap_or("-"));
        }
        out += "\n";
    }
    out + "\n"
}

fn driver(details: &MeasureDetails) -> String {
    let driver = &details.driver;
    let restless = match details.restless_waits {
        0 => String::new(),
        waits => format!("; {waits} waits for a still screen timed out"),
    };
    format!(
        "the driver itself: {} of CPU time ({:.1}% of one CPU), {} requests, {} reports of \
         drawings; not part of any latency, which begins when the input leaves the \
         driver{restless}\n",
        duration(driver.cpu_ms),
        driver.cpu_percent,
        count(driver.requests),
        count(driver.reports),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{CumulativeLatencies, DriverCost, EventRow, ExcessRate};
    use super::*;
    use tipme_measure::{Apdex, MeasuredMachine, Rate, Run, SCHEMA};

    fn unusable() -> CumulativeLatencies {
        CumulativeLatencies {
            repeats_ms: vec![100.0, 140.0],
            mean_ms: Some(120.0),
            deviation_percent: Some(23.6),
            usable: Some(false),
        }
    }

    fn keys() -> ClassFigures {
        ClassFigures {
            class: "key".to_owned(),
            n: 10,
            p50_ms: Some(12.0),
            max_ms: Some(120.0),
            threshold_ms: 100.0,
            apdex: Some(Apdex { score: 0.95, ..Apdex::default() }),
            silent: 2,
            exceeded: true,
            handled: Some(MilestoneFigures {
                n: 9,
                max_ms: 640.0,
                threshold_ms: 500.0,
                exceeded: true,
                open: 1,
                ..MilestoneFigures::default()
            }),
            ..ClassFigures::default()
        }
    }

    fn sample() -> MeasureDocument {
        let event = EventRow {
            latency_ms: Some(12.0),
            join: Some(EventJoin::Exact),
            ..EventRow::default()
        };
        let details = MeasureDetails {
            script: "editor".to_owned(),
            about: "plain-text editing".to_owned(),
            application: vec!["mousepad".to_owned()],
            scripted: 12,
            answered: 10,
            silent: 2,
            events: vec![event; 10],
            classes: vec![keys()],
            elr: Some(ExcessRate {
                rate: Rate { at_ms_per_minute: 20.0, ..Rate::default() },
                top_class: Some("key".to_owned()),
                top_share: Some(1.0),
            }),
            cumulative: unusable(),
            long_events: vec![LongEvent {
                label: "save".to_owned(),
                first_ms: Some(120.0),
                n: 4,
                n_long: 1,
                ..LongEvent::default()
            }],
            inter_arrival: vec![InterArrival {
                threshold_ms: 100.0,
                n: 1,
                ..InterArrival::default()
            }],
            counters: vec![OperationCounters {
                label: "type".to_owned(),
                class: "key".to_owned(),
                n: 10,
                page_faults: Some(25),
                ..OperationCounters::default()
            }],
            driver: DriverCost { cpu_ms: 42.0, cpu_percent: 0.4, requests: 30, reports: 20 },
            ..MeasureDetails::default()
        };
        let runs = vec![Run { duration_ns: 5_000_000_000, ..Run::default() }; 2];
        let machine = MeasuredMachine { cpus: 2, ..MeasuredMachine::default() };
        MeasureDocument {
            schema: SCHEMA,
            kind: "measure".to_owned(),
            version: "0".to_owned(),
            machine,
            runs,
            details,
        }
    }

    #[test]
    fn every_figure_is_printed() {
        let text = text(&sample());
        for part in [
            "mousepad, 2 repeats, 12 inputs and starts in 10 s; 10 answered, 2 without a visible \
             answer, 0 open, 0 lost",
            "10 drawings joined to their input exactly, 0 by time only",
            "2 CPUs",
            "over the threshold",
            "UNUSABLE for a comparison, over 3%",
            "20.0 ms/min at T",
            "100% of it from key",
            "1 of 4",
            "wait - (- of it over a threshold)",
            "the driver itself: 42 ms of CPU time (0.4% of one CPU), 30 requests",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(
            text.lines().any(|line| line.starts_with("type") && line.contains("2.5")),
            "{text}"
        );
        let handled = text.lines().find(|line| line.starts_with("  handled")).expect("it is known");
        assert!(
            ["9", "640 ms", "500 ms", "1", "over the threshold"]
                .iter()
                .all(|part| handled.contains(part)),
            "{text}"
        );
        assert!(!text.contains("  completed"), "{text}");
    }

    #[test]
    fn a_guess_is_called_a_guess() {
        let mut result = sample();
        result.details.instrument_why = Some("recording needs root".to_owned());
        assert!(text(&result).contains("which is speculative (recording needs root)"));
    }

    fn event((repeat, label, class, ms): (usize, &str, &str, f64)) -> EventRow {
        EventRow {
            repeat,
            label: label.to_owned(),
            class: class.to_owned(),
            latency_ms: Some(ms),
            ..EventRow::default()
        }
    }

    #[test]
    fn repeats_differ_by_inputs() {
        let mut result = sample();
        let events = [
            (1, "start", "start", 900.0),
            (1, "type", "key", 60.0),
            (1, "save", "command", 40.0),
            (2, "type", "key", 62.0),
            (2, "save", "command", 48.0),
            (2, "save", "command", 30.0),
        ];
        result.details.events = events.map(event).to_vec();
        let recorded = text(&result);
        assert!(
            recorded.contains("  95% of the differences: inputs labelled save, 40 ms to 78 ms\n"),
            "{recorded}"
        );
        result.details.events[1].latency_ms = Some(70.0);
        assert!(
            text(&result)
                .contains("  100% of the differences: inputs labelled save, 40 ms to 78 ms\n"),
            "{}",
            text(&result)
        );
        result.details.cumulative.usable = Some(true);
        assert!(!text(&result).contains("of the differences"));
    }

    #[test]
    fn an_empty_result_can_be_printed() {
        let result = MeasureDocument { details: MeasureDetails::default(), ..sample() };
        assert!(text(&result).contains("no events over 50 ms"));
    }
}
