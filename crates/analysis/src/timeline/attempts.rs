// SPDX-License-Identifier: MIT OR Apache-2.0
//! File locks polled in a loop: a waiter that sleeps between two attempts at the same lock waits
//! for it.
//!
//! The attempts may come from one thread (a database), or from processes that one process starts in
//! sequence (a shell that runs `flock -n` and `sleep`).

use crate::timeline::tasks::Tasks;
use crate::timeline::threads::Span;
use std::collections::{BTreeMap, HashMap};
use tipme_record::records::Attempt;
use tipme_record::{Device, Nanos, Pid, Tid};

/// Maximum time between two attempts of one wait.
const BETWEEN_MAX: Nanos = Nanos::from_secs(10);

/// Maximum number of overlapping stretches of one waiter that are searched: one for each lock that
/// it polls.
const LOCKS_MAX: usize = 8;

/// Waiter for a lock: a thread that attempts it, or the parent of the processes that do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AttemptWaiter {
    Thread(Tid),
    Parent(Pid),
}

/// Time from a failed attempt to the next one, or to the mark.
#[derive(Clone, Copy, Debug)]
struct FailedStretch {
    lo: Nanos,
    hi: Nanos,
    failed: Attempt,
}

/// Attempts at file locks, and the waits that follow from them.
#[derive(Debug, Default)]
pub struct Attempts {
    /// By file and time.
    sorted: Vec<Attempt>,
    stretches: HashMap<AttemptWaiter, Vec<FailedStretch>>,
}

impl Attempts {
    pub fn new(mut attempts: Vec<Attempt>, tasks: &Tasks, mark: Nanos) -> Attempts {
        attempts.sort_by_key(|attempt| (file(attempt), attempt.head.ts));
        let mut rows: BTreeMap<(AttemptWaiter, (Device, u64)), Vec<Attempt>> = BTreeMap::new();
        for attempt in &attempts {
            let parent = tasks
                .process(attempt.pid, attempt.head.ts)
                .map(|life| AttemptWaiter::Parent(life.parent));
            for waiter in parent.into_iter().chain([AttemptWaiter::Thread(attempt.head.tid)]) {
                rows.entry((waiter, file(attempt))).or_default().push(*attempt);
            }
        }
        let mut stretches: HashMap<AttemptWaiter, Vec<FailedStretch>> = HashMap::new();
        for ((waiter, _), row) in rows {
            stretches.entry(waiter).or_default().extend(stretches_of(waiter, &row, tasks, mark));
        }
        stretches.values_mut().for_each(|list| list.sort_by_key(|stretch| stretch.lo));
        Attempts { sorted: attempts, stretches }
    }

    /// Returns the number of failed attempts at a file in `lo..=hi`.
    pub fn failures(&self, device: Device, inode: u64, lo: Nanos, hi: Nanos) -> u64 {
        let first =
            self.sorted.partition_point(|one| (file(one), one.head.ts) < ((device, inode), lo));
        let within = self.sorted[first..]
            .iter()
            .take_while(|one| file(one) == (device, inode) && one.head.ts <= hi);
        within.map(|one| u64::from(one.failures)).sum()
    }

    /// Returns the attempt before a sleep of a waiter, if another attempt followed it.
    pub fn before(&self, waiter: AttemptWaiter, span: &Span) -> Option<&Attempt> {
        let list = self.stretches.get(&waiter)?;
        let begun = list.partition_point(|stretch| stretch.lo <= span.start);
        let near = list[..begun].iter().rev().take(LOCKS_MAX);
        near.filter(|stretch| stretch.hi >= span.end).map(|stretch| &stretch.failed).next()
    }
}

fn file(attempt: &Attempt) -> (Device, u64) {
    (attempt.device, attempt.inode)
}

/// Returns the stretches between the attempts of one waiter at one file. The last stretch extends
/// to the mark, if it is at most twice as long as the longest one before it.
fn stretches_of(
    waiter: AttemptWaiter,
    row: &[Attempt],
    tasks: &Tasks,
    mark: Nanos,
) -> Vec<FailedStretch> {
    let pairs = row
        .windows(2)
        .filter(|pair| pair[0].failures > 0 && goes_on(waiter, &pair[0], &pair[1], tasks));
    let mut stretches: Vec<FailedStretch> = pairs
        .map(|pair| FailedStretch { lo: pair[0].head.ts, hi: pair[1].head.ts, failed: pair[0] })
        .collect();
    let longest = stretches.iter().map(|stretch| stretch.hi.since(stretch.lo)).max();
    if let Some((last, longest)) = row.last().filter(|last| last.failures > 0).zip(longest)
        && mark.since(last.head.ts).0 <= longest.0.saturating_mul(2)
    {
        stretches.push(FailedStretch { lo: last.head.ts, hi: mark, failed: *last });
    }
    stretches
}

/// Returns `true` if an attempt continues an earlier one: same thread, or a process started after
/// the earlier one exited.
fn goes_on(waiter: AttemptWaiter, one: &Attempt, next: &Attempt, tasks: &Tasks) -> bool {
    let soon = next.head.ts.since(one.head.ts) <= BETWEEN_MAX;
    soon && match waiter {
        AttemptWaiter::Thread(_) => true,
        AttemptWaiter::Parent(_) => {
            let life = tasks.process(one.pid, one.head.ts);
            one.pid != next.pid && life.is_some_and(|life| life.until <= next.head.ts)
        }
    }
}
