// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: blame groups with the job, device or limit behind them, and their evidence.

use crate::explain::io_limits;
use crate::explain::jobs::Members;
use crate::explain::limits::{self, QuotaUser};
use crate::explain::load::{self, Requests};
use crate::explain::partition::{BlameGroup, BlameOwner, Budget, length};
use crate::model::CauseKind;
use crate::verdict::{evidence, feeder, groups, remedy, stall};
use tipme_record::{Device, Nanos, Tid};

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
    /// Returns `true` for the same kind and culprit.
    pub(crate) fn is_same(&self, other: &Cause) -> bool {
        self.group.kind == other.group.kind
            && self.group.owner == other.group.owner
            && self.kept_at_work == other.kept_at_work
    }

    pub(crate) fn new(
        budget: &Budget<'_>,
        group: BlameGroup,
        evidence: Vec<String>,
        certainty: f64,
    ) -> Cause {
        let frames = evidence::kernel_frames(budget, &group);
        Cause { group, evidence, frames, certainty, others: 0, remedy: None, kept_at_work: false }
    }
}

/// Finds the job behind a device, a memory shortage or a quota.
pub(crate) fn resolve(budget: &Budget<'_>, mut group: BlameGroup) -> Cause {
    match (&group.owner, group.kind) {
        (_, CauseKind::KernelLock) if groups::awaited_thaw(budget, &group).is_some() => {
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
    let waiter = groups::waiter(budget, group)?;
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
    group.owner = BlameOwner::Device(groups::frozen_device(budget, &group));
    Cause { remedy: Some(remedy::OF_FROZEN.to_owned()), ..Cause::new(budget, group, evidence, 1.0) }
}

fn reclaim(budget: &Budget<'_>, mut group: BlameGroup) -> Cause {
    if let Some(waiter) = groups::at_memory_limit(budget, &group) {
        let mut evidence = evidence::of(budget, &group);
        let comm = budget.recording.tasks.comm(waiter, budget.end());
        evidence[0] = format!(
            "{comm} (pid {waiter}) waited until its control group was below its memory limit"
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
