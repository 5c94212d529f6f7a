// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that keep another one computing by the messages they send: terminal output, property
//! changes, bus signals, file events.
//!
//! Such a sender is the culprit if the flooded process read unrequested messages again and again
//! while it computed. A program that computes on its own leaves such messages unread.

use crate::decode::messages::{Side, Stream};
use crate::explain::chain::{ChainPiece, Doing};
use crate::explain::describe::{count_text, process_text, span_text};
use crate::explain::jobs::{Job, Members};
use crate::explain::partition::{BlameGroup, BlameOwner, Budget, length};
use crate::model::CauseKind;
use std::collections::BTreeMap;
use tipme_record::{Nanos, Pid, Tid};

/// Minimum rate of a flood, in messages per second.
const FLOOD_MIN_PER_S: f64 = 50.0;

/// Maximum gap in a flood: one part in this many of the time.
const GAP_SHARE: u64 = 4;

/// Maximum time to work off the events that a client has queued in a flood, as a multiple of the
/// flood's own length.
const BACKLOG_MAX: u64 = 2;

/// Minimum part of all messages that come from the sender of a flood: one in this many.
const SENDER_SHARE: u64 = 2;

/// Minimum part of a display server's requests that come from the client to blame: one in this
/// many.
const REQUESTS_SHARE: u64 = 5;

/// Maximum number of threads checked per process.
const THREADS_MAX: usize = 64;

/// Transport of a flood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Channel {
    Terminal,
    Messages,
}

/// Flood of messages: the job that sent it, their number, and the process that they kept busy.
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

/// Describes a flood as evidence.
pub(crate) fn line(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let Flood { sender, busy, count, channel, .. } = flood(budget, group)?;
    let (busy, count) = (process_text(budget.recording, busy, budget.end()), count_text(count));
    Some(match channel {
        Channel::Terminal => {
            format!("{sender} kept {busy} busy: it wrote to the terminal {count} times meanwhile")
        }
        Channel::Messages => {
            format!("{sender} kept {busy} busy with {count} messages")
        }
    })
}

/// Returns the remedy against a flood.
pub(crate) fn remedy(budget: &Budget<'_>, group: &BlameGroup) -> Option<String> {
    let Flood { sender, busy, channel, .. } = flood(budget, group)?;
    let busy = budget.recording.tasks.comm(busy, budget.end());
    Some(match channel {
        Channel::Terminal => {
            format!(
                "redirect the output of {sender} to a file or a pager: {busy} has to display all of it"
            )
        }
        Channel::Messages => format!("stop {sender}, or make it send less: it keeps {busy} busy"),
    })
}

/// Attributes the computation of a program to the job that flooded it. Messages from the awaited
/// command are its own result and do not count.
pub(crate) fn behind_computation(budget: &Budget<'_>, group: &BlameGroup) -> Option<BlameGroup> {
    let computes = group.kind == CauseKind::OwnComputation;
    let flood = flood(budget, group).filter(|_| computes)?;
    let mut fed = BlameGroup {
        owner: BlameOwner::Job(flood.job),
        members: Members::default(),
        ..group.clone()
    };
    let (sender, _) =
        flood.members.main().filter(|(sender, _)| !budget.judge.is_of_command(*sender))?;
    fed.members.add(sender, group.nanos);
    Some(fed)
}

