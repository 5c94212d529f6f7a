// SPDX-License-Identifier: MIT OR Apache-2.0
//! Idle-loop instrument: a loop of the lowest priority on each CPU that detects when it does not
//! run.
//!
//! It needs neither privileges nor tracing: any time that the loop misses, something else had the
//! CPU. The loop keeps its CPU out of deep idle states and at a high clock, so the measured machine
//! differs slightly from an idle one. With a recorder beside the loop, the missed time is
//! attributed by name.

mod classic;
mod echo;
mod injector;
mod interrupts;
mod judge;
mod names;
mod options;
mod plan;
mod spin;
mod table;
mod trace;
mod validation;
mod watch;

pub(crate) use injector::work;
pub use options::Idle;

use crate::driver::BenchDriver;
use crate::experiment::{BenchFigures, Experiment, MeasuredRepeats};
use crate::interrupt::InterruptFlag;
use crate::machine::Survey;
use crate::process::is_root;
use crate::programs::{SidecarRecorder, recording};
use anyhow::Result;
use judge::ERROR;
use names::Named;
use options::IdleOptions;
use std::path::Path;
use tipme_analysis::Recording;
use tipme_measure::Document;
use tipme_measure::idle::{Check, CpuFigures, GAP, IdleDetails, Validation};
use watch::{LoopOutcome, measure};

/// Maximum difference from the kernel's accounting, in percentage points.
const POINTS_MAX: f64 = 2.0;
/// Name in the results.
const CLASSIC: &str = "classic";

impl Experiment for Idle {
    const NAME: &'static str = "idle";
    const CLASSES: &'static [&'static str] = &[GAP, ERROR];
    /// A document can hold a million gaps.
    const INDENTED: bool = false;
    type Figures = IdleDetails;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<IdleDetails>> {
        let options = self.options()?;
        options.check()?;
        if self.validate {
            return judge::run(&options, !self.no_trace && is_root(), driver);
        }
        let (outcome, recorded) = watch(self, &options, driver)?;
        let runs = outcome.observed.iter().map(tipme_measure::idle::run).collect();
        Ok(MeasuredRepeats { runs, figures: figures(&options, outcome, recorded) })
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        (self.json.as_deref(), self.svg.as_deref())
    }
}

impl BenchFigures for IdleDetails {
    fn text(document: &Document<IdleDetails>) -> String {
        table::text(document)
    }

    fn plots(document: &Document<IdleDetails>) -> Vec<(String, String)> {
        table::plots(document)
    }

    /// Returns 1 if the figures are not reliable, 2 if other processes had too much CPU time for a
    /// judgment.
    fn exit_code(document: &Document<IdleDetails>) -> u8 {
        let details = &document.details;
        let apart = details.cpus.iter().any(|cpu| cpu.is_apart(POINTS_MAX));
        if details.validation.as_ref().is_some_and(Validation::is_disturbed) {
            return 2;
        }
        let bad = details.validation.as_ref().is_some_and(|validation| !validation.is_good());
        u8::from(bad || apart && details.method != CLASSIC)
    }
}

/// Recording of the measurement, or the reason why there is none.
type Recorded = Result<Box<Recording>, String>;

/// Measures, with the recorder beside it if possible.
fn watch(
    idle: &Idle,
    options: &IdleOptions,
    driver: &dyn BenchDriver,
) -> Result<(LoopOutcome, Recorded)> {
    let interrupt = &driver.interrupt();
    let tracer = match why_not(idle) {
        Some(why) => Err(why.to_owned()),
        None => {
            let started = trace::start(&driver.programs().tipme, options.duration, interrupt);
            interrupt.check()?;
            started.map_err(|error| format!("{error:#}"))
        }
    };
    let outcome = measure(options, interrupt)?;
    let recorded =
        tracer.and_then(|tracer| read(tracer, interrupt).map_err(|error| format!("{error:#}")));
    interrupt.check()?;
    Ok((outcome, recorded))
}

/// Returns the reason why gaps have no names, if any.
fn why_not(idle: &Idle) -> Option<&'static str> {
    if idle.no_trace {
        Some("--no-trace was given")
    } else if idle.classic {
        Some("the loop of fixed length does not know when in a record its time was taken")
    } else if !is_root() {
        Some("only root may record; run it with sudo")
    } else {
        None
    }
}

fn read(tracer: SidecarRecorder, interrupt: &InterruptFlag) -> Result<Box<Recording>> {
    let (incident, _folder) = tracer.last_mark(interrupt)?;
    Ok(Box::new(recording(&incident)?))
}

fn figures(options: &IdleOptions, outcome: LoopOutcome, recorded: Recorded) -> IdleDetails {
    let machine = Survey::begin().end();
    let named = names::name(recorded.as_deref().ok(), &outcome, &machine);
    let LoopOutcome { observed, counted } = outcome;
    let cpus =
        observed.iter().zip(counted).zip(&named.cpus).map(|((one, counted), name)| CpuFigures {
            counted,
            ticks_per_s: name.ticks_per_s,
            exclusion: name.exclusion,
            charged_points: name.charged_points,
            ..CpuFigures::of(one)
        });
    let cpus = cpus.collect();
    let all = Check::of("", "", &observed, None);
    let gap_min_ns = observed.iter().map(|one| one.gap_min_ns).max();
    IdleDetails {
        stolen_share: all.stolen_share,
        check_share: all.check_share,
        gap_min_ns: gap_min_ns.filter(|_| !options.classic),
        cpus,
        no_names_because: recorded.err(),
        observed,
        ..details(options, named)
    }
}

fn details(options: &IdleOptions, named: Named) -> IdleDetails {
    IdleDetails {
        method: if options.classic { CLASSIC } else { "gaps" }.to_owned(),
        resolution_ns: options.resolution.as_nanos() as u64,
        named: named.share,
        residents: named.residents,
        largest: named.largest,
        ..IdleDetails::default()
    }
}
