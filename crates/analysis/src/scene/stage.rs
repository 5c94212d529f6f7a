// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interval with some time before and after it, which all tracks share.

use crate::explain::partition::Budget;
use crate::scene::actors::Actors;
use crate::scene::lanes::{Run, Stretch, thin};
use crate::scene::picture::Bar;
use crate::scene::texts::Texts;
use crate::timeline::recording::Recording;
use crate::verdict::problem::Problem;
use tipme_record::Nanos;

/// Bars of one track.
pub const BARS_MAX: usize = 1_500;

/// Of its length, what is shown before and after the interval, and how much at least.
const MARGIN: u64 = 12;
const MARGIN_MIN: Nanos = Nanos::from_millis(20);

/// What tracks are made from.
pub struct Stage<'a> {
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
pub fn span(recording: &Recording, problem: &Problem) -> (Nanos, Nanos) {
    let margin = Nanos(problem.latency().0 / MARGIN).max(MARGIN_MIN);
    let first = recording.complete_from().min(problem.start);
    let from = problem.start.before(margin).max(first);
    (from, problem.end.after(margin).min(recording.mark.max(problem.end)).max(from))
}

impl Stage<'_> {
    /// A time as the page has it.
    pub fn us(&self, at: Nanos) -> u64 {
        at.clamp(self.from, self.to).since(self.from).0 / 1_000
    }

    /// A bar by itself.
    pub fn bar(&mut self, stretch: &Stretch, text: &str) -> Bar {
        let (from_us, to_us) = (self.us(stretch.lo), self.us(stretch.hi));
        let text = self.texts.number(text);
        Bar { from_us, length_us: to_us - from_us, look: stretch.look, text, count: 1, percent: 100 }
    }

    /// Bars of stretches that follow each other, with their texts.
    pub fn bars(&mut self, stretches: &[Stretch], text: impl Fn(&Run) -> String) -> Vec<Bar> {
        let runs = thin(stretches, BARS_MAX);
        let bar = |run: Run| {
            let text = self.texts.number(&text(&run));
            let (from_us, to_us) = (self.us(run.lo), self.us(run.hi));
            let percent = (run.share * 100.0).round().clamp(1.0, 100.0) as u8;
            Bar { from_us, length_us: to_us - from_us, look: run.look, text, count: run.count, percent }
        };
        runs.into_iter().map(bar).collect()
    }

    /// Bars that may overlap: of too many, the longest of each short time.
    pub fn sparse(&mut self, stretches: Vec<(Stretch, String)>) -> Vec<Bar> {
        let all = stretches.len();
        let step = (self.to.since(self.from).0 / BARS_MAX as u64).max(1);
        let mut kept: Vec<(Stretch, String, usize)> = Vec::new();
        for (stretch, text) in stretches {
            let place = |lo: Nanos| lo.since(self.from).0 / step;
            match kept.last_mut().filter(|(last, ..)| all > BARS_MAX && place(last.lo) == place(stretch.lo)) {
                Some((last, told, count)) => {
                    *count += 1;
                    if stretch.hi.since(stretch.lo) > last.hi.since(last.lo) {
                        (*last, *told) = (stretch, text);
                    }
                }
                None => kept.push((stretch, text, 1)),
            }
        }
        kept.iter().map(|(stretch, text, count)| Bar { count: *count, ..self.bar(stretch, text) }).collect()
    }
}
