// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who filled a device's queue while the application waited for it.

use crate::explain::chain::{ChainPiece, Doing};
use crate::explain::describe::{bytes_text, count_text};
use crate::explain::jobs::{Job, Members};
use crate::explain::partition::{BlameGroup, Budget};
use crate::model::CauseKind;
use crate::timeline::disk::DiskRequest;
use crate::timeline::losses::SECOND;
use crate::timeline::reclaim::{IN_GROUP, THROTTLED};
use crate::timeline::recording::Recording;
use crate::timeline::threads::ThreadState;
use crate::timeline::waits::{Waited, syncs_all, waits_for_io};
use std::collections::BTreeMap;
use tipme_record::incident::Loss;
use tipme_record::records::Reclaim;
use tipme_record::{Device, Nanos, Pid, RingClass, Tid};

/// A request costs a device about as much as this many bytes more.
const REQUEST_COST: u64 = 128 * 1024;

/// Requests of all others must be this share of all to be the cause.
const OTHERS_MIN: f64 = 0.3;

/// Functions of the kernel that take requests to a device, by the begins of their names.
const REQUEST_MAKERS: [&str; 4] = ["submit_bio", "__submit_bio", "blk_", "__blk_"];

/// Pages are written back this long after they were dirtied.
const DIRTY_BEFORE: Nanos = Nanos::from_secs(30);

/// Requests of one job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    pub reads: u64,
    pub writes: u64,
    pub bytes: u64,
    pub members: Members,
}

/// Requests on a device during a group of waits.
pub(crate) struct Load {
    pub own: Requests,
    /// The job with the most requests besides the application, where it and others had enough of them.
    pub other: Option<(Job, Requests)>,
    /// How many other jobs had requests, and these.
    pub rest: (usize, Requests),
    /// The kernel wrote back what the other job had dirtied.
    pub written_back: bool,
}

impl Requests {
    fn add(&mut self, request: &DiskRequest) {
        let count = if request.is_write() { &mut self.writes } else { &mut self.reads };
        *count += 1;
        self.bytes = self.bytes.saturating_add(u64::from(request.bytes));
    }

    fn sum<'a>(all: impl Iterator<Item = &'a Requests>) -> Requests {
        let add = |sum: Requests, one: &Requests| Requests {
            reads: sum.reads + one.reads,
            writes: sum.writes + one.writes,
            bytes: sum.bytes.saturating_add(one.bytes),
            ..sum
        };
        all.fold(Requests::default(), add)
    }

    pub(crate) fn weight(&self) -> u64 {
        self.bytes.saturating_add((self.reads + self.writes).saturating_mul(REQUEST_COST))
    }

    /// `1,412 writes (1.2 GiB)`.
    pub(crate) fn text(&self) -> String {
        let what = match (self.reads, self.writes) {
            (reads, 0) => format!("{} {}", count_text(reads), plural(reads, "read")),
            (0, writes) => format!("{} {}", count_text(writes), plural(writes, "write")),
            (reads, writes) => format!("{} reads and {} writes", count_text(reads), count_text(writes)),
        };
        format!("{what} ({})", bytes_text(self.bytes))
    }
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Sums up who had requests outstanding on a device during the pieces of a group.
pub(crate) fn load(budget: &Budget<'_>, group: &BlameGroup, device: Option<Device>) -> Load {
    let recording = budget.recording;
    let mut spans: Vec<(Nanos, Nanos)> = budget.pieces(group).map(|piece| (piece.lo, piece.hi)).collect();
    spans.sort_unstable();
    let (lo, hi) = (spans.first().map_or(Nanos(0), |span| span.0), spans.last().map_or(Nanos(0), |span| span.1));
    let (mut own, mut others) = (Requests::default(), BTreeMap::<Job, Requests>::new());
    for request in recording.disk.outstanding(lo, hi) {
        let first = spans.partition_point(|(_, end)| *end <= request.start);
        let overlaps = spans.get(first).is_some_and(|(start, _)| *start < request.end);
        if !overlaps || device.is_some_and(|device| device != request.device) {
            continue;
        }
        let pid = recording.tasks.pid(request.tid, request.start);
        if budget.judge.is_family(pid) {
            own.add(request);
        } else {
            let job = others.entry(budget.jobs.of(request.tid, request.start)).or_default();
            job.add(request);
            job.members.add(pid, u64::from(request.bytes) + REQUEST_COST);
        }
    }
    weigh(budget, own, others, hi)
}

