// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme bench timer`.

mod late;
mod repeats;

use crate::arguments::{Timer, TimerChoice, TimerCpus};
use crate::files::write_plots;
use crate::programs;
use anyhow::{Context, Result, bail};
use repeats::Repeats;
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tipme_bench::interrupt::Interrupt;
use tipme_bench::machine::Survey;
use tipme_bench::timer::{self, Options, Trace, Track};
use tipme_measure::timer::{Figures, Measured, Mechanism, Outlier, Series, TimerDetails, at_once, culprits};
use tipme_measure::{Document, SCHEMA};
use tipme_report::timer as report;

/// The kind of the documents.
const KIND: &str = "timer";

/// Exit code 0 where it was measured, 1 where a wake-up was later than was asked for.
pub fn run(arguments: Timer) -> Result<ExitCode> {
    if !arguments.show.is_empty() {
        return show(&arguments.show);
    }
    let interrupt = Interrupt::install()?;
    let repeats = Repeats::new(arguments.repeat, arguments.json.as_deref(), arguments.svg.as_deref())?;
    let mut over = false;
    for repeat in repeats.all() {
        let document = measure(&arguments, &interrupt)?;
        print!("{}{}", repeat.heading, report::text(&document));
        repeat.json.iter().try_for_each(|path| write(path, &document))?;
        repeat.svg.iter().try_for_each(|folder| write_plots(folder, report::plots(&document)))?;
        over |= document.details.mechanisms.iter().any(|measured| measured.outliers_over > 0);
    }
    Ok(ExitCode::from(u8::from(over && arguments.threshold.is_some())))
}

/// What one mechanism gave.
struct Part {
    measured: Measured,
    tracks: Vec<Track>,
    outliers: Vec<Outlier>,
}

fn measure(arguments: &Timer, interrupt: &Interrupt) -> Result<Document<TimerDetails>> {
    let (options, mechanisms) = (options(arguments)?, mechanisms(&arguments.mechanism));
    let deadlines = options.deadlines()?;
    options.policy.check()?;
    let survey = Survey::begin();
    let rates = if arguments.rates { timer::rates(&options, &mechanisms, interrupt)? } else { Vec::new() };
    let mut notes = Vec::new();
    let trace = start_trace(arguments, &options, deadlines, interrupt, &mut notes)?;
    let mut parts = Vec::new();
    for mechanism in mechanisms {
        parts.push(one(mechanism, arguments, &options, trace.as_ref(), interrupt)?);
    }
    drop(trace);
    let clocks = timer::clocks();
    let machine = survey.end();
    let first = parts.first().context("no mechanism was chosen")?;
    let mut details = TimerDetails {
        mechanism: first.measured.mechanism,
        period_ns: options.period.as_nanos() as u64,
        policy: options.policy.to_string(),
        figures: first.measured.figures.clone(),
        mechanisms: Vec::new(),
        threads: Vec::new(),
        clocks,
        rates,
        outliers: Vec::new(),
        culprits: Vec::new(),
        notes,
    };
    let runs = details_of(parts, &mut details);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Document { schema: SCHEMA, kind: KIND.to_owned(), version, machine, runs, details })
}

/// Puts the parts together; the runs.
fn details_of(parts: Vec<Part>, details: &mut TimerDetails) -> Vec<tipme_measure::Run> {
    let mut runs = Vec::new();
    for part in parts {
        details.mechanisms.push(part.measured);
        details.outliers.extend(part.outliers);
        for track in part.tracks {
            details.threads.push(track.thread);
            runs.push(track.run);
        }
    }
    details.culprits = culprits(&details.outliers);
    let together = at_once(&details.outliers);
    if together > 0 {
        details.notes.push(format!(
            "{together} of the very late ended at the same moment on several CPUs, as where a hypervisor or firmware \
             holds them all; whoever is named there may be innocent."
        ));
    }
    runs
}

