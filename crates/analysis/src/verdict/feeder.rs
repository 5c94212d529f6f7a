// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that keep another one computing by what they send: output to a terminal, property changes, bus signals, file
//! events.
//!
//! Such a process is the culprit, and the computation of the flooded one its means, where that one took what it was sent again
//! and again while it computed, and had not asked for it. A program that computes by itself leaves such things unread.

use crate::decode::messages::{Side, Stream};
use crate::explain::chain::{ChainPiece, Doing};
use crate::explain::describe::{count_text, process_text, span_text};
use crate::explain::jobs::{Job, Members};
use crate::explain::partition::{BlameGroup, BlameOwner, Budget, length};
use crate::model::CauseKind;
use std::collections::BTreeMap;
use tipme_record::{Nanos, Pid, Tid};

/// Rate of messages that is a flood, in messages per second.
const FLOOD_MIN_PER_S: f64 = 50.0;

/// Minimum ratio of the time to the longest gap in a flood.
const GAP_SHARE: u64 = 4;

/// Maximum time to work off what a flood has left, as a multiple of the flood's own length.
const BACKLOG_MAX: u64 = 2;

/// Least part of all messages that the sender of a flood has sent: one in so many.
const SENDER_SHARE: u64 = 2;

/// Least part of a display server's requests that the client sends which keeps it at work: one in so many.
const REQUESTS_SHARE: u64 = 5;

/// Threads of a process that are looked at.
const THREADS_MAX: usize = 64;

/// The way by which a flood came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Channel {
    Terminal,
    Messages,
}

/// A flood: the job that sent it, how often, and the process that it kept at work.
struct Flood {
    sender: String,
    job: Job,
    members: Members,
    busy: Pid,
    count: u64,
    channel: Channel,
}

/// Time and sender of each message.
type Arrivals = Vec<(Nanos, Pid)>;

/// A flood as evidence.
pub(crate) fn line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let Flood { sender, busy, count, channel, .. } = flood(budget, group)?;
    let (busy, count) = (process_text(budget.recording, busy, budget.end()), count_text(count));
    Some(match channel {
        Channel::Terminal => format!("{sender} kept {busy} at work: it wrote {count} times to the terminal meanwhile"),
        Channel::Messages => format!("{sender} kept {busy} at work: it sent something {count} times meanwhile"),
    })
}

/// The remedy against a flood.
pub(crate) fn remedy(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let Flood { sender, busy, channel, .. } = flood(budget, group)?;
    let busy = budget.recording.tasks.comm(busy, budget.end());
    Some(match channel {
        Channel::Terminal => {
            format!("send the output of {sender} to a file or through a pager: {busy} shows all of it first")
        }
        Channel::Messages => format!("end {sender}, or have it send less: it keeps {busy} at work"),
    })
}