/// How much of its own computation a process spent on making requests to devices, by where it was sampled; a device of a
/// virtual machine has the CPU wait for it then.
pub(crate) fn made_by(budget: &Budget<'_>, group: &BlameGroup) -> (Option<Pid>, u64) {
    let Some(first) = budget.pieces(group).next().filter(|_| group.kind == CauseKind::OwnComputation) else {
        return (None, 0);
    };
    let recording = budget.recording;
    let samples = budget.pieces(group).flat_map(|piece| recording.samples_of(piece.tid, piece.lo, piece.hi));
    let makes = |name: &str| REQUEST_MAKERS.iter().any(|begin| name.starts_with(begin));
    let (mut made, mut all) = (0, 0);
    for sample in samples {
        all += 1;
        made += u64::from(recording.names.kernel_functions(sample.kernel_stack).any(makes));
    }
    (Some(recording.tasks.pid(first.tid, first.lo)), group.nanos / all.max(1) * made)
}

/// For how long a device had nothing to do in a group's waits, where that is more than half of them: no request of anybody
/// was in its queue. `None` unless most waits end with a request that it got only within them, and where some may have been
/// lost meanwhile: what no request is made for, such as a file of another machine, reaches no device.
pub(crate) fn idle_meanwhile(budget: &Budget<'_>, group: &BlameGroup, device: Device) -> Option<Nanos> {
    let disk = &budget.recording.disk;
    // A commit of the journal waits for whoever is in the midst of a change as well.
    let for_io = |piece: &&ChainPiece| match piece.doing {
        Doing::Waited(Waited::Fsync, wait) => wait.is_some_and(|wait| waits_for_io(wait.state)),
        _ => true,
    };
    let got_late = |piece: &&ChainPiece| disk.served(device, piece.lo, piece.hi);
    let waits: Vec<&ChainPiece> = budget.pieces(group).filter(for_io).filter(got_late).collect();
    let (lo, hi) = (waits.iter().map(|piece| piece.lo).min()?, waits.iter().map(|piece| piece.hi).max()?);
    let busy = disk.busy(device, lo, hi);
    let all = waits.iter().map(|piece| idle_within(&busy, piece.lo, piece.hi)).fold(Nanos(0), Nanos::after);
    let lost = || waits.iter().any(|piece| lost_within(budget.recording, piece.lo, piece.hi));
    (all.0.saturating_mul(2) > group.nanos && !lost()).then_some(all)
}

/// How much of `lo..hi` lies outside of some times that lie one after the other.
fn idle_within(busy: &[(Nanos, Nanos)], lo: Nanos, hi: Nanos) -> Nanos {
    let first = busy.partition_point(|(_, end)| *end <= lo);
    let within = busy[first..].iter().take_while(|(start, _)| *start < hi);
    let busy = within.map(|(start, end)| hi.min(*end).since(lo.max(*start))).fold(Nanos(0), Nanos::after);
    hi.since(lo).since(busy)
}

/// Whether records of requests may have been lost in a time; losses are counted by the second.
fn lost_within(recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
    let of_requests = |loss: &&Loss| loss.class == RingClass::Rare.name();
    let reaches = |loss: &Loss| lo.0 < loss.until_ns && Nanos(loss.until_ns).before(SECOND) < hi;
    recording.losses.per_second.iter().filter(of_requests).any(reaches)
}

