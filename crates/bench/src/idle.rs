// SPDX-License-Identifier: MIT OR Apache-2.0
//! The idle-loop instrument: a loop of the lowest priority on each CPU that notices when it does not run.
//!
//! It needs no right and no tracing, since it is told nothing: what it misses, somebody else had. The loop keeps its
//! CPU out of deep idle states and at a high clock, so a machine that is measured is not quite the machine that idles.
//! With a recorder beside it, what it misses has names.

mod buffer;
mod classic;
mod counter;
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
use crate::experiment::{Experiment, MeasuredRepeats};
use crate::interrupt::InterruptFlag;
use crate::machine::Survey;
use anyhow::Result;
use judge::ERROR;
use names::Named;
use options::IdleOptions;
use std::path::Path;
use tipme_analysis::Recording;
use tipme_measure::Document;
use tipme_measure::idle::{Check, CpuFigures, GAP, IdleDetails, Validation};
use trace::Tracer;
use watch::{LoopOutcome, may_record, measure};

/// The figures must agree with the kernel's account to so many points.
const POINTS_MAX: f64 = 2.0;
/// As in the results.
const CLASSIC: &str = "classic";

impl Experiment for Idle {
    const NAME: &'static str = "idle";
    const CLASSES: &'static [&'static str] = &[GAP, ERROR];
    /// There may be a million gaps.
    const INDENTED: bool = false;
    type Figures = IdleDetails;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<IdleDetails>> {
        let options = self.options()?;
        options.check()?;
        if self.validate {
            return judge::run(&options, !self.no_trace && may_record(), driver);
        }
        let (outcome, recorded) = watch(self, &options, driver)?;
        let runs = outcome.observed.iter().map(tipme_measure::idle::run).collect();
        Ok(MeasuredRepeats { runs, figures: figures(&options, outcome, recorded) })
    }

    fn text(document: &Document<IdleDetails>) -> String {
        table::text(document)
    }

    fn plots(document: &Document<IdleDetails>) -> Vec<(String, String)> {
        table::plots(document)
    }

    /// 1 where the figures cannot be trusted, 2 where others had too much of the CPU to tell.
    fn exit_code(document: &Document<IdleDetails>) -> u8 {
        let details = &document.details;
        let apart = details.cpus.iter().any(|cpu| cpu.is_apart(POINTS_MAX));
        if details.validation.as_ref().is_some_and(Validation::is_disturbed) {
            return 2;
        }
        let bad = details.validation.as_ref().is_some_and(|validation| !validation.is_good());
        u8::from(bad || apart && details.method != CLASSIC)
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        (self.json.as_deref(), self.svg.as_deref())
    }
}

/// What was recorded meanwhile, or why nothing was.
type Recorded = Result<Box<Recording>, String>;

/// Measures, with the recorder beside it where that is possible.
fn watch(idle: &Idle, options: &IdleOptions, driver: &dyn BenchDriver) -> Result<(LoopOutcome, Recorded)> {
    let interrupt = &driver.interrupt();
    let tracer = match why_not(idle) {
        Some(why) => Err(why.to_owned()),
        None => {
            let started = Tracer::start(&driver.programs().tipme, options.duration, interrupt);
            interrupt.check()?;
            started.map_err(|error| format!("{error:#}"))
        }
    };
    let outcome = measure(options, interrupt)?;
    let recorded = tracer.and_then(|tracer| read(tracer, interrupt).map_err(|error| format!("{error:#}")));
    interrupt.check()?;
    Ok((outcome, recorded))
}

/// Why gaps have no names.
fn why_not(idle: &Idle) -> Option<&'static str> {
    if idle.no_trace {
        Some("--no-trace was given")
    } else if idle.classic {
        Some("the loop of fixed length does not know when in a record its time was taken")
    } else if !may_record() {
        Some("only root may record; run it with sudo")
    } else {
        None
    }
}

fn read(tracer: Tracer, interrupt: &InterruptFlag) -> Result<Box<Recording>> {
    let incident = tracer.mark(interrupt)?;
    Ok(Box::new(Recording::read(&tipme_command::incident::read(&incident.path)?)?))
}

fn figures(options: &IdleOptions, outcome: LoopOutcome, recorded: Recorded) -> IdleDetails {
    let machine = Survey::begin().end();
    let named = names::name(recorded.as_deref().ok(), &outcome, &machine);
    let LoopOutcome { observed, counted } = outcome;
    let cpus = observed.iter().zip(counted).zip(&named.cpus).map(|((one, counted), name)| CpuFigures {
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
