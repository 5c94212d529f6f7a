// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which threads are in a control group with a quota.
//!
//! In it is whoever the kernel took from its CPU for the quota, and who was listed there at the mark. Of a process of which
//! other threads were elsewhere at the mark, these threads are all; else its further threads are in the group, too: those
//! that had ended by then, and those of a process that had moved on.
//!
//! The list is read a while after the mark. Who lived at the mark and had ended by then is not in it, which says nothing: it
//! was elsewhere no more than one that had ended before. Such a thread of a parted process was where its main thread is.

use crate::timeline::tasks::Tasks;
use std::collections::{BTreeMap, BTreeSet};
use tipme_record::incident::LimitedGroup;
use tipme_record::records::Throttled;
use tipme_record::{Nanos, Pid, Tid};

/// The members of one group.
#[derive(Debug, Default)]
pub(crate) struct QuotaMembers {
    /// When each of its threads was taken from its CPU, in the order of time.
    taken: BTreeMap<Tid, Vec<Nanos>>,
    at_mark: BTreeSet<Tid>,
    /// The processes of both.
    processes: BTreeSet<Pid>,
    /// Those of which other threads were elsewhere.
    parted: BTreeSet<Pid>,
    /// Threads that had ended before the list was read.
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
        let at_mark: BTreeSet<Tid> = known.iter().flat_map(|group| &group.tids).map(|tid| Tid(*tid)).collect();
        let listed: BTreeSet<Pid> = at_mark.iter().map(|tid| tasks.pid(*tid, Nanos(u64::MAX))).collect();
        let living = tasks.lives().iter().filter(|life| life.until == Nanos(u64::MAX));
        let elsewhere = living
            .filter(|life| listed.contains(&life.pid) && !at_mark.contains(&life.tid) && !ended.contains(&life.tid));
        let parted = elsewhere.map(|life| life.pid).collect();
        let told = known.iter().flat_map(|group| &group.pids).map(|pid| Pid(*pid));
        let processes = records.iter().map(|record| record.pid).chain(told).chain(listed).collect();
        QuotaMembers { taken, at_mark, processes, parted, ended: ended.clone() }
    }

    /// Whether a thread of this process is in the group.
    pub(crate) fn has(&self, tid: Tid, pid: Pid) -> bool {
        let whole = self.processes.contains(&pid) && !self.parted.contains(&pid);
        let known = |tid: &Tid| self.at_mark.contains(tid) || self.taken.contains_key(tid);
        whole || known(&tid) || self.ended.contains(&tid) && known(&Tid(pid.0))
    }

    /// When a thread was taken from its CPU last in `lo..=hi`.
    pub(crate) fn last_taken(&self, tid: Tid, lo: Nanos, hi: Nanos) -> Option<Nanos> {
        let times = self.taken.get(&tid)?;
        let last = times.partition_point(|at| *at <= hi).checked_sub(1)?;
        times.get(last).copied().filter(|at| *at >= lo)
    }
}