fn weigh(budget: &Budget<'_>, own: Requests, mut others: BTreeMap<Job, Requests>, at: Nanos) -> Load {
    // Kernel threads that read do so for others, such as for those whose requests are held back; for whom is not recorded.
    others.retain(|job, requests| !matches!(job, Job::Kernel(_)) || requests.reads <= requests.writes);
    let of_others = others.values().fold(0, |sum: u64, requests| sum.saturating_add(requests.weight()));
    let enough = of_others as f64 >= OTHERS_MIN * of_others.saturating_add(own.weight()) as f64;
    let most = others.iter().max_by_key(|(_, requests)| requests.weight()).map(|(job, _)| job.clone());
    let other = most.filter(|_| enough).and_then(|job| others.remove_entry(&job));
    let mut load = Load { own, other: None, rest: (others.len(), Requests::sum(others.values())), written_back: false };
    match other {
        Some((Job::Kernel(name), mut requests)) => {
            let dirtier = dirtier(budget.recording, at).filter(|_| requests.writes > 0);
            let job = dirtier.map(|tid| budget.jobs.of(tid, at));
            if let Some(tid) = dirtier {
                requests.members = Members::default();
                requests.members.add(budget.recording.tasks.pid(tid, at), 1);
            }
            load.written_back = job.is_some();
            load.other = Some((job.unwrap_or(Job::Kernel(name)), requests));
        }
        other => load.other = other,
    }
    load
}

/// The thread that dirtied most: one that was throttled for it, or was seen writing files.
fn dirtier(recording: &Recording, at: Nanos) -> Option<Tid> {
    let lo = at.before(DIRTY_BEFORE);
    let mut votes: BTreeMap<Tid, u64> = BTreeMap::new();
    for reclaim in recording.reclaims.iter().filter(|reclaim| throttles(reclaim) && within(reclaim.head.ts, lo, at)) {
        *votes.entry(reclaim.head.tid).or_default() += 10 + reclaim.amount.min(AMOUNT_MAX);
    }
    tally(recording, DIRTIED, lo, at, &mut votes);
    for sample in recording.samples.iter().filter(|sample| within(sample.head.ts, lo, at)) {
        let writes = recording
            .names
            .kernel_functions(sample.kernel_stack)
            .any(|name| name.contains("perform_write") || name.contains("buffered_write"));
        if writes {
            *votes.entry(sample.head.tid).or_default() += 1;
        }
    }
    votes.into_iter().max_by_key(|(_, votes)| *votes).map(|(tid, _)| tid)
}

/// The thread that had written what a group's waits are for, where these are for the data of all programs.
pub(crate) fn writer_for_all(budget: &Budget<'_>, group: &BlameGroup) -> Option<Tid> {
    let for_all = |piece: &&ChainPiece| matches!(piece.doing, Doing::Waited(_, Some(wait)) if syncs_all(&wait));
    let first = budget.pieces(group).filter(for_all).min_by_key(|piece| piece.lo)?;
    dirtier(budget.recording, first.lo)
}

fn within(ts: Nanos, lo: Nanos, hi: Nanos) -> bool {
    lo <= ts && ts <= hi
}

fn throttles(reclaim: &Reclaim) -> bool {
    reclaim.what == THROTTLED
}

/// The thread outside the application that reclaimed most memory, or allocated most, around a time.
///
/// Reclaim inside a control group counts only where `waiter` is in the same one: it takes nothing from others.
pub(crate) fn memory_taker(budget: &Budget<'_>, waiter: Tid, lo: Nanos, hi: Nanos) -> Option<Tid> {
    let recording = budget.recording;
    let lo = lo.before(TAKEN_BEFORE);
    let foreign = |tid: Tid| {
        let life = recording.tasks.life(tid, hi);
        life.is_some_and(|life| !life.is_kernel() && !budget.judge.is_family(life.pid))
    };
    let mut votes: BTreeMap<Tid, u64> = BTreeMap::new();
    for reclaim in reclaims(recording, lo, hi).filter(|reclaim| reaches(recording, reclaim, waiter)) {
        *votes.entry(reclaim.head.tid).or_default() += 1 + reclaim.amount.min(AMOUNT_MAX);
    }
    let most = |votes: &BTreeMap<Tid, u64>| {
        let known = votes.iter().filter(|(tid, _)| foreign(**tid));
        known.max_by_key(|(_, votes)| **votes).map(|(tid, _)| *tid)
    };
    if only_in_group(recording, lo, hi) && most(&votes).is_some() {
        return most(&votes);
    }
    tally(recording, TAKEN, lo, hi, &mut votes);
    for sample in recording.samples.iter().filter(|sample| within(sample.head.ts, lo, hi)) {
        let allocates = recording
            .names
            .kernel_functions(sample.kernel_stack)
            .any(|name| ALLOCATING.iter().any(|prefix| name.starts_with(prefix)));
        if allocates {
            *votes.entry(sample.head.tid).or_default() += 100;
        }
    }
    most(&votes)
}

