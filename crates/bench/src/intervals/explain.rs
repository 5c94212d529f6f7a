// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explanations of a load's longest intervals by a recording.

use super::cleanup::Cleanup;
use super::figures::{Longest, MeasuredLoad};
use crate::driver::{BenchDriver, Programs};
use crate::interrupt::InterruptFlag;
use crate::process::is_root;
use crate::programs::{self, SidecarRecorder};
use anyhow::{Result, ensure};
use std::time::Duration;
use tipme_analysis::Recording;
use tipme_record::{Nanos, Tid};

/// Period before the end of a load that is searched for the longest intervals: the window of an
/// incident.
const WINDOW_NS: u64 = 40_000_000_000;
const WINDOW_S: &str = "40";
/// Number of explained intervals of each load, and their minimum excess.
const EXPLAINED_MAX: usize = 3;
const EXPLAINED_MIN_NS: u64 = 5_000_000;

/// A recorder beside a benchmark, or the reason why there is none.
pub(crate) struct Explainer {
    /// Fields are dropped in order: the recorder, then what removes its folder in any case.
    recorder: Result<(SidecarRecorder, Cleanup), String>,
    interrupt: InterruptFlag,
}

impl Explainer {
    /// Starts the recorder, with `details` of resource use, unless it is unwanted.
    pub(crate) fn start(
        driver: &dyn BenchDriver,
        unwanted: bool,
        details: &[&str],
    ) -> Result<Explainer> {
        let interrupt = driver.interrupt();
        let recorder = if unwanted {
            Err("--no-trace was given".to_owned())
        } else {
            let recorder = start_recorder(&driver.programs(), details, &interrupt);
            interrupt.check()?;
            recorder.map_err(|error| format!("{error:#}"))
        };
        Ok(Explainer { recorder, interrupt })
    }

    /// Returns the reason why nothing is explained, if any.
    pub(crate) fn blind_because(&self) -> Option<String> {
        self.recorder.as_ref().err().cloned()
    }

    /// Explains a load that has ended. The measuring process sleeps for `sleep` of each interval.
    pub(crate) fn explain(&self, load: MeasuredLoad, sleep: Duration) -> Result<MeasuredLoad> {
        let Ok((recorder, _)) = &self.recorder else { return Ok(load) };
        let recording = programs::recording(&recorder.mark(&self.interrupt)?)?;
        Ok(MeasuredLoad { longest: longest(&recording, &load, sleep), ..load })
    }
}

/// Starts `tipme record` without a display, and with `details` of resource use.
fn start_recorder(
    programs: &Programs,
    details: &[&str],
    interrupt: &InterruptFlag,
) -> Result<(SidecarRecorder, Cleanup)> {
    ensure!(is_root(), "recording needs root");
    let (cleanup, folder) = Cleanup::with_folder(&programs.launcher)?;
    let mut command = programs::recorder(&programs.tipme, "none");
    command.args(["--window", WINDOW_S]);
    if !details.is_empty() {
        command.args(["--detail", &details.join(",")]);
    }
    Ok((SidecarRecorder::start_in(folder, command, interrupt)?, cleanup))
}

/// Returns the longest intervals that a recording still covers.
fn longest(recording: &Recording, load: &MeasuredLoad, sleep: Duration) -> Vec<Longest> {
    let (intervals, sleep) = (&load.intervals, sleep.as_nanos() as u64);
    let begun = intervals.starts_ns.first().copied().unwrap_or_default();
    let from = begun.saturating_add(intervals.duration_ns).saturating_sub(WINDOW_NS);
    let own = Nanos(intervals.expected_ns.saturating_sub(sleep));
    let spans = intervals.longest_since(from, EXPLAINED_MAX).into_iter();
    let late = spans.filter(|(start, end)| end - start >= intervals.expected_ns + EXPLAINED_MIN_NS);
    let explained = late.filter_map(|(start, end)| {
        let due = Nanos(start.saturating_add(sleep));
        let explanation = tipme_analysis::explain(recording, Tid(load.tid), due, Nanos(end), own)?;
        Some(Longest { start_s: (start - begun) as f64 / 1e9, explanation })
    });
    explained.collect()
}
