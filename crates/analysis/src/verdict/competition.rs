// SPDX-License-Identifier: MIT OR Apache-2.0
//! Competition for CPUs (run-queue delay): the priorities that decided it, and remedies against the
//! thread that takes the CPU time.

use crate::explain::blame::Who;
use crate::explain::chain::Doing;
use crate::explain::describe::{count_text, span_text};
use crate::explain::partition::{BlameGroup, Budget, length};
use crate::model::{CauseKind, Culprit};
use crate::timeline::priorities::SchedStanding;
use crate::timeline::tasks::Tasks;
use crate::verdict::remedy::{self, Waiting};
use crate::verdict::session;
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::{Nanos, Pid, Tid};

/// Minimum share of a group that priorities must have decided to be reported.
const SHARE_MIN: f64 = 0.1;

/// Minimum number of newly started processes, and of their share of a group, to be reported.
const NEWBORN_MIN: usize = 8;
const NEWBORN_SHARE: f64 = 0.5;

type Party = (Tid, SchedStanding);

/// Thread that ran before another one, or got the larger share, because of its priority.
struct Contrast {
    by: Party,
    waiter: Party,
    at: Nanos,
}

/// Returns the pair of threads with the longest time in which the running one had the better
/// priority.
fn contrast(budget: &Budget<'_>, group: &BlameGroup) -> Option<Contrast> {
    let mut pairs: BTreeMap<(Party, Party), (u64, Nanos)> = BTreeMap::new();
    for piece in budget.pieces(group) {
        let Doing::Queued(Some(by)) = piece.doing else { continue };
        let standing =
            |tid| budget.recording.priorities.at(tid, piece.lo).map(|standing| (tid, standing));
        let Some((by, waiter)) = standing(by).zip(standing(piece.tid)) else { continue };
        if by.1.beats(waiter.1) {
            let pair = pairs.entry((by, waiter)).or_insert((0, piece.lo));
            pair.0 = pair.0.saturating_add(length(piece));
        }
    }
    let all: u64 = pairs.values().fold(0, |all, (nanos, _)| all.saturating_add(*nanos));
    let decides = all as f64 >= SHARE_MIN * group.nanos as f64;
    let most = pairs.into_iter().max_by_key(|(_, (nanos, _))| *nanos).filter(|_| decides);
    most.map(|((by, waiter), (_, at))| Contrast { by, waiter, at })
}

/// Formats `rsync runs at nice -5, xterm at nice 0`.
pub(crate) fn line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let Contrast { by, waiter, at } = contrast(budget, group)?;
    let tasks = &budget.recording.tasks;
    let name = |tid| tasks.comm(tasks.pid(tid, at), at);
    Some(format!("{} runs {}, {} {}", name(by.0), by.1.text(), name(waiter.0), waiter.1.text()))
}

/// Formats `48 processes of it were started meanwhile, and ran for 84 % of this time, 9 ms old in
/// the median`. Returns `None` if the running processes existed before.
pub(crate) fn newborn_line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let begin = budget.chain.pieces.first()?.lo;
    let (mut born, mut ages, mut nanos) = (BTreeSet::new(), Vec::new(), 0_u64);
    for piece in budget.pieces(group) {
        let Doing::Queued(Some(by)) = piece.doing else { continue };
        let life = budget.recording.tasks.life(by, piece.lo).filter(|life| life.from > begin);
        let Some(life) = life else { continue };
        born.insert(life.pid);
        ages.push(piece.lo.since(life.from));
        nanos = nanos.saturating_add(length(piece));
    }
    let share = nanos as f64 / group.nanos.max(1) as f64;
    ages.sort_unstable();
    let age = *ages
        .get(ages.len() / 2)
        .filter(|_| born.len() >= NEWBORN_MIN && share >= NEWBORN_SHARE)?;
    let (count, percent, age) =
        (count_text(born.len() as u64), (share * 100.0).round(), span_text(age));
    Some(format!(
        "it started {count} processes meanwhile, which ran for {percent}% of this time (median age {age})"
    ))
}

