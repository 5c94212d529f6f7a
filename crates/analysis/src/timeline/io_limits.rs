// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups with I/O limits: their limits and members at the mark.

use crate::decode::bytes::clean;
use crate::timeline::tasks::Tasks;
use std::collections::BTreeSet;
use tipme_record::incident::IoLimitedGroup;
use tipme_record::{Device, Nanos, Pid, Tid};

/// Maximum number of groups read, and of limits per group.
const GROUPS_MAX: usize = 256;
const LIMITS_MAX: usize = 64;

/// I/O limit of one kind for one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupIoLimit {
    /// Directory of the control group.
    pub folder: String,
    /// File that sets the limit.
    pub file: String,
    pub device: Device,
    /// `true` for writes, `false` for reads.
    pub write: bool,
    /// `true` for operations, `false` for bytes.
    pub operations: bool,
    pub per_second: u64,
}

/// Limits of one group, with its members.
#[derive(Debug)]
struct IoLimitMembers {
    limits: Vec<GroupIoLimit>,
    tids: BTreeSet<Tid>,
    pids: BTreeSet<Pid>,
}

/// All groups with I/O limits.
#[derive(Debug, Default)]
pub struct IoLimits {
    groups: Vec<IoLimitMembers>,
    /// Threads in any of the groups.
    known: BTreeSet<Tid>,
}

impl IoLimits {
    pub(crate) fn new(groups: &[IoLimitedGroup], tasks: &Tasks) -> IoLimits {
        let groups: Vec<IoLimitMembers> =
            groups.iter().take(GROUPS_MAX).map(|known| group(known, tasks)).collect();
        let known = groups.iter().flat_map(|group| group.tids.iter().copied()).collect();
        IoLimits { groups, known }
    }

    /// Returns the I/O limits of a thread. An exited thread was in the group of the other threads
    /// of its process; an exited process in that of its nearest ancestor that is alive or has a
    /// known limit.
    pub(crate) fn limits(&self, tasks: &Tasks, tid: Tid, at: Nanos) -> Vec<&GroupIoLimit> {
        if self.groups.is_empty() {
            return Vec::new();
        }
        if self.known.contains(&tid) {
            let groups = self.groups.iter().filter(|group| group.tids.contains(&tid));
            return groups.flat_map(|group| &group.limits).collect();
        }
        let pid = tasks.pid(tid, at);
        let own = self.process_limits(pid);
        if !own.is_empty()
            || tasks.process(pid, at).is_some_and(|life| life.until == Nanos(u64::MAX))
        {
            return own;
        }
        // The search stops at a live ancestor: it is in no limited group, or it did not wait for
        // I/O and so the recorder did not read its group.
        let mut parents = tasks
            .ancestors(pid, at)
            .skip(1)
            .map(|parent| (self.process_limits(parent.pid), parent.until));
        let known = parents.find(|(limits, until)| !limits.is_empty() || *until == Nanos(u64::MAX));
        known.map(|(limits, _)| limits).unwrap_or_default()
    }

    fn process_limits(&self, pid: Pid) -> Vec<&GroupIoLimit> {
        let groups = self.groups.iter().filter(|group| group.pids.contains(&pid));
        groups.flat_map(|group| &group.limits).collect()
    }
}

fn group(known: &IoLimitedGroup, tasks: &Tasks) -> IoLimitMembers {
    let folder = clean(&known.folder);
    let limits = known.limits.iter().take(LIMITS_MAX).map(|limit| GroupIoLimit {
        folder: folder.clone(),
        file: clean(&limit.file),
        device: Device(limit.device),
        write: limit.write,
        operations: limit.operations,
        per_second: limit.per_second,
    });
    let tids: BTreeSet<Tid> = known.tids.iter().copied().map(Tid).collect();
    let pids = tids.iter().map(|tid| tasks.pid(*tid, Nanos(u64::MAX))).collect();
    IoLimitMembers { limits: limits.collect(), tids, pids }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a group with the given threads and more limits than are read.
    fn known(tids: Vec<u32>) -> IoLimitedGroup {
        let limit = tipme_record::incident::IoLimit {
            per_second: 9,
            file: "/a/io.max\u{1b}[2J".into(),
            ..Default::default()
        };
        IoLimitedGroup { folder: "/a".into(), limits: vec![limit; 2 * LIMITS_MAX], tids }
    }

    #[test]
    fn numbers_and_texts_of_limits_are_bounded() {
        let limits = IoLimits::new(&vec![known(vec![7]); 2 * GROUPS_MAX], &Tasks::default());
        let of = limits.limits(&Tasks::default(), Tid(7), Nanos(1));
        assert_eq!(of.len(), GROUPS_MAX * LIMITS_MAX);
        assert!(!of[0].file.contains('\u{1b}'), "{}", of[0].file);
    }

    #[test]
    fn a_thread_in_no_group_has_no_limit() {
        let limits = IoLimits::new(&[known(vec![7])], &Tasks::default());
        assert!(limits.limits(&Tasks::default(), Tid(8), Nanos(1)).is_empty());
    }

    #[test]
    fn an_older_document_without_limits_is_read() {
        let old: tipme_record::incident::Groups =
            serde_json::from_str("{\"limited\":[]}").expect("it is one");
        assert!(
            old.io.is_empty() && !serde_json::to_string(&old).expect("it is JSON").contains("io")
        );
    }
}