/// Returns the computation of a program as the doing of the job that kept it at work. What the awaited command sends is its own
/// result.
pub(crate) fn behind_computation(budget: &Budget<'_>, group: &BlameGroup) -> Option<BlameGroup> {
    let computes = group.kind == CauseKind::OwnComputation;
    let flood = flood(budget, group).filter(|_| computes)?;
    let mut fed = BlameGroup { owner: BlameOwner::Job(flood.job), members: Members::default(), ..group.clone() };
    let (sender, _) = flood.members.main().filter(|(sender, _)| !budget.judge.is_of_command(*sender))?;
    fed.members.add(sender, group.nanos);
    Some(fed)
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
    if count * REQUESTS_SHARE < all || (count as f64) < FLOOD_MIN_PER_S * hi.since(lo).millis() / 1e3 {
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

/// The flood that kept the process of a group's longest piece at work.
fn flood(budget: &Budget<'_>, group: &BlameGroup) -> Option<Flood> {
    let computes = matches!(group.kind, CauseKind::OwnComputation | CauseKind::PeerWait | CauseKind::ServerBusy);
    let worked = |piece: &&ChainPiece| matches!(piece.doing, Doing::Ran | Doing::Served(_) | Doing::Queued(_));
    let longest = budget.pieces(group).filter(worked).max_by_key(|piece| length(piece)).filter(|_| computes)?;
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let busy = budget.recording.tasks.pid(longest.tid, longest.lo);
    let place = FloodPlace { budget, busy, lo, hi };
    let shown = || place.sender(place.output(longest.tid), Channel::Terminal);
    let told = || place.sender(place.events(), Channel::Messages);
    if group.kind == CauseKind::OwnComputation {
        return shown().or_else(told).or_else(|| place.sender(place.unasked(), Channel::Messages));
    }
    if group.kind == CauseKind::PeerWait
        && let Some(flood) = shown()
    {
        return Some(flood);
    }
    place.waker()
}

/// A process that was at work in a time.
struct FloodPlace<'b, 'a> {
    budget: &'b Budget<'a>,
    busy: Pid,
    lo: Nanos,
    hi: Nanos,
}

impl FloodPlace<'_, '_> {
    fn is_flood(&self, count: u64) -> bool {
        count as f64 >= FLOOD_MIN_PER_S * self.hi.since(self.lo).millis() / 1e3
    }

    fn flood_of(&self, job: Job, members: Members, channel: Channel) -> Flood {
        let (sender, count) = (self.budget.jobs.label(&job, &members), members.total());
        Flood { sender, job, members, busy: self.busy, count, channel }
    }

    /// The job that sent most of what arrived, where that is a flood which the process took all the time.
    fn sender(&self, arrivals: Arrivals, channel: Channel) -> Option<Flood> {
        let all = arrivals.len() as u64;
        let mut jobs: BTreeMap<Job, (Members, Vec<Nanos>)> = BTreeMap::new();
        for (at, pid) in arrivals {
            let (members, times) = jobs.entry(self.budget.jobs.of(Tid(pid.0), at)).or_default();
            members.add(pid, 1);
            times.push(at);
        }
        let (job, (members, mut times)) = jobs.into_iter().max_by_key(|(_, (_, times))| times.len())?;
        times.sort_unstable();
        let last = *times.last()?;
        let ends = times.iter().copied();
        let gap = ends.scan(self.lo, |from, to| Some(to.since(std::mem::replace(from, to)))).max()?;
        let worked_off = self.hi.since(last).0 <= last.since(self.lo).0.saturating_mul(BACKLOG_MAX);
        let throughout = worked_off && gap.0.saturating_mul(GAP_SHARE) <= self.hi.since(self.lo).0;
        let most = members.total().saturating_mul(SENDER_SHARE) >= all;
        (throughout && most && self.is_flood(members.total())).then(|| self.flood_of(job, members, channel))
    }

    /// What was written to the terminal that a thread reads.
    fn output(&self, reader: Tid) -> Arrivals {
        let recording = self.budget.recording;
        let written = recording.terminals.written_to(reader, self.lo, self.hi);
        written.map(|(writer, at)| (at, recording.tasks.pid(writer, at))).collect()
    }

    /// The events of a display that the process took, by the client whose requests the server told it of. What it asked for
    /// itself and what the person did are left out.
    fn events(&self) -> Arrivals {
        let streams = self.budget.recording.messages.streams().iter();
        streams.filter(|stream| stream.client == self.busy).flat_map(|stream| self.events_of(stream)).collect()
    }

    fn events_of<'s>(&'s self, stream: &'s Stream) -> impl Iterator<Item = (Nanos, Pid)> + 's {
        let messages = &self.budget.recording.messages;
        let taken = stream.side(Side::EventReceived).iter().enumerate();
        let within = taken.filter(|(_, part)| self.lo <= part.ts && part.ts < self.hi);
        within.filter_map(move |(index, part)| {
            let (_, sent) = stream.sent(Side::EventReceived, index)?;
            let words = messages.words(sent);
            let (at, place) =
                messages.last_received(sent.tid, sent.ts).filter(|_| words.iter().any(|word| word.is_event()))?;
            let asker = messages.stream(place.stream)?.client;
            let served = at >= self.budget.recording.burst(sent.tid, sent.ts).start;
            let other = asker != Pid(0) && asker != self.busy && !messages.injectors().contains(&asker);
            (served && other).then_some((part.ts, asker))
        })
    }

    /// Wakeups by other processes that the process did not wake itself as often: those answer what it asked for. A display
    /// server only passes on what others do.
    fn unasked(&self) -> Arrivals {
        let recording = self.budget.recording;
        let wakes = self.wakes_of(&[self.busy]);
        let mut asked: BTreeMap<Pid, usize> = BTreeMap::new();
        for life in recording.tasks.lives().iter().filter(|life| life.pid == self.busy).take(THREADS_MAX) {
            for (at, wakee) in recording.wakes.by(life.tid, self.lo, self.hi) {
                *asked.entry(recording.tasks.pid(wakee, at)).or_default() += 1;
            }
        }
        let mut given: BTreeMap<Pid, usize> = BTreeMap::new();
        wakes.iter().for_each(|(_, pid)| *given.entry(*pid).or_default() += 1);
        let is_asked = |pid: &Pid| asked.get(pid).is_some_and(|asked| asked * 2 >= given[pid]);
        let main = given.iter().max_by_key(|(_, count)| **count).map(|(pid, _)| *pid);
        if main.is_some_and(|pid| recording.messages.is_server(pid) || is_asked(&pid)) {
            return Vec::new();
        }
        let Some(main) = main else { return Vec::new() };
        let passed_on = self.wakes_of(&[main, self.busy]);
        if passed_on.len() * 2 >= given[&main] { passed_on } else { wakes }
    }

    /// The process that woke another one most often, directly or through one that passes it on.
    fn waker(&self) -> Option<Flood> {
        let direct = self.main_waker(&[self.busy])?;
        let passed_on = self.main_waker(&[direct.0, self.busy]);
        let is_server = self.budget.recording.messages.is_server(direct.0);
        let (pid, _) = passed_on.or(Some(direct).filter(|_| !is_server))?;
        let recording = self.budget.recording;
        let mut members = Members::default();
        members.add(pid, direct.1);
        let sender = process_text(recording, pid, self.budget.end());
        let job = self.budget.jobs.of(Tid(pid.0), self.hi);
        Some(Flood { sender, ..self.flood_of(job, members, Channel::Messages) })
    }

    /// The process that woke the first of some processes most often, apart from all of them, and how often, where that is a
    /// flood.
    fn main_waker(&self, line: &[Pid]) -> Option<(Pid, u64)> {
        let mut wakes: BTreeMap<Pid, u64> = BTreeMap::new();
        self.wakes_of(line).into_iter().for_each(|(_, pid)| *wakes.entry(pid).or_default() += 1);
        let (pid, count) = wakes.into_iter().max_by_key(|(pid, count)| (*count, *pid))?;
        self.is_flood(count).then_some((pid, count))
    }

    /// When processes other than some woke the first of these, and which.
    fn wakes_of(&self, line: &[Pid]) -> Arrivals {
        let recording = self.budget.recording;
        let threads = recording.tasks.lives().iter().filter(|life| Some(&life.pid) == line.first()).take(THREADS_MAX);
        let woken = threads.flat_map(|life| recording.timeline.wakes(life.tid));
        let within = woken.filter(|(_, at)| self.lo <= *at && *at < self.hi);
        let lives = within.filter_map(|(waker, at)| Some((at, recording.tasks.life(waker, at)?)));
        lives
            .filter(|(_, life)| !life.is_kernel() && !line.contains(&life.pid))
            .map(|(at, life)| (at, life.pid))
            .collect()
    }
}