/// Whether memory was short inside a control group only: then it was taken by those who had to free some of the
/// group's, however much others took of the machine's.
fn only_in_group(recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
    let mut all = recording.reclaims.iter().filter(|reclaim| within(reclaim.head.ts, lo, hi)).peekable();
    all.peek().is_some() && all.all(|reclaim| reclaim.what == IN_GROUP || reclaim.what == THROTTLED)
}

/// Adds what threads were counted to have done, where that was recorded.
fn tally(recording: &Recording, what: u32, lo: Nanos, hi: Nanos, votes: &mut BTreeMap<Tid, u64>) {
    for tally in recording.tallies.iter().filter(|tally| tally.what == what && within(tally.head.ts, lo, hi)) {
        let count = votes.entry(tally.head.tid).or_default();
        *count = count.saturating_add(tally.count.into());
    }
}

/// Tallies of folios made dirty, and of changes of a process's memory.
const DIRTIED: u32 = 0;
const TAKEN: u32 = 1;

/// Records of memory work by threads; pages, or milliseconds of throttling, are their amount.
fn reclaims(recording: &Recording, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &Reclaim> {
    let threads = move |reclaim: &&Reclaim| reclaim.what != BY_KSWAPD && within(reclaim.head.ts, lo, hi);
    recording.reclaims.iter().filter(threads)
}

/// Whether memory work took pages that the waiter may have had.
fn reaches(recording: &Recording, reclaim: &Reclaim, waiter: Tid) -> bool {
    let group = |tid| recording.tasks.life(tid, reclaim.head.ts).map(|life| life.cgroup);
    reclaim.what != IN_GROUP || group(waiter) == group(reclaim.head.tid)
}

/// The thread outside the application that took the memory in which the waiter's pages were: memory was
/// short in the seconds before, and that thread took most. `None` where no memory was freed.
pub(crate) fn evictor(budget: &Budget<'_>, group: &BlameGroup) -> Option<Tid> {
    let recording = budget.recording;
    let first = budget.pieces(group).min_by_key(|piece| piece.lo)?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let lo = first.lo.before(TAKEN_BEFORE);
    let freed = |reclaim: &&Reclaim| reclaim.what != THROTTLED && reaches(recording, reclaim, first.tid);
    let freed = reclaims(recording, lo, hi).filter(freed).map(|reclaim| reclaim.amount.min(AMOUNT_MAX)).sum::<u64>();
    let short = freed >= FREED_MIN || kswapd_ran(recording, lo, hi) >= KSWAPD_MIN;
    memory_taker(budget, first.tid, first.lo, hi).filter(|_| short)
}

/// How long the kernel's own threads freed memory.
fn kswapd_ran(recording: &Recording, lo: Nanos, hi: Nanos) -> Nanos {
    let threads = recording.tasks.lives().iter().filter(|life| life.is_kernel() && life.comm.starts_with("kswapd"));
    let ran = threads
        .flat_map(|life| recording.timeline.spans(life.tid))
        .filter(|span| span.segment.state == ThreadState::Running && span.start < hi && span.end > lo);
    Nanos(ran.map(|span| span.end.min(hi).since(span.start.max(lo)).0).fold(0, u64::saturating_add))
}

/// Memory that is missing now was taken at most this long before.
const TAKEN_BEFORE: Nanos = Nanos::from_secs(5);

/// Pages of one record beyond this are not believed.
const AMOUNT_MAX: u64 = 1 << 20;

/// Memory was short where this many pages were freed by threads that needed some, or the kernel's own
/// threads freed for so long.
const FREED_MIN: u64 = 64;
const KSWAPD_MIN: Nanos = Nanos::from_millis(1);

/// The kernel's own reclaim, which is nobody's doing by itself.
const BY_KSWAPD: u32 = 3;

const ALLOCATING: [&str; 8] = [
    "do_anonymous_page",
    "clear_page",
    "clear_huge_page",
    "folio_zero_user",
    "__alloc_pages",
    "__alloc_frozen_pages",
    "shmem_get_folio",
    "filemap_add_folio",
];
