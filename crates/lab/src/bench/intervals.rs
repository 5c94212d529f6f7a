// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `tipme bench memory` and `tipme bench fork` do alike with their intervals: explain, print and write.

use crate::files::{write, write_plots};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tipme_analysis::{Explanation, Recording};
use tipme_bench::intervals::Measured;
use tipme_measure::{Class, Document, Intervals, Limits, Machine, Profile, SCHEMA};
use tipme_record::{Nanos, Tid};
use tipme_report::plot::{Figure, Quantity, Set, histograms};

/// How far back from the end of a load the longest intervals are looked for: what an incident holds.
const WINDOW_NS: u64 = 40_000_000_000;
/// How many of each load are explained, and from which excess on.
const EXPLAINED_MAX: usize = 3;
const EXPLAINED_MIN_NS: u64 = 5_000_000;
/// As in the papers.
const BUCKET_NS: u64 = 10_000_000;
/// Exit code where an interval is later than people accept.
const LATE: u8 = 1;

/// A benchmark that has ended.
pub struct Results<'a> {
    /// `memory` or `fork`.
    pub kind: &'static str,
    /// What was done, for the first lines and the plot.
    pub title: &'a str,
    /// With which bounds, a line each.
    pub bounds: &'a [String],
    /// What only this kind has.
    pub conditions: Value,
    pub class: Class,
    /// The part of an interval that is the process's own sleep.
    pub sleep: Duration,
    pub machine: Machine,
    pub loads: &'a [Measured],
    /// Why nothing is explained; `None` where it is.
    pub blind: Option<String>,
}

/// The explanations of a load's longest intervals.
struct Explained {
    load: String,
    /// Seconds from the begin of the load to that of the interval, and why it was late.
    longest: Vec<(f64, Explanation)>,
}

impl Results<'_> {
    /// Prints the result and writes its files.
    pub fn publish(self, json: Option<&Path>, svg: Option<&Path>) -> Result<ExitCode> {
        let explained = self.loads.iter().map(|load| self.explain(load)).collect::<Result<Vec<Explained>>>()?;
        print!("{}", self.text(&explained));
        let late = self.is_late();
        if let Some(folder) = svg {
            write_plots(folder, [(format!("{}.svg", self.kind), self.figure())])?;
        }
        if let Some(path) = json {
            write(path, &(serde_json::to_string_pretty(&self.document(&explained))? + "\n"))?;
        }
        Ok(ExitCode::from(if late { LATE } else { 0 }))
    }

    fn limits(&self) -> Limits {
        self.class.limits(Profile::Default)
    }

    fn is_late(&self) -> bool {
        self.loads.iter().any(|load| load.intervals.excess_max() > self.limits().threshold)
    }

    /// The longest intervals that the incident of a load still holds.
    fn explain(&self, load: &Measured) -> Result<Explained> {
        let intervals = &load.intervals;
        let mut explained = Explained { load: intervals.load.clone(), longest: Vec::new() };
        let Some(path) = &load.incident else { return Ok(explained) };
        let incident = tipme_store::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let recording = Recording::read(&incident)?;
        let begun = intervals.starts_ns.first().copied().unwrap_or_default();
        let from = begun.saturating_add(intervals.duration_ns).saturating_sub(WINDOW_NS);
        let sleep = self.sleep.as_nanos() as u64;
        let own = Nanos(intervals.expected_ns.saturating_sub(sleep));
        for (start, end) in intervals.longest_since(from, EXPLAINED_MAX) {
            if end - start < intervals.expected_ns + EXPLAINED_MIN_NS {
                continue;
            }
            let due = Nanos(start.saturating_add(sleep));
            let explanation = tipme_analysis::explain(&recording, Tid(load.tid), due, Nanos(end), own);
            explained.longest.extend(explanation.map(|why| ((start - begun) as f64 / 1e9, why)));
        }
        Ok(explained)
    }

    fn text(&self, explained: &[Explained]) -> String {
        let loads = self.intervals();
        let mut out = format!("{}\n", self.title);
        for line in self.bounds {
            out += &format!("  {line}\n");
        }
        out += &format!("\n{}\n", tipme_report::intervals(&loads));
        for (load, begun_s, why) in
            explained.iter().flat_map(|one| one.longest.iter().map(|(at, why)| (&one.load, at, why)))
        {
            out += &tipme_report::explained(load, *begun_s, why);
        }
        if let Some(why) = &self.blind {
            out += &format!("The longest intervals are not explained: {why}.\n");
        }
        out + &self.footer().join("\n") + "\n"
    }

    fn intervals(&self) -> Vec<Intervals> {
        self.loads.iter().map(|load| load.intervals.clone()).collect()
    }

    /// Threshold, losses and machine.
    fn footer(&self) -> Vec<String> {
        let censored = self.loads.iter().filter(|load| load.intervals.censored_ns.is_some()).count();
        let casualties: usize = self.loads.iter().map(|load| load.casualties).sum();
        let threshold = self.limits().threshold / 1_000_000;
        vec![
            format!(
                "{:.1} s in all; noticed from {threshold} ms beyond the expected on; 0 intervals lost, {censored} cut off, \
                 {casualties} processes of a load ended early",
                self.machine.duration_s
            ),
            tipme_report::conditions(&self.machine),
        ]
    }

    fn figure(&self) -> String {
        let sets = self.loads.iter().map(|load| {
            let values_ms = load.intervals.values_ms();
            Set { name: load.intervals.load.clone(), values_ms }
        });
        let lines: Vec<String> = self.bounds.iter().cloned().chain(self.footer()).collect();
        let (quantity, footer) = (Quantity::Interval, lines.join("; "));
        let figure = Figure { title: self.title, quantity, footer: &footer };
        histograms(&figure, &sets.collect::<Vec<Set>>(), BUCKET_NS as f64 / 1e6)
    }

    /// Latencies of the runs are what intervals have beyond the expected; the intervals themselves are under `loads`.
    fn document(&self, explained: &[Explained]) -> Document<Value> {
        let loads = self.loads.iter().zip(explained).map(|(load, explained)| load_details(load, explained));
        let details = json!({
            "title": self.title,
            "bounds": self.bounds,
            "expected_ms": self.loads.first().map(|load| load.intervals.expected_ns as f64 / 1e6),
            "conditions": self.conditions,
            "loads": loads.collect::<Vec<Value>>(),
            "not_explained_because": self.blind,
        });
        Document {
            schema: SCHEMA,
            kind: self.kind.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: self.machine.clone(),
            runs: self.loads.iter().map(|load| load.intervals.run(self.limits())).collect(),
            details,
        }
    }
}

fn load_details(load: &Measured, explained: &Explained) -> Value {
    let intervals = &load.intervals;
    let histogram: Vec<(f64, u64)> =
        intervals.histogram(BUCKET_NS).into_iter().map(|(from, count)| (from as f64 / 1e6, count)).collect();
    let longest = explained.longest.iter().map(|(at, why)| json!({ "start_s": at, "explanation": why }));
    json!({
        "load": intervals.load,
        "figures": intervals.figures(),
        "histogram_10ms": histogram,
        "intervals_ns": intervals.intervals_ns,
        "censored_ns": intervals.censored_ns,
        "casualties": load.casualties,
        "cpu_ns": load.cpu_ns,
        "longest": longest.collect::<Vec<Value>>(),
    })
}
