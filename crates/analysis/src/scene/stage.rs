// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval with a margin before and after it, shared by all tracks.

use crate::explain::partition::Budget;
use crate::scene::actors::Actors;
use crate::scene::lanes::{Stretch, StretchRun, sparse, thin};
use crate::scene::picture::Bar;
use crate::scene::texts::Texts;
use crate::timeline::recording::Recording;
use crate::verdict::problem::Problem;
use tipme_record::Nanos;

/// Maximum number of bars per track.
pub(super) const BARS_MAX: usize = 1_500;

/// Divisor of the interval's length for the margin, and minimum margin.
const MARGIN: u64 = 12;
const MARGIN_MIN: Nanos = Nanos::from_millis(20);

/// Data that the tracks are built from.
pub(super) struct SceneStage<'a> {
    pub recording: &'a Recording,
    pub problem: &'a Problem,
    pub budget: &'a Budget<'a>,
    pub actors: Actors<'a>,
    pub from: Nanos,
    pub to: Nanos,
    pub texts: Texts,
    pub left_out: Vec<String>,
}

/// Returns the interval with its margins, limited to the recorded time.
pub(super) fn span(recording: &Recording, problem: &Problem) -> (Nanos, Nanos) {
    let margin = Nanos(problem.latency().0 / MARGIN).max(MARGIN_MIN);
    let first = recording.complete_from().min(problem.start);
    let from = problem.start.before(margin).max(first);
    (from, problem.end.after(margin).min(recording.mark.max(problem.end)).max(from))
}

impl SceneStage<'_> {
    /// Converts a time to microseconds from the start of the page.
    pub(super) fn us(&self, at: Nanos) -> u64 {
        at.clamp(self.from, self.to).since(self.from).0 / 1_000
    }

    /// Creates bars from consecutive stretches; `text` maps the index of a stretch to its text.
    pub(super) fn bars(
        &mut self,
        stretches: &[Stretch],
        text: impl Fn(usize) -> String,
    ) -> Vec<Bar> {
        self.drawn(&thin(stretches, BARS_MAX), text)
    }

    /// Creates bars from stretches that may overlap, in order of their start. If there are too
    /// many, the longest in each short time is kept.
    pub(super) fn sparse(
        &mut self,
        stretches: &[Stretch],
        text: impl Fn(usize) -> String,
    ) -> Vec<Bar> {
        let step = self.to.since(self.from).0 / BARS_MAX as u64;
        self.drawn(&sparse(stretches, self.from, step, BARS_MAX), text)
    }

    fn drawn(&mut self, runs: &[StretchRun], text: impl Fn(usize) -> String) -> Vec<Bar> {
        let bars = runs.iter().map(|run| {
            let text = self.texts.number(&text(run.of));
            let (from_us, to_us) = (self.us(run.lo), self.us(run.hi));
            let percent = (run.share * 100.0).round().clamp(1.0, 100.0) as u8;
            Bar {
                from_us,
                length_us: to_us.saturating_sub(from_us),
                look: run.look,
                text,
                count: run.count,
                percent,
            }
        });
        bars.collect()
    }
}
