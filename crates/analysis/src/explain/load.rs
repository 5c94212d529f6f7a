// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that filled the queue of a device, or took memory, while the application waited.

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
use tipme_record::records::Reclaim;
use tipme_record::{Device, Nanos, Pid, RingClass, Tid};

/// Cost of a request to a device, in bytes.
const REQUEST_COST: u64 = 128 * 1024;

/// Minimum amount of writeback for its writer to be the cause, in bytes including the cost of each
/// request.
const WRITTEN_BACK_MIN: u64 = 1024 * 1024;

/// Minimum share of all requests, by cost, that others must have to be the cause.
const OTHERS_MIN: f64 = 0.3;

/// Name prefixes of the kernel functions that submit requests to a device.
const REQUEST_MAKERS: [&str; 4] = ["submit_bio", "__submit_bio", "blk_", "__blk_"];

/// Maximum time from dirtying a page to its writeback.
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
    /// Job with the most requests besides the application, if other jobs had enough of them.
    pub other: Option<(Job, Requests)>,
    /// Number of other jobs with requests, and the sum of those.
    pub rest: (usize, Requests),
    /// The kernel wrote back pages that the other job had dirtied.
    pub written_back: bool,
}

impl Requests {
    fn add(&mut self, request: &DiskRequest) {
        let count = if request.is_write() { &mut self.writes } else { &mut self.reads };
        *count += 1;
        self.bytes = self.bytes.saturating_add(u64::from(request.bytes));
    }

