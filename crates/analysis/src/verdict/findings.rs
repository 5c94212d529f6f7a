// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings: ranked causes of the excess, each with its evidence.

use crate::explain::chain::Doing;
use crate::explain::limits::{self};
use crate::explain::load::{self};
use crate::explain::partition::{BlameGroup, BlameOwner, Budget, length};
use crate::explain::periods;
use crate::model::{CauseKind, Culprit, Finding, Outsider};
use crate::verdict::causes::{Cause, resolve};
use crate::verdict::culprits::{culprit, other_waiter, target};
use crate::verdict::problem::Problem;
use crate::verdict::remedy::Waiting;
use crate::verdict::trust::of_cause;
use crate::verdict::{competition, detail, feeder, groups, remedy, session, stall, stopped};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::{Nanos, Pid};

/// Minimum share and length of a finding; smaller ones explain nothing that a user feels.
const SHARE_MIN: f64 = 0.05;
const LENGTH_MIN: Nanos = Nanos::from_millis(5);

/// Minimum share of the excess that all causes together must explain. Below it, a finding would
/// blame a process for a mere part.
const EXPLAINED_MIN: f64 = 0.5;

/// Returns the findings of a problem, the largest first. `trust` is the confidence in the interval
/// as a whole.
///
/// A mark by the user is evidence that something took too long, so a long delay is explained even
/// if it is not unusual. An automatic mark requires an unusual cause.
pub(crate) fn findings(budget: &Budget<'_>, problem: &Problem, trust: f64) -> Vec<Finding> {
    if !problem.exceeded() {
        return Vec::new();
    }
    let groups = without_normal(budget, problem);
    let mut causes: Vec<Cause> = Vec::new();
    for group in groups.into_iter().filter(|group| group.kind != CauseKind::Unattributed) {
        merge(&mut causes, resolve(budget, group));
    }
    let (mut weighty, light): (Vec<Cause>, Vec<Cause>) =
        causes.into_iter().partition(|cause| weighty(cause, problem));
    weighty.extend(gather(light).into_iter().filter(|cause| self::weighty(cause, problem)));
    let of_kind = totals(&weighty);
    weighty.sort_by_key(|cause| {
        std::cmp::Reverse((of_kind.get(&cause.group.kind).copied(), cause.group.nanos))
    });
    // A command or a prompt was held up by its own wait; competition for the CPU delayed all of
    // that.
    weighty.sort_by_key(|cause| !is_held_up(cause, problem));
    let unusual = is_unusual(budget, problem, &weighty);
    if !unusual && (budget.recording.is_marked_automatically() || is_idle(budget)) {
        return Vec::new();
    }
    weighty.into_iter().map(|cause| account(budget, problem, cause, trust, unusual)).collect()
}

/// Returns the finding of a cause. A command that did nothing unusual is not held up by its own
/// work.
fn account(
    budget: &Budget<'_>,
    problem: &Problem,
    cause: Cause,
    trust: f64,
    unusual: bool,
) -> Finding {
    let kind = cause.group.kind;
    let did_its_work = !unusual
        && problem.is_command()
        && !problem.is_start()
        && is_ordinary(kind)
        && !is_by_others(kind);
    let finding = finding(budget, problem, cause, trust);
    let remedy = match kind {
        CauseKind::TimerSleep if did_its_work => remedy::OF_SLEEPING_COMMAND.to_owned(),
        _ if did_its_work => remedy::OF_COMMAND.to_owned(),
        _ => finding.remedy,
    };
    Finding { unusual, remedy, ..finding }
}

/// Returns `true` if known causes explain most of a delay and are not merely expected.
fn is_unusual(budget: &Budget<'_>, problem: &Problem, causes: &[Cause]) -> bool {
    let explained = causes.iter().map(|cause| share(cause.group.nanos, problem)).sum::<f64>();
    let expected = is_left_aside(budget, problem)
        && !causes.first().is_some_and(|cause| holds_up(cause, problem));
    explained >= EXPLAINED_MIN && !expected
}

/// Returns `true` if the threads on the chain waited for their next event for most of the interval:
/// no thread was working on an answer.
fn is_idle(budget: &Budget<'_>) -> bool {
    let (mut idle, mut whole) = (0_u64, 0_u64);
    for (piece, blame) in budget.chain.pieces.iter().zip(&budget.blames) {
        whole = whole.saturating_add(length(piece));
        if blame.kind == CauseKind::Unattributed && matches!(piece.doing, Doing::Waited(..)) {
            idle = idle.saturating_add(length(piece));
        }
    }
    idle.saturating_mul(2) >= whole
}

/// Sums up the time of all causes by kind: many jobs together may outweigh every other kind.
fn totals(causes: &[Cause]) -> BTreeMap<CauseKind, u64> {
    let mut totals: BTreeMap<CauseKind, u64> = BTreeMap::new();
    for cause in causes {
        let total = totals.entry(cause.group.kind).or_default();
        *total = total.saturating_add(cause.group.nanos);
    }
    totals
}