/// Attributes competition by a display server to the client that sent the most requests, if those
/// are a flood from another application.
pub(crate) fn behind_server(
    budget: &Budget<'_>,
    group: &BlameGroup,
) -> Option<(BlameGroup, String)> {
    let competitor = |piece: &ChainPiece| match piece.doing {
        Doing::Queued(Some(by)) => Some(by),
        _ => None,
    };
    let longest = budget
        .pieces(group)
        .filter(|_| group.kind == CauseKind::CpuCompetition)
        .max_by_key(|one| length(one))?;
    let server = competitor(longest)?;
    let recording = budget.recording;
    let server_pid = Some(recording.tasks.pid(server, longest.lo))
        .filter(|pid| recording.messages.is_server(*pid))?;
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let mut requests: BTreeMap<Pid, u64> = BTreeMap::new();
    let received = recording.messages.received_within(server, lo, hi);
    for stream in received.iter().filter_map(|(.., place)| recording.messages.stream(place.stream))
    {
        *requests.entry(stream.client).or_default() += 1;
    }
    let all: u64 = requests.values().sum();
    requests.retain(|pid, _| !budget.judge.is_family(*pid));
    let (client, count) = requests.into_iter().max_by_key(|(pid, count)| (*count, *pid))?;
    // A window manager adds requests of its own to each one of a client.
    if count * REQUESTS_SHARE < all
        || (count as f64) < FLOOD_MIN_PER_S * hi.since(lo).millis() / 1e3
    {
        return None;
    }
    let mut fed = BlameGroup { kind: CauseKind::ServerBusy, ..group.clone() };
    fed.owner = BlameOwner::Job(budget.jobs.of(Tid(client.0), hi));
    fed.members = Members::default();
    fed.members.add(client, group.nanos);
    let [client, server] =
        [client, server_pid].map(|pid| process_text(recording, pid, budget.end()));
    let ran = span_text(Nanos(group.nanos));
    let line = format!(
        "{server} ran for {ran}, mostly for {client}, which sent requests {} times",
        count_text(count)
    );
    Some((fed, line))
}

/// Returns the flood that kept the process of a group's longest piece busy.
fn flood(budget: &Budget<'_>, group: &BlameGroup) -> Option<Flood> {
    let computes = matches!(
        group.kind,
        CauseKind::OwnComputation | CauseKind::PeerWait | CauseKind::ServerBusy
    );
    let longest = budget
        .pieces(group)
        .filter(|piece| matches!(piece.doing, Doing::Ran | Doing::Served(_) | Doing::Queued(_)))
        .max_by_key(|piece| length(piece))
        .filter(|_| computes)?;
    let lo = budget.pieces(group).map(|piece| piece.lo).min()?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let busy = budget.recording.tasks.pid(longest.tid, longest.lo);
    let place = FloodPlace { budget, busy, lo, hi };
    let output = || place.sender(place.output(longest.tid), Channel::Terminal, 0);
    if group.kind == CauseKind::OwnComputation {
        return output()
            .or_else(|| place.sender(place.events(), Channel::Messages, BACKLOG_MAX))
            .or_else(|| place.sender(place.unasked(), Channel::Messages, 0));
    }
    if group.kind == CauseKind::PeerWait
        && let Some(flood) = output()
    {
        return Some(flood);
    }
    // The sender of requests that waits for the answers is the one held up.
    let fed = place.waker()?;
    let (sender, _) = fed.members.main()?;
    let mut vias = budget.chain.vias_of(longest);
    let waits = vias.any(|via| budget.recording.tasks.pid(via.waiter, longest.lo) == sender);
    (group.kind != CauseKind::PeerWait || !waits).then_some(fed)
}

