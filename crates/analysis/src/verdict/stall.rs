// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stalls: the owner of the CPU meanwhile, and the evidence from the hypervisor's counters.

use crate::explain::chain::{ChainPiece, Doing};
use crate::explain::describe::span_text;
use crate::explain::outsider::{accessed, all_at_once, outsider, outsider_words};
use crate::explain::partition::{BlameGroup, Budget, length};
use crate::explain::stolen;
use crate::explain::suspect::{Suspect, suspect};
use crate::model::Outsider;
use crate::timeline::recording::Recording;
use crate::timeline::silence::another_went_on;
use std::collections::BTreeMap;
use tipme_record::{Cpu, Nanos, Tid};

/// Minimum share of the CPUs' time taken by the hypervisor for a note in the verdict.
const SHARE_TOLD: f64 = 0.2;

/// Certainty of a stall contradicted by the counters.
const CERTAINTY_AGAINST: f64 = 0.6;

/// Certainty of a stall with an undecided owner of the CPU.
const CERTAINTY_UNDECIDED: f64 = 0.8;

/// Minimum stolen share of a stall for the hypervisor to confirm it.
const CONFIRMED_MIN: f64 = 0.1;

/// Returns the owner of the CPUs for most of the group's time.
pub(crate) fn taker(budget: &Budget<'_>, group: &BlameGroup) -> Outsider {
    let mut times: BTreeMap<Outsider, u64> = BTreeMap::new();
    for piece in budget.pieces(group) {
        let cpu = stolen::cpu(budget.recording, piece);
        let who = cpu
            .map_or(Outsider::Undecided, |cpu| outsider(budget.recording, cpu, piece.lo, piece.hi));
        *times.entry(who).or_default() += length(piece);
    }
    times.into_iter().max_by_key(|(_, nanos)| *nanos).map_or(Outsider::Undecided, |(who, _)| who)
}

/// Returns the local code that may have had the CPU of the longest piece, if the owner is
/// undecided.
fn suspected<'a>(
    budget: &Budget<'a>,
    group: &BlameGroup,
) -> Option<(Suspect, &'a ChainPiece, Cpu)> {
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    if taker(budget, group) != Outsider::Undecided {
        return None;
    }
    let cpu = stolen::cpu(budget.recording, longest)?;
    let undecided = outsider(budget.recording, cpu, longest.lo, longest.hi) == Outsider::Undecided;
    suspect(budget.recording, cpu, longest.lo, longest.hi)
        .filter(|_| undecided)
        .map(|suspect| (suspect, longest, cpu))
}

/// Returns the remedy if the owner is decided, or if local code is suspect.
pub(crate) fn remedy(budget: &Budget<'_>, group: &BlameGroup) -> Option<&'static str> {
    match taker(budget, group) {
        Outsider::Undecided if suspected(budget, group).is_some() => Some(
            "check the load of the hypervisor's host; if the same code is named again and again, check that code or its driver",
        ),
        Outsider::Hypervisor => {
            Some("check the load of the hypervisor's host; no software on this machine ran")
        }
        Outsider::Firmware => {
            Some("update the firmware (hwlatdetector measures it); no software on this machine ran")
        }
        Outsider::Device => Some("check the device and its driver: the kernel had to wait for it"),
        Outsider::Undecided => None,
    }
}

/// Describes the culprit's action; `waiters` could not run.
pub(crate) fn headline(budget: &Budget<'_>, group: &BlameGroup, waiters: &str) -> String {
    let longest = suspected(budget, group);
    let who = longest.map_or_else(
        || taker(budget, group).words(budget.recording).to_owned(),
        |(_, piece, cpu)| outsider_words(budget.recording, cpu, piece.lo, piece.hi),
    );
    let free = |piece: &&ChainPiece| matches!(piece.doing, Doing::Queued(Some(Tid(0))));
    let beside_free: u64 =
        budget.pieces(group).filter(free).map(length).fold(0, u64::saturating_add);
    if beside_free >= group.nanos / 2 {
        return format!("a free CPU did not run {waiters}: {who} held it");
    }
    format!("{who} took the CPU from {waiters}")
}

/// Returns the time for which the CPUs of the group's pieces took no interrupt although interrupts
/// were enabled.
fn away(budget: &Budget<'_>, group: &BlameGroup) -> Nanos {
    Nanos(
        budget
            .pieces(group)
            .filter_map(|piece| {
                let cpu = stolen::cpu(budget.recording, piece)?;
                Some(budget.recording.overdue.away(cpu, piece.lo, piece.hi).0)
            })
            .fold(0, u64::saturating_add),
    )
}

/// Describes the latest timer: `the timer of CPU 1 came 296 ms late, and found a program, which
/// cannot hold interrupts off: nothing ran there meanwhile`. If it interrupted the kernel, the
/// function is included, with a remark if that accesses a device.
pub(crate) fn overdue_line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    if let Some((who, piece, cpu)) = suspected(budget, group) {
        return Some(who.text(budget.recording, cpu, piece.lo));
    }
    let longest = budget
        .pieces(group)
        .filter_map(|piece| {
            let cpu = stolen::cpu(budget.recording, piece)?;
            budget.recording.overdue.longest_away(cpu, piece.lo, piece.hi)
        })
        .max_by_key(|one| one.late())?;
    let device = accessed(budget.recording, longest).map_or("", |_| ", which accesses a device");
    let function =
        longest.function(&budget.recording.names).map(|name| format!(" ({name}{device})"));
    let function = function.unwrap_or_default();
    let (cpu, late, found) = (longest.cpu, span_text(longest.late()), longest.found());
    Some(format!(
        "the timer of CPU {cpu} fired {late} late and interrupted {found}{function}: nothing ran there meanwhile"
    ))
}