/// Merges light causes of one kind into the heaviest of them: many jobs together may have an effect
/// that none has alone.
fn gather(mut light: Vec<Cause>) -> Vec<Cause> {
    light.sort_by_key(|cause| std::cmp::Reverse(cause.group.nanos));
    let mut gathered: Vec<Cause> = Vec::new();
    for cause in light {
        match gathered.iter_mut().find(|known| known.group.kind == cause.group.kind) {
            Some(known) => {
                known.group.nanos = known.group.nanos.saturating_add(cause.group.nanos);
                known.others += 1;
            }
            None => gathered.push(cause),
        }
    }
    gathered.into_iter().map(with_others).collect()
}

fn with_others(mut cause: Cause) -> Cause {
    if cause.others > 0 {
        let first = cause.evidence.first().map_or("", String::as_str);
        cause.evidence =
            vec![format!("{first}, and {} other jobs with smaller shares", cause.others)];
        cause.frames.clear();
    }
    cause
}

/// Returns `true` for commands, which may take their time. A program that handles the keys of its
/// terminal itself may run a typed command or hang on a key: a mark by the user means the latter.
fn is_left_aside(budget: &Budget<'_>, problem: &Problem) -> bool {
    problem.is_command()
        && (!problem.is_done_itself() || budget.recording.is_marked_automatically())
}

/// Returns `true` if something held a command up for most of its time. Computing, sleeping and
/// running other programs is the work of a command.
fn holds_up(cause: &Cause, problem: &Problem) -> bool {
    let unowed = cause.group.kind == CauseKind::PeerWait && groups::is_unowed(&cause.group);
    !is_ordinary(cause.group.kind)
        && !unowed
        && cause.group.nanos.saturating_mul(2) >= problem.latency().0
}

/// Returns `true` if a command, or a shell at its prompt, waited for a cause for at least a third
/// of its time. The programs that a prompt runs count as well.
fn is_held_up(cause: &Cause, problem: &Problem) -> bool {
    let kind = cause.group.kind;
    let holds = if problem.is_prompt() {
        !is_by_others(kind)
    } else {
        problem.is_command() && !is_ordinary(kind)
    };
    holds && cause.group.nanos.saturating_mul(3) >= problem.latency().0
}

/// Returns `true` if others had the CPU, which delays any work.
fn is_by_others(kind: CauseKind) -> bool {
    matches!(kind, CauseKind::CpuCompetition | CauseKind::Interrupt)
}

/// Returns `true` for kinds that are normal activity of a command.
fn is_ordinary(kind: CauseKind) -> bool {
    use CauseKind::{ChildWait, CpuCompetition, Interrupt, OwnComputation, TimerSleep};
    matches!(kind, ChildWait | OwnComputation | TimerSleep | CpuCompetition | Interrupt)
}

fn weighty(cause: &Cause, problem: &Problem) -> bool {
    cause.group.nanos >= LENGTH_MIN.0 && share(cause.group.nanos, problem) >= SHARE_MIN
}

fn share(nanos: u64, problem: &Problem) -> f64 {
    (nanos as f64 / problem.excess.0.max(1) as f64).min(1.0)
}

/// Subtracts the usual time of an interaction from the application's own work.
fn without_normal(budget: &Budget<'_>, problem: &Problem) -> Vec<BlameGroup> {
    let mut normal = problem.latency().since(problem.excess).0;
    let mut groups = budget.groups();
    with_requests(budget, &mut groups);
    for group in groups.iter_mut().filter(|group| group.kind == CauseKind::OwnComputation) {
        let usual = normal.min(group.nanos);
        group.nanos -= usual;
        normal -= usual;
    }
    groups
}

/// Moves the CPU time that a program spent on submitting requests to a device to its waits for the
/// device.
fn with_requests(budget: &Budget<'_>, groups: &mut [BlameGroup]) {
    let made: Vec<(Option<Pid>, u64)> =
        groups.iter().map(|group| load::made_by(budget, group)).collect();
    for index in 0..groups.len() {
        let (waiter, nanos) = made[index];
        let waits = |group: &&mut BlameGroup| {
            matches!(group.owner, BlameOwner::Device(_)) && groups::waiter(budget, group) == waiter
        };
        // The largest comes first.
        if let Some(waits) = groups.iter_mut().find(waits).filter(|_| nanos > 0) {
            waits.nanos = waits.nanos.saturating_add(nanos);
            groups[index].nanos -= nanos;
        }
    }
}

fn merge(causes: &mut Vec<Cause>, cause: Cause) {
    match causes.iter_mut().find(|known| known.is_same(&cause)) {
        Some(known) => {
            if cause.group.nanos > known.group.nanos {
                (known.evidence, known.frames, known.remedy) =
                    (cause.evidence, cause.frames, cause.remedy);
                known.others = cause.others;
            }
            known.group.nanos = known.group.nanos.saturating_add(cause.group.nanos);
            known.group.members.merge(&cause.group.members);
        }
        None => causes.push(cause),
    }
}

