// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings: ranked causes of the excess, each with its evidence.

use crate::explain::chain::Doing;
use crate::explain::describe::address_text;
use crate::explain::io_limits;
use crate::explain::jobs::{Job, Members};
use crate::explain::limits::{self, QuotaUser};
use crate::explain::load::{self, Requests};
use crate::explain::partition::{BlameGroup, BlameOwner, Budget, length};
use crate::explain::periods;
use crate::model::{CauseKind, Culprit, Finding};
use crate::timeline::throttle::QuotaGroup;
use crate::verdict::competition;
use crate::verdict::detail;
use crate::verdict::evidence;
use crate::verdict::problem::Problem;
use crate::verdict::remedy::Waiting;
use crate::verdict::stall;
use crate::verdict::trust::of_cause;
use crate::verdict::{feeder, remedy, session, stopped};
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::{Device, Nanos, Pid, Tid};

/// Minimum share and length of a finding; smaller ones explain nothing that a user feels.
const SHARE_MIN: f64 = 0.05;
const LENGTH_MIN: Nanos = Nanos::from_millis(5);

/// Minimum share of the excess that all causes together must explain. Below it, a finding would
/// blame a process for a mere part.
const EXPLAINED_MIN: f64 = 0.5;

/// Minimum number of own requests, and maximum time of each, for a device to count as fast.
const MANY_REQUESTS: u64 = 16;
const QUICK_REQUEST: Nanos = Nanos::from_millis(2);

/// Certainty that I/O was held back if the device was idle.
const HELD_BACK: f64 = 0.9;

/// Certainty that the busiest writer wrote the awaited data: the device of a write is not recorded.
const WRITER: f64 = 0.7;

/// Blame group with the results of its examination.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    pub group: BlameGroup,
    /// The first line names culprit and action.
    pub evidence: Vec<String>,
    /// Kernel functions of the wait in the evidence.
    pub frames: Vec<String>,
    /// Certainty of the kind, apart from the interval as a whole; 0 to 1.
    pub certainty: f64,
    /// Number of other jobs that did the same, each with less.
    pub others: usize,
    /// Specific remedy that replaces the one by kind and culprit.
    pub remedy: Option<String>,
    /// The culprit kept the computing program busy.
    pub kept_at_work: bool,
}

impl Cause {
    fn new(budget: &Budget<'_>, group: BlameGroup, evidence: Vec<String>, certainty: f64) -> Cause {
        let frames = evidence::kernel_frames(budget, &group);
        Cause { group, evidence, frames, certainty, others: 0, remedy: None, kept_at_work: false }
    }
}

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
    let account = |cause: Cause| {
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
    };
    weighty.into_iter().map(account).collect()
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
    let idle = |doing: &Doing| matches!(doing, Doing::Waited(..));
    let pieces = || budget.chain.pieces.iter().zip(&budget.blames);
    let open = pieces()
        .filter(|(piece, blame)| blame.kind == CauseKind::Unattributed && idle(&piece.doing));
    let idle: u64 = open.map(|(piece, _)| length(piece)).fold(0, u64::saturating_add);
    let whole: u64 = pieces().map(|(piece, _)| length(piece)).fold(0, u64::saturating_add);
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
        cause.evidence = vec![format!("{first}, and {} other jobs with less each", cause.others)];
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
    let unowed = cause.group.kind == CauseKind::PeerWait && evidence::is_unowed(&cause.group);
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
            matches!(group.owner, BlameOwner::Device(_))
                && evidence::waiter(budget, group) == waiter
        };
        // The largest comes first.
        if let Some(waits) = groups.iter_mut().find(waits).filter(|_| nanos > 0) {
            waits.nanos = waits.nanos.saturating_add(nanos);
            groups[index].nanos -= nanos;
        }
    }
}

