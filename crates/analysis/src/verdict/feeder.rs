// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that keeps another one computing by what it sends: property changes, bus signals, file events.

use crate::explain::chain::{ChainPiece, Doing};
use crate::explain::describe::{count_text, process_text, span_text};
use crate::explain::jobs::Members;
use crate::explain::partition::{BlameGroup, BlameOwner, Budget, length};
use crate::model::CauseKind;
use std::collections::BTreeMap;
use tipme_record::{Nanos, Pid, Tid};

/// Wakeups a second from which on they are a flood.
const WAKES_MIN_PER_S: f64 = 50.0;

/// Least part of a display server's requests that the client sends which keeps it at work: one in so many.
const REQUESTS_SHARE: u64 = 5;

/// Threads of a process that are looked at.
const THREADS_MAX: usize = 64;

/// A flood as evidence.
pub(crate) fn line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let [feeder, busy] =
        flood(budget, group)?.map(|(pid, wakes)| (process_text(budget.recording, pid, budget.end()), wakes));
    Some(format!("{} kept {} at work: it sent something {} times meanwhile", feeder.0, busy.0, count_text(feeder.1)))
}

/// The remedy against a flood.
pub(crate) fn remedy(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let [feeder, busy] = flood(budget, group)?.map(|(pid, _)| pid);
    let [feeder, busy] =
        [process_text(budget.recording, feeder, budget.end()), budget.recording.tasks.comm(busy, budget.end())];
    Some(format!("end {feeder}, or have it send less: it keeps {busy} at work"))
}

/// A display server that takes the CPU from others works for its clients: competition by it as the doing of the client from
/// which most requests came, where that is a flood of another application.
pub(crate) fn behind_server(budget: &Budget<'_>, group: &BlameGroup) -> Option<(BlameGroup, String)> {
    let competitor = |piece: &ChainPiece| match piece.doing {
        Doing::Queued(Some(by)) => Some(by),
        _ => None,
    };
    let longest =
        budget.pieces(group).filter(|_| group.kind == CauseKind::CpuCompetition).max_by_key(|one| length(one))?;
    let server = competitor(longest)?;
    let recording = budget.recording;
    let server_pid = Some(recording.tasks.pid(server, longest.lo)).filter(|pid| recording.messages.is_server(*pid))?;
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let mut requests: BTreeMap<Pid, u64> = BTreeMap::new();
    let received = recording.messages.received_within(server, lo, hi);
    for stream in received.iter().filter_map(|(.., place)| recording.messages.stream(place.stream)) {
        *requests.entry(stream.client).or_default() += 1;
    }
    let all: u64 = requests.values().sum();
    requests.retain(|pid, _| !budget.judge.is_family(*pid));
    let (client, count) = requests.into_iter().max_by_key(|(pid, count)| (*count, *pid))?;
    // A window manager has requests of its own for each one of a client's.
    if count * REQUESTS_SHARE < all || (count as f64) < WAKES_MIN_PER_S * hi.since(lo).millis() / 1e3 {
        return None;
    }
    let mut fed = BlameGroup { kind: CauseKind::ServerBusy, ..group.clone() };
    fed.owner = BlameOwner::Job(budget.jobs.of(Tid(client.0), hi));
    fed.members = Members::default();
    fed.members.add(client, group.nanos);
    let [client, server] = [client, server_pid].map(|pid| process_text(recording, pid, budget.end()));
    let ran = span_text(Nanos(group.nanos));
    let line =
        format!("{server} had the CPU for {ran}, mostly for {client}, which sent requests {} times", count_text(count));
    Some((fed, line))
}

/// The process that made a flood, directly or through a display server or bus, with its wakeups, and the one of a group's
/// longest piece, which that kept at work.
fn flood(budget: &Budget<'_>, group: &BlameGroup) -> Option<[(Pid, u64); 2]> {
    let computes = matches!(group.kind, CauseKind::OwnComputation | CauseKind::PeerWait | CauseKind::ServerBusy);
    let worked = |piece: &&ChainPiece| matches!(piece.doing, Doing::Ran | Doing::Served(_) | Doing::Queued(_));
    let longest = budget.pieces(group).filter(worked).max_by_key(|piece| length(piece)).filter(|_| computes)?;
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let busy = budget.recording.tasks.pid(longest.tid, longest.lo);
    let direct = main_waker(budget, (lo, hi), &[busy])?;
    let passed_on = main_waker(budget, (lo, hi), &[direct.0, busy]);
    let is_server = budget.recording.messages.is_server(direct.0);
    passed_on.or(Some(direct).filter(|_| !is_server)).map(|feeder| [feeder, (busy, direct.1)])
}

/// The process that woke the first of some processes most often in a time, apart from all of them, and how often, where that is
/// a flood.
fn main_waker(budget: &Budget<'_>, (lo, hi): (Nanos, Nanos), line: &[Pid]) -> Option<(Pid, u64)> {
    let recording = budget.recording;
    let threads = recording.tasks.lives().iter().filter(|life| Some(&life.pid) == line.first()).take(THREADS_MAX);
    let mut wakes: BTreeMap<Pid, u64> = BTreeMap::new();
    let woken = threads.flat_map(|life| recording.timeline.wakes(life.tid)).filter(|(_, at)| lo <= *at && *at < hi);
    for life in woken.filter_map(|(waker, at)| recording.tasks.life(waker, at)) {
        if !life.is_kernel() && !line.contains(&life.pid) {
            *wakes.entry(life.pid).or_default() += 1;
        }
    }
    let (pid, count) = wakes.into_iter().max_by_key(|(pid, count)| (*count, *pid))?;
    (count as f64 >= WAKES_MIN_PER_S * hi.since(lo).millis() / 1e3).then_some((pid, count))
}