/// Process that was busy in a time.
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

    /// Returns the job that sent most of the messages, if they are a flood that the process read
    /// throughout.
    fn sender(&self, arrivals: Arrivals, channel: Channel, backlog: u64) -> Option<Flood> {
        let all = arrivals.len() as u64;
        let mut jobs: BTreeMap<Job, (Members, Vec<Nanos>)> = BTreeMap::new();
        for (at, pid) in arrivals {
            let (members, times) = jobs.entry(self.budget.jobs.of(Tid(pid.0), at)).or_default();
            members.add(pid, 1);
            times.push(at);
        }
        let (job, (members, mut times)) =
            jobs.into_iter().max_by_key(|(_, (_, times))| times.len())?;
        times.sort_unstable();
        let last = *times.last()?;
        let worked_off = self.hi.since(last).0 <= last.since(self.lo).0.saturating_mul(backlog);
        let ends = times.iter().copied().chain([if worked_off { last } else { self.hi }]);
        let gap =
            ends.scan(self.lo, |from, to| Some(to.since(std::mem::replace(from, to)))).max()?;
        let throughout = gap.0.saturating_mul(GAP_SHARE) <= self.hi.since(self.lo).0;
        let most = members.total().saturating_mul(SENDER_SHARE) >= all;
        (throughout && most && self.is_flood(members.total()))
            .then(|| self.flood_of(job, members, channel))
    }

    /// Returns the writes to the terminal that a thread reads.
    fn output(&self, reader: Tid) -> Arrivals {
        let recording = self.budget.recording;
        let written = recording.terminals.written_to(reader, self.lo, self.hi);
        written.map(|(writer, at)| (at, recording.tasks.pid(writer, at))).collect()
    }

    /// Returns the display events that the process read, each with the client that caused it.
    /// Events caused by the process itself or by the user are left out.
    fn events(&self) -> Arrivals {
        let streams = self.budget.recording.messages.streams().iter();
        streams
            .filter(|stream| stream.client == self.busy)
            .flat_map(|stream| self.events_of(stream))
            .collect()
    }

    fn events_of<'s>(&'s self, stream: &'s Stream) -> impl Iterator<Item = (Nanos, Pid)> + 's {
        let messages = &self.budget.recording.messages;
        let taken = stream.side(Side::EventReceived).iter().enumerate();
        let within = taken.filter(|(_, part)| self.lo <= part.ts && part.ts < self.hi);
        within.filter_map(move |(index, part)| {
            let (_, sent) = stream.sent(Side::EventReceived, index)?;
            let words = messages.words(sent);
            let (at, place) = messages
                .last_received(sent.tid, sent.ts)
                .filter(|_| words.iter().any(|word| word.is_event()))?;
            let asker = messages.stream(place.stream)?.client;
            let served = at >= self.budget.recording.burst(sent.tid, sent.ts).start;
            let other =
                asker != Pid(0) && asker != self.busy && !messages.injectors().contains(&asker);
            (served && other).then_some((part.ts, asker))
        })
    }

    /// Returns the wakeups by processes that the process did not wake about as often, since those
    /// answer its requests. A display server only passes on what others do.
    fn unasked(&self) -> Arrivals {
        let recording = self.budget.recording;
        let wakes = self.wakes_of(&[self.busy]);
        let mut asked: BTreeMap<Pid, usize> = BTreeMap::new();
        for life in
            recording.tasks.lives().iter().filter(|life| life.pid == self.busy).take(THREADS_MAX)
        {
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
        if passed_on.len() * 2 < given[&main] {
            return wakes;
        }
        let by_server = passed_on.iter().filter(|(_, pid)| recording.messages.is_server(*pid));
        if by_server.count() * 2 > passed_on.len() { Vec::new() } else { passed_on }
    }

    /// Returns the process that woke this one most often, directly or through one that passes the
    /// wakeups on.
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

    /// Returns the process outside `line` that woke its first process most often, with the number
    /// of wakeups, if these are a flood.
    fn main_waker(&self, line: &[Pid]) -> Option<(Pid, u64)> {
        let mut wakes: BTreeMap<Pid, u64> = BTreeMap::new();
        self.wakes_of(line).into_iter().for_each(|(_, pid)| *wakes.entry(pid).or_default() += 1);
        let (pid, count) = wakes.into_iter().max_by_key(|(pid, count)| (*count, *pid))?;
        self.is_flood(count).then_some((pid, count))
    }

    /// Returns the wakeups of the first process in `line` by processes outside it.
    fn wakes_of(&self, line: &[Pid]) -> Arrivals {
        let recording = self.budget.recording;
        let threads = recording
            .tasks
            .lives()
            .iter()
            .filter(|life| Some(&life.pid) == line.first())
            .take(THREADS_MAX);
        let woken = threads.flat_map(|life| recording.timeline.wakes(life.tid));
        let within = woken.filter(|(_, at)| self.lo <= *at && *at < self.hi);
        let lives = within.filter_map(|(waker, at)| Some((at, recording.tasks.life(waker, at)?)));
        lives
            .filter(|(_, life)| !life.is_kernel() && !line.contains(&life.pid))
            .map(|(at, life)| (at, life.pid))
            .collect()
    }
}
