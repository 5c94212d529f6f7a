// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval with some time before and after it, which all tracks share.

use crate::explain::partition::Budget;
use crate::scene::actors::Actors;
use crate::scene::lanes::{Stretch, StretchRun, sparse, thin};
use crate::scene::picture::Bar;
use crate::scene::texts::Texts;
use crate::timeline::recording::Recording;
use crate::verdict::problem::Problem;
use tipme_record::Nanos;

/// Bars of one track.
pub(super) const BARS_MAX: usize = 1_500;

/// Of its length, what is shown before and after the interval, and how much at least.
const MARGIN: u64 = 12;
const MARGIN_MIN: Nanos = Nanos::from_millis(20);

/// What tracks are made from.
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

/// The interval with its margins, as far as something is recorded.
pub(super) fn span(recording: &Recording, problem: &Problem) -> (Nanos, Nanos) {
    let margin = Nanos(problem.latency().0 / MARGIN).max(MARGIN_MIN);
    let first = recording.complete_from().min(problem.start);
    let from = problem.start.before(margin).max(first);
    (from, problem.end.after(margin).min(recording.mark.max(problem.end)).max(from))
}

impl SceneStage<'_> {
    /// A time as the page has it.
    pub(super) fn us(&self, at: Nanos) -> u64 {
        at.clamp(self.from, self.to).since(self.from).0 / 1_000
    }

    /// Bars of stretches that follow each other; the text is of what a stretch's maker knows it by.
    pub(super) fn bars(&mut self, stretches: &[Stretch], text: impl Fn(usize) -> String) -> Vec<Bar> {
        self.drawn(&thin(stretches, BARS_MAX), text)
    }

    /// Bars of stretches that may overlap, in the order of their begin: of too many, the longest of each short time.
    pub(super) fn sparse(&mut self, stretches: &[Stretch], text: impl Fn(usize) -> String) -> Vec<Bar> {
        let step = self.to.since(self.from).0 / BARS_MAX as u64;
        self.drawn(&sparse(stretches, self.from, step, BARS_MAX), text)
    }

    fn drawn(&mut self, runs: &[StretchRun], text: impl Fn(usize) -> String) -> Vec<Bar> {
        let bar = |run: &StretchRun| {
            let text = self.texts.number(&text(run.of));
            let (from_us, to_us) = (self.us(run.lo), self.us(run.hi));
            let percent = (run.share * 100.0).round().clamp(1.0, 100.0) as u8;
            Bar { from_us, length_us: to_us.saturating_sub(from_us), look: run.look, text, count: run.count, percent }
        };
        runs.iter().map(bar).collect()
    }
}
