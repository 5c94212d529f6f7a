// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lateness of periodic wakeups by mechanism, with the causes of the latest ones.
//!
//! Follows Jones and Regehr (1999, tables 1 to 3): one thread on each CPU is due to wake up at
//! regular times, and records the actual times. As root, a recorder beside it explains late
//! wakeups. Tables and plots are those of `tipme report`.

mod clocks;
pub(crate) mod culprit;
mod late;
mod options;
mod policy;
mod sleeper;
mod threads;
mod trace;

use clocks::ClockWatch;
pub use clocks::clocks;
pub use options::{Cpus, Timer};
pub use policy::SchedPolicy;
pub(crate) use sleeper::sleep_until;

use crate::driver::BenchDriver;
use crate::experiment::{BenchFigures, Experiment, MeasuredRepeats};
use crate::interrupt::InterruptFlag;
use crate::process::is_root;
use crate::programs::SidecarRecorder;
use anyhow::{Context, Result};
use std::path::Path;
use threads::{ThreadWakeUps, TimerOptions};
use tipme_measure::timer::{
    LATENESS, Measured as MeasuredMechanism, Outlier, TimerDetails, TimerFigures, TimerMechanism,
    WakeUpSeries, at_once, culprits,
};
use tipme_measure::{Document, Run};

impl Experiment for Timer {
    const NAME: &'static str = "timer";
    const CLASSES: &'static [&'static str] = &[LATENESS];
    /// A document can hold a million samples.
    const INDENTED: bool = false;
    type Figures = TimerDetails;

    fn run(&self, driver: &mut dyn BenchDriver) -> Result<MeasuredRepeats<TimerDetails>> {
        let (options, mechanisms, interrupt) =
            (self.options()?, self.mechanisms(), driver.interrupt());
        options.deadlines()?;
        options.policy.check()?;
        let mut notes = Vec::new();
        let trace = self.start_trace(&options, driver, &mut notes)?;
        let watch = ClockWatch::begin();
        let measured = mechanisms
            .into_iter()
            .map(|one| self.measure(one, &options, trace.as_ref(), &interrupt));
        let parts = measured.collect::<Result<Vec<MechanismResults>>>()?;
        let clocks_apart = Some(watch.end());
        drop(trace);
        let first = &parts.first().context("no mechanism was chosen")?.measured;
        let mut details = TimerDetails {
            mechanism: first.mechanism,
            period_ns: options.period_ns(),
            policy: options.policy.to_string(),
            figures: first.figures.clone(),
            mechanisms: Vec::new(),
            threads: Vec::new(),
            clocks: clocks(),
            clocks_apart,
            outliers: Vec::new(),
            culprits: Vec::new(),
            notes,
        };
        let runs = details_of(parts, &mut details);
        Ok(MeasuredRepeats { runs, figures: details })
    }

    fn files(&self) -> (Option<&Path>, Option<&Path>) {
        (self.json.as_deref(), self.svg.as_deref())
    }

    fn repeats(&self) -> usize {
        self.repeat
    }
}

impl BenchFigures for TimerDetails {
    fn text(document: &Document<TimerDetails>) -> String {
        tipme_report::timer::text(document)
    }

    fn plots(document: &Document<TimerDetails>) -> Vec<(String, String)> {
        tipme_report::timer::plots(document)
    }

    /// Fails only if the user set a threshold.
    fn exit_code(document: &Document<TimerDetails>) -> u8 {
        let asked = document
            .runs
            .iter()
            .flat_map(|run| &run.classes)
            .any(|events| events.threshold_ns.is_some());
        u8::from(
            asked && document.details.mechanisms.iter().any(|measured| measured.outliers_over > 0),
        )
    }
}

/// Results of one mechanism.
struct MechanismResults {
    measured: MeasuredMechanism,
    tracks: Vec<ThreadWakeUps>,
    outliers: Vec<Outlier>,
}

impl Timer {
    fn measure(
        &self,
        mechanism: TimerMechanism,
        options: &TimerOptions,
        trace: Option<&SidecarRecorder>,
        interrupt: &InterruptFlag,
    ) -> Result<MechanismResults> {
        let mut tracks = threads::measure(options, mechanism, interrupt)?;
        let threshold_ns = self.threshold.map(|threshold| threshold.as_nanos() as u64);
        let events = tracks.iter_mut().flat_map(|track| &mut track.run.classes);
        events.for_each(|events| events.threshold_ns = threshold_ns);
        let period_ns = options.period_ns();
        let series: Vec<WakeUpSeries<'_>> =
            tracks.iter().filter_map(|track| WakeUpSeries::new(&track.run, period_ns)).collect();
        let figures = TimerFigures::of(&series);
        drop(series);
        let late = late::find(&tracks, mechanism, period_ns, threshold_ns);
        let outliers = late::explain(&late, trace, interrupt)?;
        let outlier_threshold_us = late.threshold_ns as f64 / 1e3;
        let measured = MeasuredMechanism {
            mechanism,
            figures,
            outlier_threshold_us,
            outliers_over: late.over,
        };
        Ok(MechanismResults { measured, tracks, outliers })
    }

    /// Starts the recorder if this user can record. A measurement is valid without explanations.
    fn start_trace(
        &self,
        options: &TimerOptions,
        driver: &dyn BenchDriver,
        notes: &mut Vec<String>,
    ) -> Result<Option<SidecarRecorder>> {
        if self.no_trace {
            return Ok(None);
        }
        if !is_root() {
            notes
                .push("The causes of late wake-ups are visible to root only: use sudo.".to_owned());
            return Ok(None);
        }
        let (wakes, interrupt) =
            (options.deadlines()? * options.cpus.len() as u64, driver.interrupt());
        match trace::start(&driver.programs().tipme, options.duration, wakes, &interrupt) {
            Ok(trace) => Ok(Some(trace)),
            Err(error) => {
                interrupt.check()?;
                notes.push(format!("The causes of late wake-ups are unknown: {error:#}."));
                Ok(None)
            }
        }
    }
}

/// Combines the parts; returns the runs.
fn details_of(parts: Vec<MechanismResults>, details: &mut TimerDetails) -> Vec<Run> {
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
             holds them all; the culprits named there may be innocent."
        ));
    }
    runs
}