/// Describes the hypervisor's steal count during the group's pieces.
pub(crate) fn line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let steal = &budget.recording.steal;
    let (lo, hi) = extent(budget, group)?;
    let stolen = steal.stolen(lo, hi)?;
    if !steal.is_accounted() {
        return Some("no hypervisor has reported stolen time since boot".to_owned());
    }
    if stolen == Nanos(0) {
        return Some("the hypervisor reported no stolen CPU time meanwhile".to_owned());
    }
    let percent = 100.0 * steal.share(lo, hi)?;
    let (stolen, span) = (span_text(stolen), span_text(hi.since(lo)));
    Some(format!(
        "the hypervisor reported {stolen} of stolen CPU time in these {span}: {percent:.0}% of all CPUs"
    ))
}

/// Describes the extent of the stall: the steal time that the kernel counted at its ticks, or the
/// activity of the other CPUs.
pub(crate) fn place_line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let recording = budget.recording;
    let counted = counted(budget, group);
    if counted.0 as f64 >= CONFIRMED_MIN * group.nanos as f64 {
        return Some(format!(
            "at its ticks the kernel counted {} of it as taken by the hypervisor",
            span_text(counted)
        ));
    }
    let longest = budget.pieces(group).max_by_key(|piece| length(piece))?;
    let (lo, hi) = (longest.lo, longest.hi);
    if all_at_once(recording, lo, hi) {
        return Some("no CPU ran anything meanwhile: all of them stopped at once".to_owned());
    }
    let went_on = another_went_on(recording, stolen::cpu(recording, longest)?, lo, hi);
    went_on.then(|| "other CPUs kept running: the whole machine did not stall".to_owned())
}

/// Returns the time that the kernel counted as stolen from the CPUs of the group's pieces.
fn counted(budget: &Budget<'_>, group: &BlameGroup) -> Nanos {
    Nanos(
        budget
            .pieces(group)
            .filter_map(|piece| {
                let cpu = stolen::cpu(budget.recording, piece)?;
                Some(budget.recording.withdrawals.taken(cpu, piece.lo, piece.hi).0)
            })
            .fold(0, u64::saturating_add),
    )
}

/// Returns the certainty of a stall and its owner.
pub(crate) fn certainty(budget: &Budget<'_>, group: &BlameGroup) -> f64 {
    let decided = taker(budget, group) != Outsider::Undecided;
    by_counters(budget, group).min(if decided { 1.0 } else { CERTAINTY_UNDECIDED })
}

/// Returns the certainty by the counters. It is reduced if a hypervisor that accounts stolen time
/// took none, or if others waited for a CPU without any steal count.
fn by_counters(budget: &Budget<'_>, group: &BlameGroup) -> f64 {
    let steal = &budget.recording.steal;
    let Some((lo, hi)) = extent(budget, group) else { return 1.0 };
    let confirmed =
        steal.stolen(lo, hi).map(|stolen| stolen.0 as f64 >= CONFIRMED_MIN * group.nanos as f64);
    let absent = counted(budget, group).max(away(budget, group));
    if absent.0 as f64 >= CONFIRMED_MIN * group.nanos as f64 {
        return 1.0;
    }
    let others = steal.waited(lo, hi).is_some_and(|waited| waited.0 / 2 >= group.nanos);
    match confirmed {
        Some(true) => 1.0,
        Some(false) if steal.is_accounted() => CERTAINTY_AGAINST,
        _ if others => CERTAINTY_AGAINST,
        _ => 1.0,
    }
}

/// Returns the start of the first and the end of the last of the group's pieces.
fn extent(budget: &Budget<'_>, group: &BlameGroup) -> Option<(Nanos, Nanos)> {
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    Some((lo, budget.pieces(group).map(|piece| piece.hi).max()?))
}

/// Returns the note for an interval in which the hypervisor took much.
pub(crate) fn note(recording: &Recording, lo: Nanos, hi: Nanos) -> Option<String> {
    let share = recording.steal.share(lo, hi).filter(|share| *share >= SHARE_TOLD)?;
    Some(format!("The hypervisor took {:.0}% of the CPUs' time in this interval.", 100.0 * share))
}