/// Finds the job behind a device, a memory shortage or a quota.
fn resolve(budget: &Budget<'_>, mut group: BlameGroup) -> Cause {
    match (&group.owner, group.kind) {
        (_, CauseKind::KernelLock) if evidence::awaited_thaw(budget, &group).is_some() => {
            frozen(budget, group)
        }
        (BlameOwner::Device(device), _) => {
            let device = *device;
            let idle = device.and_then(|device| load::idle_meanwhile(budget, &group, device));
            if let Some(idle) = idle {
                return held_back(budget, group, device, idle);
            }
            let load = load::load(budget, &group, device);
            let evidence = evidence::disk(budget, &group, device, &load);
            match load.other {
                Some((job, requests)) => {
                    let (rest, of_rest) = load.rest;
                    let others = if of_rest.weight() > requests.weight() { rest } else { 0 };
                    (group.owner, group.members) = (BlameOwner::Job(job), requests.members);
                    Cause { others, ..Cause::new(budget, group, evidence, 1.0) }
                }
                None => evicted(budget, group, evidence, &load.own),
            }
        }
        (_, CauseKind::Reclaim) => reclaim(budget, group),
        (_, CauseKind::CpuThrottled) => throttled(budget, group),
        (_, CauseKind::CpuCompetition)
            if let Some((fed, line)) = feeder::behind_server(budget, &group) =>
        {
            Cause::new(budget, fed, vec![line], 1.0)
        }
        _ => {
            let evidence = evidence::of(budget, &group);
            let certainty = certainty(budget, &group);
            let fed = feeder::behind_computation(budget, &group);
            let Some(fed) = fed else { return Cause::new(budget, group, evidence, certainty) };
            let lines = feeder::line(budget, &fed).into_iter().chain(evidence).collect();
            Cause { kept_at_work: true, ..Cause::new(budget, fed, lines, certainty) }
        }
    }
}

fn certainty(budget: &Budget<'_>, group: &BlameGroup) -> f64 {
    match group.kind {
        CauseKind::Stall => stall::certainty(budget, group),
        _ => 1.0,
    }
}

/// Creates the cause for an idle device: the culprit is the job with the missing I/O, and the
/// evidence lists the limits that its control groups reached. Without a reached limit the reason is
/// not known.
fn held_back(
    budget: &Budget<'_>,
    mut group: BlameGroup,
    device: Option<Device>,
    idle: Nanos,
) -> Cause {
    let is_kernel =
        |tid, at| budget.recording.tasks.life(tid, at).is_some_and(|life| life.is_kernel());
    let longest =
        budget.pieces(&group).max_by_key(|piece| (!is_kernel(piece.tid, piece.lo), length(piece)));
    let Some((tid, at)) = longest.map(|piece| (piece.tid, piece.lo)) else {
        return Cause::new(budget, group, Vec::new(), HELD_BACK);
    };
    let throttled = budget.pieces(&group).any(load::is_throttled);
    let writer = load::writer_for_all(budget, &group);
    let threads = [Some(tid), writer.filter(|_| throttled)].into_iter().flatten();
    let mut limits = threads.map(|tid| io_limits::reached(budget, &group, device, (tid, at)));
    let limits = limits.find(|limits| !limits.is_empty()).unwrap_or_default();
    let certainty = if writer.is_some() && !throttled { WRITER } else { HELD_BACK };
    let tid = writer.unwrap_or(tid);
    (group.kind, group.owner) = (CauseKind::IoHeldBack, BlameOwner::Job(budget.jobs.of(tid, at)));
    group.members = Members::default();
    group.members.add(budget.recording.tasks.pid(tid, at), group.nanos);
    let evidence = evidence::held_back(budget, &group, device, idle, &limits);
    let remedy = limits
        .first()
        .map(|limit| remedy::of_io_limit(limit, &io_limits::amount(budget.recording, limit)));
    Cause { remedy, ..Cause::new(budget, group, evidence, certainty) }
}