/// Returns a remedy against the thread that takes CPU time, its own or that of the display server.
/// Returns `None` if no process does, or if the usual remedy applies.
pub(crate) fn remedy(
    budget: &Budget<'_>,
    group: &BlameGroup,
    culprit: &Culprit,
    waiting: Waiting<'_>,
) -> Option<String> {
    let Culprit::Process { pid, .. } = culprit else { return None };
    if !matches!(group.kind, CauseKind::CpuCompetition | CauseKind::ServerBusy) {
        return None;
    }
    let (contrast, tasks) = (contrast(budget, group), &budget.recording.tasks);
    if let Some(of_session) = session::remedy(budget, group.kind, culprit) {
        let lowered = contrast
            .as_ref()
            .filter(|_| group.kind == CauseKind::CpuCompetition)
            .and_then(of_waiter);
        return lowered.or(Some(of_session));
    }
    let mut takers = contrast.iter().map(|contrast| contrast.by).chain(taker(budget, group));
    if let Some(taker) = takers.find(|(_, standing)| standing.is_realtime() && !standing.is_lent())
    {
        return Some(of_realtime(taker, tasks));
    }
    if group.kind != CauseKind::CpuCompetition {
        return None;
    }
    let first = contrast
        .as_ref()
        .and_then(of_waiter)
        .unwrap_or_else(|| remedy::of(CauseKind::CpuCompetition, culprit, waiting, tasks));
    let ordinary = !contrast.is_some_and(|contrast| contrast.by.1.is_realtime());
    let managed = ordinary && is_background(budget, Pid(*pid)) && !is_managed(tasks);
    Some(if managed {
        format!("{first}; or tipme manage, which favours what you are using")
    } else {
        first
    })
}

/// Returns the thread that caused most of a group.
fn taker(budget: &Budget<'_>, group: &BlameGroup) -> Option<Party> {
    let mut takers: BTreeMap<Party, u64> = BTreeMap::new();
    for (piece, blame) in group.pieces.iter().filter_map(|index| budget.blamed(*index)) {
        let Who::Thread(tid) = blame.who else { continue };
        if let Some(standing) = budget.recording.priorities.at(tid, piece.lo) {
            *takers.entry((tid, standing)).or_default() += length(piece);
        }
    }
    takers.into_iter().max_by_key(|(_, nanos)| *nanos).map(|(taker, _)| taker)
}

/// Returns the remedy against a real-time thread, which ignores its nice value.
fn of_realtime((tid, standing): Party, tasks: &Tasks) -> String {
    let text = standing.text();
    match tasks.has_ended(tid) {
        true => {
            format!("start it without real-time priority next time (it ran {text}, and has ended)")
        }
        false => format!("chrt -o -p 0 {tid} (it runs {text})"),
    }
}

fn of_waiter(contrast: &Contrast) -> Option<String> {
    let ((_, before), (waiter, behind)) = (contrast.by, contrast.waiter);
    if behind.is_idle_policy() {
        return Some(format!("chrt -o -p 0 {waiter} (the waiting process runs {})", behind.text()));
    }
    let lowered = behind.is_low() && !before.is_realtime();
    lowered.then(|| format!("renice -n 0 -p {waiter} (the waiting process runs {})", behind.text()))
}

/// Returns `true` if a process neither uses a display nor belongs to the delayed application, so
/// that the manager holds it back.
fn is_background(budget: &Budget<'_>, pid: Pid) -> bool {
    let recording = budget.recording;
    let on_display = recording.messages.streams().iter().any(|stream| stream.client == pid);
    let known = recording.tasks.process(pid, budget.end()).is_some_and(|life| !life.is_kernel());
    known && !on_display && !recording.messages.is_server(pid) && !budget.judge.is_family(pid)
}

/// Returns `true` if a manager is running already.
fn is_managed(tasks: &Tasks) -> bool {
    let manages = |pid: Pid, at| tasks.cmdline(pid, at).split(' ').nth(1) == Some("manage");
    tasks.lives().iter().any(|life| life.comm == "tipme" && manages(life.pid, life.until))
}