    fn sum<'a>(all: impl Iterator<Item = &'a Requests>) -> Requests {
        all.fold(Requests::default(), |sum: Requests, one: &Requests| Requests {
            reads: sum.reads + one.reads,
            writes: sum.writes + one.writes,
            bytes: sum.bytes.saturating_add(one.bytes),
            ..sum
        })
    }

    pub(crate) fn weight(&self) -> u64 {
        self.bytes.saturating_add((self.reads + self.writes).saturating_mul(REQUEST_COST))
    }

    /// Formats `1,412 writes (1.2 GiB)`.
    pub(crate) fn text(&self) -> String {
        let what = match (self.reads, self.writes) {
            (reads, 0) => format!("{} {}", count_text(reads), plural(reads, "read")),
            (0, writes) => format!("{} {}", count_text(writes), plural(writes, "write")),
            (reads, writes) => {
                format!("{} reads and {} writes", count_text(reads), count_text(writes))
            }
        };
        format!("{what} ({})", bytes_text(self.bytes))
    }
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Sums up the requests outstanding on a device during the pieces of a group, by job.
pub(crate) fn load(budget: &Budget<'_>, group: &BlameGroup, device: Option<Device>) -> Load {
    let recording = budget.recording;
    let mut spans: Vec<(Nanos, Nanos)> =
        budget.pieces(group).map(|piece| (piece.lo, piece.hi)).collect();
    spans.sort_unstable();
    let (lo, hi) = (
        spans.first().map_or(Nanos(0), |span| span.0),
        spans.last().map_or(Nanos(0), |span| span.1),
    );
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

/// Returns a process and the part of its own computation spent on submitting requests to devices,
/// by its samples. An emulated device of a virtual machine makes the CPU wait at that point.
pub(crate) fn made_by(budget: &Budget<'_>, group: &BlameGroup) -> (Option<Pid>, u64) {
    let Some(first) =
        budget.pieces(group).next().filter(|_| group.kind == CauseKind::OwnComputation)
    else {
        return (None, 0);
    };
    let recording = budget.recording;
    let samples =
        budget.pieces(group).flat_map(|piece| recording.samples_of(piece.tid, piece.lo, piece.hi));
    let (mut made, mut all) = (0, 0);
    for sample in samples {
        all += 1;
        made += u64::from(
            recording
                .names
                .kernel_functions(sample.kernel_stack)
                .any(|name| REQUEST_MAKERS.iter().any(|begin| name.starts_with(begin))),
        );
    }
    (Some(recording.tasks.pid(first.tid, first.lo)), group.nanos / all.max(1) * made)
}

/// Returns the time for which a device was idle in a group's waits, if that is more than half of
/// them: its queue was empty. Returns `None` if requests may have been lost meanwhile, and unless
/// most waits end with a request that was issued within them, or are waits of throttled writers.
/// Other waits without a request, such as for a remote file, never reach a device.
pub(crate) fn idle_meanwhile(
    budget: &Budget<'_>,
    group: &BlameGroup,
    device: Device,
) -> Option<Nanos> {
    let disk = &budget.recording.disk;
    // A journal commit also waits for threads in the middle of a change.
    let for_io = |piece: &&ChainPiece| match piece.doing {
        Doing::Waited(Waited::Fsync, wait) => wait.is_some_and(|wait| waits_for_io(wait.state)),
        _ => true,
    };
    let got_late =
        |piece: &&ChainPiece| is_throttled(piece) || disk.served(device, piece.lo, piece.hi);
    let waits: Vec<&ChainPiece> = budget.pieces(group).filter(for_io).filter(got_late).collect();
    let (lo, hi) =
        (waits.iter().map(|piece| piece.lo).min()?, waits.iter().map(|piece| piece.hi).max()?);
    let busy = disk.busy(device, lo, hi);
    let all = waits
        .iter()
        .map(|piece| idle_within(&busy, piece.lo, piece.hi))
        .fold(Nanos(0), Nanos::after);
    let lost = || waits.iter().any(|piece| lost_within(budget.recording, piece.lo, piece.hi));
    (all.0.saturating_mul(2) > group.nanos && !lost()).then_some(all)
}

/// Returns the part of `lo..hi` outside of `busy`, which is in order of time.
fn idle_within(busy: &[(Nanos, Nanos)], lo: Nanos, hi: Nanos) -> Nanos {
    let first = busy.partition_point(|(_, end)| *end <= lo);
    let within = busy[first..].iter().take_while(|(start, _)| *start < hi);
    let busy =
        within.map(|(start, end)| hi.min(*end).since(lo.max(*start))).fold(Nanos(0), Nanos::after);
    hi.since(lo).since(busy)
}

/// Returns `true` if records of requests may have been lost in a time; losses are counted per
/// second.
fn lost_within(recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
    recording
        .losses
        .per_second
        .iter()
        .filter(|loss| loss.class == RingClass::Rare.name())
        .any(|loss| lo.0 < loss.until_ns && Nanos(loss.until_ns).before(SECOND) < hi)
}

fn weigh(
    budget: &Budget<'_>,
    own: Requests,
    mut others: BTreeMap<Job, Requests>,
    at: Nanos,
) -> Load {
    // Kernel threads read for others, such as for throttled jobs, but the records do not show for
    // which.
    others.retain(|job, requests| {
        !matches!(job, Job::Kernel(_)) || requests.reads <= requests.writes
    });
    let of_others =
        others.values().fold(0, |sum: u64, requests| sum.saturating_add(requests.weight()));
    let enough = of_others as f64 >= OTHERS_MIN * of_others.saturating_add(own.weight()) as f64;
    let most =
        others.iter().max_by_key(|(_, requests)| requests.weight()).map(|(job, _)| job.clone());
    let other = most.filter(|_| enough).and_then(|job| others.remove_entry(&job));
    let mut load = Load {
        own,
        other: None,
        rest: (others.len(), Requests::sum(others.values())),
        written_back: false,
    };
    match other {
        Some((Job::Kernel(name), mut requests)) => {
            let dirtier = dirtier(budget.recording, at).filter(|_| requests.writes > 0);
            if requests.weight() < WRITTEN_BACK_MIN {
                // So little load keeps no device busy: the device itself was slow.
                return load;
            }
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

/// Returns the thread that dirtied the most pages: one that was throttled for it, or was sampled
/// while writing files.
fn dirtier(recording: &Recording, at: Nanos) -> Option<Tid> {
    let lo = at.before(DIRTY_BEFORE);
    let mut votes: BTreeMap<Tid, u64> = BTreeMap::new();
    for reclaim in recording
        .reclaims
        .iter()
        .filter(|reclaim| throttles(reclaim) && within(reclaim.head.ts, lo, at))
    {
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

/// Returns `true` if the kernel held back a writer because of too many dirty pages.
pub(crate) fn is_throttled(piece: &ChainPiece) -> bool {
    matches!(piece.doing, Doing::Waited(Waited::DirtyLimit, _))
}

/// Returns the thread that had written the data of a group's waits, if they are for the data of all
/// programs: system-wide syncs, and waits of throttled writers.
pub(crate) fn writer_for_all(budget: &Budget<'_>, group: &BlameGroup) -> Option<Tid> {
    let syncs = |piece: &ChainPiece| matches!(piece.doing, Doing::Waited(_, Some(wait)) if syncs_all(&wait));
    let first = budget
        .pieces(group)
        .filter(|piece| is_throttled(piece) || syncs(piece))
        .min_by_key(|piece| piece.lo)?;
    dirtier(budget.recording, first.lo)
}

fn within(ts: Nanos, lo: Nanos, hi: Nanos) -> bool {
    lo <= ts && ts <= hi
}

fn throttles(reclaim: &Reclaim) -> bool {
    reclaim.what == THROTTLED
}

/// Returns the thread outside the application that reclaimed or allocated the most memory around a
/// time.
///
/// Reclaim inside a control group counts only if `waiter` is in the same one: it takes nothing from
/// others.
pub(crate) fn memory_taker(budget: &Budget<'_>, waiter: Tid, lo: Nanos, hi: Nanos) -> Option<Tid> {
    let recording = budget.recording;
    let lo = lo.before(TAKEN_BEFORE);
    let foreign = |tid: Tid| {
        let life = recording.tasks.life(tid, hi);
        life.is_some_and(|life| !life.is_kernel() && !budget.judge.is_family(life.pid))
    };
    let mut votes: BTreeMap<Tid, u64> = BTreeMap::new();
    for reclaim in reclaims(recording, lo, hi).filter(|reclaim| reaches(recording, reclaim, waiter))
    {
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

/// Returns `true` if memory was short inside a control group only. The group's own reclaimers are
/// then to blame, however much memory others took from the machine.
fn only_in_group(recording: &Recording, lo: Nanos, hi: Nanos) -> bool {
    let mut all =
        recording.reclaims.iter().filter(|reclaim| within(reclaim.head.ts, lo, hi)).peekable();
    all.peek().is_some() && all.all(|reclaim| reclaim.what == IN_GROUP || reclaim.what == THROTTLED)
}

/// Adds the recorded counts of threads to their votes.
fn tally(recording: &Recording, what: u32, lo: Nanos, hi: Nanos, votes: &mut BTreeMap<Tid, u64>) {
    for tally in
        recording.tallies.iter().filter(|tally| tally.what == what && within(tally.head.ts, lo, hi))
    {
        let count = votes.entry(tally.head.tid).or_default();
        *count = count.saturating_add(tally.count.into());
    }
}

/// Kinds of tallies: folios dirtied, and changes of a process's memory.
const DIRTIED: u32 = 0;
const TAKEN: u32 = 1;

/// Returns the records of memory work by threads. Their amount is in pages, or in milliseconds of
/// throttling.
fn reclaims(recording: &Recording, lo: Nanos, hi: Nanos) -> impl Iterator<Item = &Reclaim> {
    let threads =
        move |reclaim: &&Reclaim| reclaim.what != BY_KSWAPD && within(reclaim.head.ts, lo, hi);
    recording.reclaims.iter().filter(threads)
}

/// Returns `true` if a reclaim may have taken pages of the waiter.
fn reaches(recording: &Recording, reclaim: &Reclaim, waiter: Tid) -> bool {
    let group = |tid| recording.tasks.life(tid, reclaim.head.ts).map(|life| life.cgroup);
    reclaim.what != IN_GROUP || group(waiter) == group(reclaim.head.tid)
}

/// Returns the thread outside the application that caused the eviction of the waiter's pages:
/// memory was short in the seconds before, and that thread took the most. Returns `None` if no
/// memory was freed.
pub(crate) fn evictor(budget: &Budget<'_>, group: &BlameGroup) -> Option<Tid> {
    let recording = budget.recording;
    let first = budget.pieces(group).min_by_key(|piece| piece.lo)?;
    let hi = budget.pieces(group).map(|piece| piece.hi).max()?;
    let lo = first.lo.before(TAKEN_BEFORE);
    let freed =
        |reclaim: &&Reclaim| reclaim.what != THROTTLED && reaches(recording, reclaim, first.tid);
    let freed = reclaims(recording, lo, hi)
        .filter(freed)
        .map(|reclaim| reclaim.amount.min(AMOUNT_MAX))
        .sum::<u64>();
    let short = freed >= FREED_MIN || kswapd_ran(recording, lo, hi) >= KSWAPD_MIN;
    memory_taker(budget, first.tid, first.lo, hi).filter(|_| short)
}

/// Returns the running time of the kswapd threads.
fn kswapd_ran(recording: &Recording, lo: Nanos, hi: Nanos) -> Nanos {
    let threads = recording
        .tasks
        .lives()
        .iter()
        .filter(|life| life.is_kernel() && life.comm.starts_with("kswapd"));
    let ran = threads.flat_map(|life| recording.timeline.spans(life.tid)).filter(|span| {
        span.segment.state == ThreadState::Running && span.start < hi && span.end > lo
    });
    Nanos(ran.map(|span| span.end.min(hi).since(span.start.max(lo)).0).fold(0, u64::saturating_add))
}

/// Maximum time from the allocation of memory to the shortage that it caused.
const TAKEN_BEFORE: Nanos = Nanos::from_secs(5);

/// Maximum credible number of pages in one record.
const AMOUNT_MAX: u64 = 1 << 20;

/// Memory was short if threads freed at least this many pages themselves, or kswapd ran for at
/// least this long.
const FREED_MIN: u64 = 64;
const KSWAPD_MIN: Nanos = Nanos::from_millis(1);

/// Reclaim by kswapd, which no thread causes directly.
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