/// Creates the cause for a device with hardly any foreign requests. If another job took the memory
/// of the pages, that job is the culprit.
fn evicted(
    budget: &Budget<'_>,
    mut group: BlameGroup,
    mut evidence: Vec<String>,
    own: &Requests,
) -> Cause {
    let read = matches!(group.kind, CauseKind::PageIn | CauseKind::DiskQueue | CauseKind::SwapIn);
    let throttled = budget.pieces(&group).any(load::is_throttled);
    let Some(taker) = load::evictor(budget, &group).filter(|_| read && !throttled) else {
        let remedy = many_requests(budget, &group, own);
        return Cause { remedy, ..Cause::new(budget, group, evidence, 0.8) };
    };
    let at = budget.pieces(&group).map(|piece| piece.hi).max().unwrap_or_default();
    evidence.insert(0, evidence::evictor(budget, &group, taker, at));
    group.owner = BlameOwner::Job(budget.jobs.of(taker, at));
    group.members = Members::default();
    group.members.add(budget.recording.tasks.pid(taker, at), 1);
    Cause::new(budget, group, evidence, 0.7)
}

/// Returns the remedy if the number of the application's own requests is the problem, and not the
/// device.
fn many_requests(budget: &Budget<'_>, group: &BlameGroup, own: &Requests) -> Option<String> {
    let waiter = evidence::waiter(budget, group)?;
    let count = own.reads + own.writes;
    let each = Nanos(group.nanos / count.max(1));
    let app =
        budget.recording.tasks.comm(waiter, budget.pieces(group).map(|piece| piece.lo).min()?);
    (count >= MANY_REQUESTS && each <= QUICK_REQUEST)
        .then(|| remedy::of_many_requests(group.kind, own.writes > own.reads, &app, each))
}

/// Blames the device of a frozen file system: it blocks all writers, whichever process froze it.
fn frozen(budget: &Budget<'_>, mut group: BlameGroup) -> Cause {
    let evidence = evidence::of(budget, &group);
    group.owner = BlameOwner::Device(evidence::frozen_device(budget, &group));
    Cause { remedy: Some(remedy::OF_FROZEN.to_owned()), ..Cause::new(budget, group, evidence, 1.0) }
}

fn reclaim(budget: &Budget<'_>, mut group: BlameGroup) -> Cause {
    if let Some(waiter) = evidence::at_memory_limit(budget, &group) {
        let mut evidence = evidence::of(budget, &group);
        let comm = budget.recording.tasks.comm(waiter, budget.end());
        evidence[0] = format!(
            "{comm} (pid {waiter}) waited until its control group had less memory than it is allowed"
        );
        group.owner = BlameOwner::Device(None);
        return Cause {
            remedy: Some(remedy::of_memory_limit(waiter)),
            ..Cause::new(budget, group, evidence, 1.0)
        };
    }
    let spans: Vec<_> = budget.pieces(&group).map(|piece| (piece.lo, piece.hi)).collect();
    let lo = spans.iter().map(|span| span.0).min().unwrap_or_default();
    let hi = spans.iter().map(|span| span.1).max().unwrap_or_default();
    let waiter = budget.pieces(&group).next().map_or(Tid(0), |piece| piece.tid);
    let taker = load::memory_taker(budget, waiter, lo, hi);
    if let Some(taker) = taker {
        group.owner = BlameOwner::Job(budget.jobs.of(taker, hi));
        group.members = Members::default();
        group.members.add(budget.recording.tasks.pid(taker, hi), 1);
    }
    let evidence = evidence::of(budget, &group);
    Cause::new(budget, group, evidence, if taker.is_some() { 0.9 } else { 0.6 })
}

/// Blames the job that used at least half of the quota, or else the throttled process.
fn throttled(budget: &Budget<'_>, mut group: BlameGroup) -> Cause {
    let user = limits::user_of(budget, &group);
    let other =
        |user: &&QuotaUser| user.is_main() && group.owner != BlameOwner::Job(user.job.clone());
    if let Some(user) = user.as_ref().filter(other) {
        (group.owner, group.members) = (BlameOwner::Job(user.job.clone()), user.members.clone());
    }
    let mut evidence = evidence::of(budget, &group);
    evidence.extend(user.map(|user| user.text(budget)));
    Cause::new(budget, group, evidence, 1.0)
}

