// SPDX-License-Identifier: MIT OR Apache-2.0
//! A repeat with its answers.

use super::joining::{Outcome, Part, by_reports, by_tap};
use super::milestones::{Milestones, milestones};
use super::waiting::{Activity, Waits, waits};
use anyhow::Result;
use std::path::Path;
use tipme_analysis::Recording;
use tipme_bench::measure::Repeat;
use tipme_command::incident::read;
use tipme_measure::{Answer, Class, Event, Join};
use tipme_record::Nanos;
use tipme_record::incident::{Meta, Section};

/// What happened, and which answer belongs to which input.
pub struct Judged {
    pub repeat: Repeat,
    /// One for each input.
    pub outcomes: Vec<Outcome>,
    /// One for each input.
    pub milestones: Vec<Milestones>,
    /// That of the start of the application, which is always timed by what was drawn.
    pub start: Event,
    pub waits: Waits,
}

impl Judged {
    /// Reads what was recorded, where it was, and joins. `threshold` is that of a class, in nanoseconds.
    pub fn of(repeat: Repeat, tap: bool, threshold: impl Fn(Class) -> u64) -> Result<Judged> {
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
        Ok(Judged { start: start(&repeat), repeat, outcomes, milestones, waits })
    }
}

fn start(repeat: &Repeat) -> Event {
    let started = repeat.started;
    let (first, settled) = (started.first.unwrap_or(started.focused).0, started.settled.0);
    let answer =
        Answer { input: started.begun.0, dequeued: None, first, settled, join: Join::Speculative, open: false };
    answer.event(Class::Start)
}

fn part(path: &Path, repeat: &Repeat) -> Result<(Part, Activity)> {
    let incident = read(path)?;
    let meta: Meta = incident.json(Section::Meta)?;
    let from = Nanos(meta.held_from_ns.max(meta.tainted_until_ns));
    let part = Part { from, mark: Nanos(meta.mark_ns), timed: tipme_analysis::timed(&incident)? };
    Ok((part, Activity::of(&Recording::read(&incident)?, &repeat.pids, repeat.display)))
}
