// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explanations of the knobs of a process.

use crate::engine::{Engine, knob_of};
use crate::journal::{Cell, Log};
use crate::why::{Knob, SkipReason};
use crate::world::{KnobPlace, World};
use serde::{Deserialize, Serialize};
use tipme_policy::{Identity, Membership, Reason, Role, SetId};

/// Knobs of a process and their reasons.
#[derive(Clone, Debug)]
pub struct ProcessExplanation {
    /// `None` if the process only has inherited values, which will be restored.
    pub role: Option<RoleExplanation>,
    pub knobs: Vec<KnobState>,
    /// Knobs left alone, each with the reason.
    pub left: Vec<(Knob, SkipReason)>,
}

/// Reason for the role of a process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RoleExplanation {
    /// Set that gives the process its role.
    pub set: SetId,
    pub role: Role,
    pub reason: Reason,
    /// Reason for the membership in the set.
    pub because: Membership,
}

/// A changed knob with its baseline. Values are formatted for people.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KnobState {
    pub knob: Knob,
    pub baseline: String,
    pub applied: String,
    /// Present value in the kernel; `None` if the process or group is gone.
    pub present: Option<String>,
}

impl<W: World, L: Log> Engine<W, L> {
    pub(crate) fn explain(&self, who: Identity) -> Option<ProcessExplanation> {
        let Some(standing) = self.roles.get(&who) else {
            let knobs = self.inherited(who);
            return (!knobs.is_empty()).then_some(ProcessExplanation {
                role: None,
                knobs,
                left: Vec::new(),
            });
        };
        let assignment = self.sets.get(&standing.set)?;
        let member = assignment.members.iter().find(|member| member.who == who)?;
        let mut left = self.notes.left.get(&who).cloned().unwrap_or_default();
        let (knobs, changed): (Vec<_>, Vec<_>) =
            self.cells_of(who, standing.set).partition(|(place, cell)| self.holds(place, cell));
        for (place, cell) in changed {
            let why = self.state(place, cell).present.map(SkipReason::ChangedByOther);
            left.extend(why.map(|why| (knob_of(place), why)));
        }
        let (set, role, reason) = (standing.set, standing.role, assignment.reason.clone());
        Some(ProcessExplanation {
            role: Some(RoleExplanation { set, role, reason, because: member.because }),
            knobs: knobs
                .into_iter()
                .filter(is_turned)
                .map(|(place, cell)| self.state(place, cell))
                .chain(self.newly_inherited(who))
                .collect(),
            left: left.into_iter().collect(),
        })
    }

    /// Returns the knobs of the first thread of a process without a role: those changed together
    /// with another process, and inherited ones.
    fn inherited(&self, who: Identity) -> Vec<KnobState> {
        self.ledger
            .threads_of(who)
            .filter(|(place, cell)| is_first_thread(place, who) && self.holds(place, cell))
            .filter(is_turned)
            .map(|(place, cell)| self.state(place, cell))
            .chain(self.newly_inherited(who))
            .collect()
    }

    /// Returns inherited values of a process's first thread that have no cell yet.
    fn newly_inherited(&self, who: Identity) -> impl Iterator<Item = KnobState> {
        let ledger = &self.ledger;
        let inherited = ledger.marks().inherited(&ledger.world, who, |place| ledger.knows(place));
        inherited.into_iter().filter(move |(place, _)| is_first_thread(place, who)).filter_map(
            |(place, baseline)| {
                let applied = self.ledger.world.get(&place).ok()?;
                (applied != baseline)
                    .then(|| self.state(&place, &Cell { baseline, applied, ..Cell::default() }))
            },
        )
    }

    fn cells_of(&self, who: Identity, set: SetId) -> impl Iterator<Item = (&KnobPlace, &Cell)> {
        let group = self.subtree.as_ref().map(|subtree| format!("{}/", subtree.group(set)));
        let unit = self.units.as_ref().and_then(|units| units.own_unit(who));
        let autogroup = self.autogroups.get(&who);
        self.ledger.cells().filter(move |(place, _)| match place {
            KnobPlace::Thread { .. } => is_first_thread(place, who),
            KnobPlace::Member { process, .. } => *process == who,
            KnobPlace::Autogroup { number, .. } => {
                autogroup.is_some_and(|group| group.number == *number)
            }
            KnobPlace::File { path } => group.as_ref().is_some_and(|group| path.starts_with(group)),
            KnobPlace::Unit { folder, .. } => unit == Some(folder.as_str()),
            KnobPlace::Trace { .. }
            | KnobPlace::Controller { .. }
            | KnobPlace::Group { .. }
            | KnobPlace::Scope { .. } => false,
        })
    }

    /// Returns `true` if the place still has the applied value. An unreadable place counts as
    /// unchanged.
    fn holds(&self, place: &KnobPlace, cell: &Cell) -> bool {
        self.ledger.world.get(place).map_or(true, |present| cell.has_applied(&present))
    }

    fn state(&self, place: &KnobPlace, cell: &Cell) -> KnobState {
        KnobState {
            knob: knob_of(place),
            baseline: words(place, &cell.baseline),
            applied: words(place, &cell.applied),
            present: self.ledger.world.get(place).ok().map(|value| words(place, &value)),
        }
    }
}

/// Returns `true` for a knob of the first thread of this process.
fn is_first_thread(place: &KnobPlace, who: Identity) -> bool {
    matches!(place, KnobPlace::Thread { process, tid, .. } if *process == who && *tid == who.pid)
}

/// Returns `true` if the knob differs from its baseline. A remembered user wish changes nothing.
fn is_turned((_, cell): &(&KnobPlace, &Cell)) -> bool {
    cell.applied != cell.baseline
}

/// Formats a value for people: names of policies and classes, `max` for no limit.
pub(crate) fn words(place: &KnobPlace, value: &crate::world::Value) -> String {
    use crate::world::{ThreadKnob, Value};
    match (place, value) {
        (KnobPlace::Thread { knob: ThreadKnob::Scheduling, .. }, Value::Number(policy)) => {
            policy_name(*policy)
        }
        (KnobPlace::Thread { knob: ThreadKnob::Slice, .. }, Value::Number(0)) => {
            "as usual".to_owned()
        }
        (KnobPlace::Thread { knob: ThreadKnob::Slice, .. }, Value::Number(nanos)) => {
            format!("{} us", nanos / 1_000)
        }
        (KnobPlace::Thread { knob: ThreadKnob::Io, .. }, Value::Number(packed)) => io_name(*packed),
        (KnobPlace::File { .. }, Value::Number(-1)) => "max".to_owned(),
        (KnobPlace::Unit { .. }, Value::Number(-1)) => "not set".to_owned(),
        _ => value.to_string(),
    }
}

fn policy_name(policy: i64) -> String {
    match policy {
        0 => "other".to_owned(),
        1 => "fifo".to_owned(),
        2 => "round robin".to_owned(),
        3 => "batch".to_owned(),
        5 => "idle".to_owned(),
        6 => "deadline".to_owned(),
        other => format!("policy {other:#x}"),
    }
}

fn io_name(packed: i64) -> String {
    match (packed >> 13, packed & 0x1fff) {
        (0, _) => "none".to_owned(),
        (1, level) => format!("real time {level}"),
        (2, level) => format!("best effort {level}"),
        (3, _) => "idle".to_owned(),
        (class, level) => format!("class {class} level {level}"),
    }
}