fn finding(budget: &Budget<'_>, problem: &Problem, cause: Cause, trust: f64) -> Finding {
    let tasks = &budget.recording.tasks;
    let (kind, group) = (cause.group.kind, &cause.group);
    let limit = limits::limit_of(budget, group).filter(|_| kind == CauseKind::CpuThrottled);
    let culprit = culprit(budget, problem, group, limit);
    let remedy = match (&cause.remedy, limit) {
        (Some(remedy), _) => remedy.clone(),
        (None, Some(limit)) => remedy::of_limit(limit),
        (None, None) => remedy(budget, problem, group, &culprit),
    };
    let remedy = remedy + &remedy::for_others(kind, cause.others);
    let period = periods::of(budget, group);
    let waiter = other_waiter(budget, problem, group);
    let hint = detail::hint(budget, group, cause.certainty);
    let share = share(group.nanos, problem);
    let mut seen = BTreeSet::new();
    let lines = cause.evidence.into_iter().chain(period.map(|period| period.text())).chain(hint);
    Finding {
        kind,
        culprit,
        waiter: waiter.map_or_else(String::new, |pid| tasks.comm(pid, problem.end)),
        within: waiter
            .is_some_and(|pid| budget.judge.is_family(pid) && !budget.judge.is_of_command(pid)),
        unusual: true,
        unowed: is_unowed(budget, group),
        signalled: groups::is_signalled(budget, group),
        held_by_own_thread: groups::is_held_by_own_thread(budget, group),
        kept_at_work: cause.kept_at_work,
        ms: Nanos(group.nanos).millis(),
        share,
        confidence: of_cause(trust, cause.certainty, share),
        evidence: lines.filter(|line| seen.insert(line.clone())).collect(),
        frames: cause.frames,
        remedy,
        outsider: outsider(budget, group),
        others: cause.others,
        period_s: period.map(|period| period.seconds()),
    }
}

/// Returns `true` if no process is known to owe the answer or to hold the lock, or if the waiter
/// itself holds the kernel lock.
fn is_unowed(budget: &Budget<'_>, group: &BlameGroup) -> bool {
    groups::is_unowed(group)
        || group.kind == CauseKind::KernelLock && groups::is_held_by_waiter(budget, group)
}

fn outsider(budget: &Budget<'_>, group: &BlameGroup) -> Option<Outsider> {
    (group.kind == CauseKind::Stall).then(|| stall::taker(budget, group))
}

/// Returns the remedy for a cause without one of its own: the most specific one.
fn remedy(budget: &Budget<'_>, problem: &Problem, group: &BlameGroup, culprit: &Culprit) -> String {
    let awaited = budget.judge.awaited();
    let app = budget.recording.tasks.comm(awaited, problem.end);
    let target = target(budget, problem, group, culprit);
    let itself = groups::waiter(budget, group) == Some(problem.client) && !problem.goes_on();
    let waiting = Waiting { app: &app, itself };
    competition::remedy(budget, group, &target, waiting)
        .or_else(|| of_process(budget, problem, group, culprit))
        .or_else(|| match group.kind {
            CauseKind::Stopped => stopped::remedy(budget, group, culprit),
            _ => None,
        })
        .or_else(|| feeder::remedy(budget, group))
        .or_else(|| {
            outsider(budget, group).and_then(|_| stall::remedy(budget, group)).map(str::to_owned)
        })
        .or_else(|| groups::keeps_open(budget, group).then(|| remedy::OF_KEPT_PIPE.to_owned()))
        .or_else(|| match group.kind {
            _ if !is_unowed(budget, group) => None,
            CauseKind::LockWait => Some(remedy::OF_UNKNOWN_HOLDER.to_owned()),
            _ => Some(remedy::of_unowed(&app, awaited)),
        })
        .or_else(|| groups::is_signalled(budget, group).then(|| remedy::of_signalled(&target)))
        .or_else(|| session::remedy(budget, group.kind, &target))
        .unwrap_or_else(|| remedy::of(group.kind, &target, waiting, &budget.recording.tasks))
}

/// Returns the remedy against a process that a prompt runs, or that shares its address space with
/// the waiter.
fn of_process(
    budget: &Budget<'_>,
    problem: &Problem,
    group: &BlameGroup,
    culprit: &Culprit,
) -> Option<String> {
    let comm = match culprit {
        Culprit::Process { comm, .. } => comm,
        Culprit::Device { .. } | Culprit::Address { .. } => return None,
    };
    match group.kind {
        CauseKind::ChildWait if problem.is_prompt() => Some(remedy::of_prompt(comm)),
        CauseKind::KernelLock if groups::is_for_address_space(budget, group) => {
            Some(remedy::of_address_space(comm))
        }
        _ => None,
    }
}
