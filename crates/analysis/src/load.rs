// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who filled a device's queue while the application waited for it.

use crate::describe::{bytes_text, count_text};
use crate::disk::Request;
use crate::jobs::{Job, Members};
use crate::partition::{Budget, Group};
use crate::recording::Recording;
use std::collections::BTreeMap;
use tipme_record::records::Reclaim;
use tipme_record::{Device, Nanos, Tid};

/// A request costs a device about as much as this many bytes more.
const REQUEST_COST: u64 = 128 * 1024;

/// Requests of others must be this share of all to be the cause.
const OTHERS_MIN: f64 = 0.3;

/// Pages are written back this long after they were dirtied.
const DIRTY_BEFORE: Nanos = Nanos::from_secs(30);

/// Requests of one job.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    pub reads: u64,
    pub writes: u64,
    pub bytes: u64,
    pub members: Members,
}

/// Requests on a device during a group of waits.
pub struct Load {
    pub own: Requests,
    /// The job with the most requests besides the application, where it had enough of them.
    pub other: Option<(Job, Requests)>,
    /// The kernel wrote back what the other job had dirtied.
    pub written_back: bool,
}

impl Requests {
    fn add(&mut self, request: &Request) {
        let count = if request.is_write() { &mut self.writes } else { &mut self.reads };
        *count += 1;
        self.bytes = self.bytes.saturating_add(u64::from(request.bytes));
    }

    fn weight(&self) -> u64 {
        self.bytes.saturating_add((self.reads + self.writes).saturating_mul(REQUEST_COST))
    }

    /// `1,412 writes (1.2 GiB)`.
    pub fn text(&self) -> String {
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
pub fn load(budget: &Budget<'_>, group: &Group, device: Option<Device>) -> Load {
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

fn weigh(budget: &Budget<'_>, own: Requests, others: BTreeMap<Job, Requests>, at: Nanos) -> Load {
    let all = others.values().fold(own.weight(), |sum, job| sum.saturating_add(job.weight()));
    let most = others.into_iter().max_by_key(|(_, requests)| requests.weight());
    let other = most.filter(|(_, requests)| requests.weight() as f64 >= OTHERS_MIN * all as f64);
    match other {
        Some((Job::Kernel(name), mut requests)) => {
            let dirtier = dirtier(budget.recording, at).filter(|_| requests.writes > 0);
            let job = dirtier.map(|tid| budget.jobs.of(tid, at));
            if let Some(tid) = dirtier {
                requests.members = Members::default();
                requests.members.add(budget.recording.tasks.pid(tid, at), 1);
            }
            let written_back = job.is_some();
            Load { own, other: Some((job.unwrap_or(Job::Kernel(name)), requests)), written_back }
        }
        other => Load { own, other, written_back: false },
    }
}

/// The thread that dirtied most: one that was throttled for it, or was seen writing files.
fn dirtier(recording: &Recording, at: Nanos) -> Option<Tid> {
    let lo = at.before(DIRTY_BEFORE);
    let mut votes: BTreeMap<Tid, u64> = BTreeMap::new();
    for reclaim in recording.reclaims.iter().filter(|reclaim| throttles(reclaim) && within(reclaim.head.ts, lo, at)) {
        *votes.entry(reclaim.head.tid).or_default() += 10;
    }
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

fn within(ts: Nanos, lo: Nanos, hi: Nanos) -> bool {
    lo <= ts && ts <= hi
}

fn throttles(reclaim: &Reclaim) -> bool {
    reclaim.what == 2
}

/// The thread outside the application that reclaimed most memory, or allocated most, around a time.
pub fn memory_taker(budget: &Budget<'_>, lo: Nanos, hi: Nanos) -> Option<Tid> {
    let recording = budget.recording;
    let lo = lo.before(Nanos::from_secs(5));
    let foreign = |tid: Tid| {
        let life = recording.tasks.life(tid, hi);
        life.is_some_and(|life| !life.is_kernel() && !budget.judge.is_family(life.pid))
    };
    let mut votes: BTreeMap<Tid, u64> = BTreeMap::new();
    for reclaim in recording.reclaims.iter().filter(|reclaim| within(reclaim.head.ts, lo, hi) && reclaim.what < 3) {
        let pages = if reclaim.what == 0 { reclaim.amount.min(1 << 20) } else { 0 };
        *votes.entry(reclaim.head.tid).or_default() += 1 + pages;
    }
    for sample in recording.samples.iter().filter(|sample| within(sample.head.ts, lo, hi)) {
        let allocates = recording
            .names
            .kernel_functions(sample.kernel_stack)
            .any(|name| ALLOCATING.iter().any(|prefix| name.starts_with(prefix)));
        if allocates {
            *votes.entry(sample.head.tid).or_default() += 100;
        }
    }
    votes.into_iter().filter(|(tid, _)| foreign(*tid)).max_by_key(|(_, votes)| *votes).map(|(tid, _)| tid)
}

const ALLOCATING: [&str; 5] =
    ["do_anonymous_page", "clear_page", "clear_huge_page", "__alloc_pages", "shmem_get_folio"];
