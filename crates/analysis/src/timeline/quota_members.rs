// SPDX-License-Identifier: MIT OR Apache-2.0
//! Membership of threads in a control group with a quota.
//!
//! Members are the threads that the kernel throttled for the quota, and those listed in the group
//! at the mark. For a process with other threads elsewhere at the mark, only the throttled and
//! listed threads are members. Otherwise all its threads are members, including those that had
//! exited by then and those of a process that had moved on.
//!
//! The recorder reads the list a while after the mark. A thread alive at the mark that exited
//! before the list was read is missing from it, which does not show that it was elsewhere. Such a
//! thread of a split process was in the group of its main thread.

use crate::timeline::tasks::Tasks;
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::incident::LimitedGroup;
use tipme_record::records::Throttled;
use tipme_record::{Nanos, Pid, Tid};

/// Members of one group.
#[derive(Debug, Default)]
pub(crate) struct QuotaMembers {
    /// Times at which each thread was throttled, in chronological order.
    taken: BTreeMap<Tid, Vec<Nanos>>,
    at_mark: BTreeSet<Tid>,
    /// Processes of the throttled and the listed threads.
    processes: BTreeSet<Pid>,
    /// Processes that had other threads elsewhere.
    parted: BTreeSet<Pid>,
    /// Threads that exited before the list was read.
    ended: BTreeSet<Tid>,
}

impl QuotaMembers {
    pub(crate) fn new(
        records: &[&Throttled],
        known: Option<&LimitedGroup>,
        ended: &BTreeSet<Tid>,
        tasks: &Tasks,
    ) -> QuotaMembers {
        let mut taken: BTreeMap<Tid, Vec<Nanos>> = BTreeMap::new();
        for record in records {
            taken.entry(record.head.tid).or_default().push(record.head.ts);
        }
        taken.values_mut().for_each(|times| times.sort_unstable());
        let at_mark: BTreeSet<Tid> =
            known.iter().flat_map(|group| &group.tids).map(|tid| Tid(*tid)).collect();
        let listed: BTreeSet<Pid> =
            at_mark.iter().map(|tid| tasks.pid(*tid, Nanos(u64::MAX))).collect();
        let living = tasks.lives().iter().filter(|life| life.until == Nanos(u64::MAX));
        let elsewhere = living.filter(|life| {
            listed.contains(&life.pid) && !at_mark.contains(&life.tid) && !ended.contains(&life.tid)
        });
        let parted = elsewhere.map(|life| life.pid).collect();
        let in_group = known.iter().flat_map(|group| &group.pids).map(|pid| Pid(*pid));
        let throttled = records.iter().map(|record| record.pid);
        let processes = throttled.chain(in_group).chain(listed).collect();
        QuotaMembers { taken, at_mark, processes, parted, ended: ended.clone() }
    }

    /// Returns `true` if the thread of this process is in the group.
    pub(crate) fn has(&self, tid: Tid, pid: Pid) -> bool {
        let whole = self.processes.contains(&pid) && !self.parted.contains(&pid);
        whole || self.lists(tid) || self.ended.contains(&tid) && self.lists(Tid(pid.0))
    }

    /// Returns `true` if a thread was throttled or is listed.
    fn lists(&self, tid: Tid) -> bool {
        self.at_mark.contains(&tid) || self.taken.contains_key(&tid)
    }

    /// Returns the last time in `lo..=hi` at which a thread was throttled.
    pub(crate) fn last_taken(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        let times = self.taken.get(&tid)?;
        let last = times.partition_point(|at| *at <= hi).checked_sub(1)?;
        times.get(last).copied().filter(|at| *at >= lo)
    }
}