fn merge(causes: &mut Vec<Cause>, cause: Cause) {
    let key = |cause: &Cause| (cause.group.kind, cause.group.owner.clone(), cause.kept_at_work);
    let same = |known: &&mut Cause| key(known) == key(&cause);
    match causes.iter_mut().find(same) {
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
    let limit = limits::limit_of(budget, &cause.group)
        .filter(|_| cause.group.kind == CauseKind::CpuThrottled);
    let culprit = culprit(budget, problem, &cause.group, limit);
    let awaited = budget.judge.awaited();
    let app = budget.recording.tasks.comm(awaited, problem.end);
    let target = target(budget, problem, &cause.group, &culprit);
    let itself =
        evidence::waiter(budget, &cause.group) == Some(problem.client) && !problem.goes_on();
    let waiting = Waiting { app: &app, itself };
    let remedy = cause.remedy.or_else(|| limit.map(remedy::of_limit));
    let remedy = remedy.or_else(|| competition::remedy(budget, &cause.group, &target, waiting));
    let held = || {
        stopped::remedy(budget, &cause.group, &culprit)
            .filter(|_| cause.group.kind == CauseKind::Stopped)
    };
    let fed = || feeder::remedy(budget, &cause.group);
    let usual = || {
        let of_session = session::remedy(budget, cause.group.kind, &target);
        of_session.unwrap_or_else(|| {
            remedy::of(cause.group.kind, &target, waiting, &budget.recording.tasks)
        })
    };
    let outsider =
        (cause.group.kind == CauseKind::Stall).then(|| stall::taker(budget, &cause.group));
    let away = || outsider.and_then(|_| stall::remedy(budget, &cause.group)).map(str::to_owned);
    let signalled =
        || evidence::is_signalled(budget, &cause.group).then(|| remedy::of_signalled(&target));
    let particular = || of_process(budget, problem, &cause.group, &culprit);
    let kept =
        || evidence::keeps_open(budget, &cause.group).then(|| remedy::OF_KEPT_PIPE.to_owned());
    let is_unowed = evidence::is_unowed(&cause.group)
        || cause.group.kind == CauseKind::KernelLock
            && evidence::is_held_by_waiter(budget, &cause.group);
    let unowed = || match cause.group.kind {
        _ if !is_unowed => None,
        CauseKind::LockWait => Some(remedy::OF_UNKNOWN_HOLDER.to_owned()),
        _ => Some(remedy::of_unowed(&app, awaited)),
    };
    let remedy = remedy
        .or_else(particular)
        .or_else(held)
        .or_else(fed)
        .or_else(away)
        .or_else(kept)
        .or_else(unowed)
        .or_else(signalled)
        .unwrap_or_else(usual);
    let remedy = remedy + &remedy::for_others(cause.group.kind, cause.others);
    let period = periods::of(budget, &cause.group);
    let waiter = other_waiter(budget, problem, &cause.group);
    let mut seen = BTreeSet::new();
    let hint = detail::hint(budget, &cause.group, cause.certainty);
    let lines = cause.evidence.into_iter().chain(period.map(|period| period.text())).chain(hint);
    let evidence = lines.filter(|line| seen.insert(line.clone())).collect();
    let share = share(cause.group.nanos, problem);
    Finding {
        kind: cause.group.kind,
        culprit,
        waiter: waiter
            .map_or_else(String::new, |pid| budget.recording.tasks.comm(pid, problem.end)),
        within: waiter
            .is_some_and(|pid| budget.judge.is_family(pid) && !budget.judge.is_of_command(pid)),
        unusual: true,
        unowed: is_unowed,
        signalled: evidence::is_signalled(budget, &cause.group),
        held_by_own_thread: evidence::is_held_by_own_thread(budget, &cause.group),
        kept_at_work: cause.kept_at_work,
        ms: Nanos(cause.group.nanos).millis(),
        share,
        confidence: of_cause(trust, cause.certainty, share),
        evidence,
        frames: cause.frames,
        remedy,
        outsider,
        others: cause.others,
        period_s: period.map(|period| period.seconds()),
    }
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
        CauseKind::KernelLock if evidence::is_for_address_space(budget, group) => {
            Some(remedy::of_address_space(comm))
        }
        _ => None,
    }
}