fn one(
    mechanism: Mechanism,
    arguments: &Timer,
    options: &Options,
    trace: Option<&Trace>,
    interrupt: &Interrupt,
) -> Result<Part> {
    let mut tracks = timer::measure(options, mechanism, interrupt)?;
    let threshold_ns = arguments.threshold.map(|threshold| threshold.as_nanos() as u64);
    tracks.iter_mut().flat_map(|track| &mut track.run.classes).for_each(|events| events.threshold_ns = threshold_ns);
    let period_ns = options.period.as_nanos() as u64;
    let series: Vec<Series<'_>> = tracks.iter().filter_map(|track| Series::new(&track.run, period_ns)).collect();
    let figures = Figures::of(&series);
    drop(series);
    let late = late::find(&tracks, mechanism, period_ns, threshold_ns);
    let outliers = late::explain(&late, trace, interrupt)?;
    let outlier_threshold_us = late.threshold_ns as f64 / 1e3;
    let measured = Measured { mechanism, figures, outlier_threshold_us, outliers_over: late.over };
    Ok(Part { measured, tracks, outliers })
}

/// The recorder, for those who may record. A measurement that cannot be explained is one all the same.
fn start_trace(
    arguments: &Timer,
    options: &Options,
    deadlines: u64,
    interrupt: &Interrupt,
    notes: &mut Vec<String>,
) -> Result<Option<Trace>> {
    if arguments.no_trace {
        return Ok(None);
    }
    if !timer::may_trace() {
        notes.push("What late wake-ups waited for is known to root only: use sudo.".to_owned());
        return Ok(None);
    }
    match Trace::start(&programs::tipme()?, options.duration, deadlines * options.cpus.len() as u64, interrupt) {
        Ok(trace) => Ok(Some(trace)),
        Err(error) => {
            interrupt.check()?;
            notes.push(format!("What late wake-ups waited for is not known: {error:#}."));
            Ok(None)
        }
    }
}

fn options(arguments: &Timer) -> Result<Options> {
    let cpus = match &arguments.cpus {
        TimerCpus::All => timer::cpus(None)?,
        TimerCpus::List(list) => timer::cpus(Some(list))?,
    };
    Ok(Options {
        period: arguments.period,
        duration: arguments.duration,
        policy: arguments.policy,
        cpus,
        slack_ns: arguments.slack,
    })
}

/// Each of those that were chosen once, in the order of the choice.
fn mechanisms(choices: &[TimerChoice]) -> Vec<Mechanism> {
    let mut mechanisms = Vec::new();
    for mechanism in choices.iter().flat_map(|choice| chosen(*choice)) {
        if !mechanisms.contains(mechanism) {
            mechanisms.push(*mechanism);
        }
    }
    mechanisms
}

fn chosen(choice: TimerChoice) -> &'static [Mechanism] {
    match choice {
        TimerChoice::Absolute => &[Mechanism::Absolute],
        TimerChoice::Nanosleep => &[Mechanism::Nanosleep],
        TimerChoice::Relative => &[Mechanism::Relative],
        TimerChoice::Timerfd => &[Mechanism::Timerfd],
        TimerChoice::Itimer => &[Mechanism::Itimer],
        TimerChoice::Poll => &[Mechanism::Poll],
        TimerChoice::All => &Mechanism::ALL,
    }
}

fn write(path: &Path, document: &Document<TimerDetails>) -> Result<()> {
    let file = fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut writer = BufWriter::new(file);
    serde_json::to_writer(&mut writer, document).with_context(|| format!("cannot write {}", path.display()))?;
    writer.into_inner().map(drop).with_context(|| format!("cannot write {}", path.display()))
}

/// Prints the tables of several results.
fn show(paths: &[PathBuf]) -> Result<ExitCode> {
    let files = paths.iter().map(|path| Ok((stem(path), read(path)?))).collect::<Result<Vec<_>>>()?;
    print!("{}", report::side_by_side(&files));
    Ok(ExitCode::SUCCESS)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<Document<TimerDetails>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let document: Document<TimerDetails> = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a result of tipme bench timer --json", path.display()))?;
    if document.schema != SCHEMA || document.kind != KIND {
        bail!("{} is a result of another kind or version: measure again", path.display());
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mechanism_is_measured_once() {
        let chosen = mechanisms(&[TimerChoice::Relative, TimerChoice::Absolute, TimerChoice::Relative]);
        assert_eq!(chosen, [Mechanism::Relative, Mechanism::Absolute]);
        assert_eq!(mechanisms(&[TimerChoice::All]), Mechanism::ALL);
    }
}
