// SPDX-License-Identifier: MIT OR Apache-2.0
//! A repeat with its answers.

use super::joining::{InputOutcome, RecordedRepeat, by_reports, by_tap};
use super::milestones::{Milestones, milestones};
use super::waiting::{Activity, PhaseTimes, waits};
use anyhow::Result;
use std::path::Path;
use tipme_analysis::Recording;
use tipme_bench::measure::MeasureRepeat;
use tipme_command::incident::read;
use tipme_measure::{Answer, Event, EventJoin, InputClass};
use tipme_record::Nanos;
use tipme_record::incident::{Meta, Section};

/// A repeat, and the answer to each of its inputs.
pub struct JudgedInputs {
    pub repeat: MeasureRepeat,
    /// One for each input.
    pub outcomes: Vec<InputOutcome>,
    /// One for each input.
    pub milestones: Vec<Milestones>,
    /// Start of the application, always timed by drawings.
    pub start: Event,
    pub waits: PhaseTimes,
}

impl JudgedInputs {
    /// Reads the records, if there are any, and joins. `threshold` returns that of a class in
    /// nanoseconds.
    pub fn of(
        repeat: MeasureRepeat,
        tap: bool,
        threshold: impl Fn(InputClass) -> u64,
    ) -> Result<JudgedInputs> {
        let mut activity = Activity::default();
        let mut parts = Vec::new();
        let outcomes = if tap {
            for path in &repeat.incidents {
                let (part, of_part) = part(path, &repeat)?;
                parts.push(part);
                activity.add(of_part);
            }
            by_tap(&repeat.sent, &repeat.pids, &parts, &repeat.drawn, repeat.ended)
        } else {
            by_reports(&repeat.sent, &repeat.drawn, repeat.ended)
        };
        let milestones = milestones(&repeat.sent, &repeat.pids, &parts, repeat.ended);
        let waits = waits(&repeat, &outcomes, tap.then_some(activity), threshold);
        Ok(JudgedInputs { start: start(&repeat), repeat, outcomes, milestones, waits })
    }
}

fn start(repeat: &MeasureRepeat) -> Event {
    let started = repeat.started;
    let (first, settled) = (started.first.unwrap_or(started.focused).0, started.settled.0);
    let answer = Answer {
        input: started.begun.0,
        dequeued: None,
        first,
        settled,
        join: EventJoin::Speculative,
        open: false,
    };
    answer.event(InputClass::Start)
}

fn part(path: &Path, repeat: &MeasureRepeat) -> Result<(RecordedRepeat, Activity)> {
    let incident = read(path)?;
    let meta: Meta = incident.json(Section::Meta)?;
    let from = Nanos(meta.held_from_ns.max(meta.tainted_until_ns));
    let part = RecordedRepeat {
        from,
        mark: Nanos(meta.mark_ns),
        timed: tipme_analysis::timed(&incident)?,
    };
    Ok((part, Activity::of(&Recording::read(&incident)?, &repeat.pids)))
}