fn culprit(
    budget: &Budget<'_>,
    problem: &Problem,
    group: &BlameGroup,
    limit: Option<&QuotaGroup>,
) -> Culprit {
    match &group.owner {
        BlameOwner::Job(job) => {
            let (mut pid, job_name) = budget.jobs.face(job, &group.members);
            if group.kind == CauseKind::ChildWait && evidence::waiter(budget, group) == Some(pid) {
                // With many children none stands out, and the job is that of the waiter.
                pid = group.members.main().map_or(pid, |(child, _)| child);
            }
            let job_name = limit.map(QuotaGroup::text).or(job_name);
            process(budget, problem, pid, job_name.or_else(|| kernel_name(job)))
        }
        BlameOwner::Device(device) if group.kind == CauseKind::KernelLock => Culprit::Device {
            device: format!("the frozen file system on {}", evidence::device_name(budget, *device)),
        },
        BlameOwner::Device(_) if group.kind == CauseKind::Reclaim => {
            let waiter = evidence::waiter(budget, group)
                .map(|pid| budget.recording.tasks.comm(pid, problem.end));
            let device =
                format!("the memory limit of the control group of {}", waiter.unwrap_or_default());
            Culprit::Device { device }
        }
        BlameOwner::Device(device) => {
            Culprit::Device { device: evidence::device_name(budget, *device) }
        }
        BlameOwner::Address(address, port) => {
            Culprit::Address { address: address_text(*address, *port) }
        }
        BlameOwner::Interrupt(source) => {
            Culprit::Device { device: source.name(&budget.recording.meta.irq_names) }
        }
        BlameOwner::Nobody => process(budget, problem, budget.judge.awaited(), None),
    }
}

/// Returns the process that was held up instead of the application, unless it is a kernel thread:
/// that works for the application.
fn other_waiter(budget: &Budget<'_>, problem: &Problem, group: &BlameGroup) -> Option<Pid> {
    let tasks = &budget.recording.tasks;
    let is_kernel = |pid| tasks.process(pid, problem.end).is_some_and(|life| life.is_kernel());
    evidence::held_up(budget, group).filter(|pid| *pid != problem.client && !is_kernel(*pid))
}

/// Returns the target of the remedy: the culprit, or the root of its job if only the culprit has
/// ended.
fn target(
    budget: &Budget<'_>,
    problem: &Problem,
    group: &BlameGroup,
    culprit: &Culprit,
) -> Culprit {
    let has_ended = |pid: Pid| budget.recording.tasks.has_ended(Tid(pid.0));
    match (culprit, &group.owner) {
        (Culprit::Process { pid, .. }, BlameOwner::Job(Job::Process(root)))
            if remedy::acts_on_culprit(group.kind) && has_ended(Pid(*pid)) && !has_ended(*root) =>
        {
            process(budget, problem, *root, None)
        }
        _ => culprit.clone(),
    }
}

fn kernel_name(job: &Job) -> Option<String> {
    match job {
        Job::Kernel(name) => Some(format!("{name} (kernel)")),
        Job::Process(_) => None,
    }
}

fn process(budget: &Budget<'_>, problem: &Problem, pid: Pid, job: Option<String>) -> Culprit {
    let tasks = &budget.recording.tasks;
    let (comm, cmdline) =
        (tasks.comm(pid, problem.end), tasks.cmdline(pid, problem.end).to_owned());
    Culprit::Process { pid: pid.0, comm, cmdline, job }
}
