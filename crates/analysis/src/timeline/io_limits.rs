// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups that limit I/O: which limits they had at the mark, and around whom.

use crate::decode::bytes::clean;
use crate::timeline::tasks::Tasks;
use std::collections::BTreeSet;
use tipme_record::incident::IoLimitedGroup;
use tipme_record::{Device, Nanos, Pid, Tid};

/// Groups, and limits of one, beyond these are not read.
const GROUPS_MAX: usize = 256;
const LIMITS_MAX: usize = 64;

/// A limit on I/O of one kind to one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupIoLimit {
    /// The folder of its control group.
    pub folder: String,
    /// The file that sets it.
    pub file: String,
    pub device: Device,
    /// Writes, else reads.
    pub write: bool,
    /// Operations are counted, else bytes.
    pub operations: bool,
    pub per_second: u64,
}

/// The limits of one group.
#[derive(Debug)]
struct IoLimitMembers {
    limits: Vec<GroupIoLimit>,
    tids: BTreeSet<Tid>,
    pids: BTreeSet<Pid>,
}

/// All that limit I/O.
#[derive(Debug, Default)]
pub struct IoLimits {
    groups: Vec<IoLimitMembers>,
    /// The threads that are in one.
    known: BTreeSet<Tid>,
}

impl IoLimits {
    pub(crate) fn new(groups: &[IoLimitedGroup], tasks: &Tasks) -> IoLimits {
        let groups: Vec<IoLimitMembers> = groups.iter().take(GROUPS_MAX).map(|known| group(known, tasks)).collect();
        let known = groups.iter().flat_map(|group| group.tids.iter().copied()).collect();
        IoLimits { groups, known }
    }

    /// The limits around a thread. One that had ended was where the others of its process are, a process that had ended
    /// where the nearest of its parents is that lives or of which a limit is known.
    pub(crate) fn of(&self, tasks: &Tasks, tid: Tid, at: Nanos) -> Vec<&GroupIoLimit> {
        let limits = |is_in: &dyn Fn(&IoLimitMembers) -> bool| -> Vec<&GroupIoLimit> {
            self.groups.iter().filter(|group| is_in(group)).flat_map(|group| &group.limits).collect()
        };
        let by_process = |pid: Pid| limits(&|group| group.pids.contains(&pid));
        if self.groups.is_empty() {
            return Vec::new();
        }
        if self.known.contains(&tid) {
            return limits(&|group| group.tids.contains(&tid));
        }
        let pid = tasks.pid(tid, at);
        let own = by_process(pid);
        if !own.is_empty() || tasks.process(pid, at).is_some_and(|life| life.until == Nanos(u64::MAX)) {
            return own;
        }
        // Nor further up than to one that lived: it is in no group with a limit, or had not waited for I/O and was not asked.
        let mut parents = tasks.ancestors(pid, at).skip(1).map(|parent| (by_process(parent.pid), parent.until));
        let known = parents.find(|(limits, until)| !limits.is_empty() || *until == Nanos(u64::MAX));
        known.map(|(limits, _)| limits).unwrap_or_default()
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

    /// What a file says is in one group, with threads.
    fn known(tids: Vec<u32>) -> IoLimitedGroup {
        let limit =
            tipme_record::incident::IoLimit { per_second: 9, file: "/a/io.max\u{1b}[2J".into(), ..Default::default() };
        IoLimitedGroup { folder: "/a".into(), limits: vec![limit; 2 * LIMITS_MAX], tids }
    }

    #[test]
    fn what_a_file_says_is_bounded_and_cleaned() {
        let limits = IoLimits::new(&vec![known(vec![7]); 2 * GROUPS_MAX], &Tasks::default());
        let of = limits.of(&Tasks::default(), Tid(7), Nanos(1));
        assert_eq!(of.len(), GROUPS_MAX * LIMITS_MAX);
        assert!(!of[0].file.contains('\u{1b}'), "{}", of[0].file);
    }

    #[test]
    fn who_is_in_no_group_has_no_limit() {
        let limits = IoLimits::new(&[known(vec![7])], &Tasks::default());
        assert!(limits.of(&Tasks::default(), Tid(8), Nanos(1)).is_empty());
    }

    #[test]
    fn a_document_without_limits_is_one_of_before() {
        let old: tipme_record::incident::Groups = serde_json::from_str("{\"limited\":[]}").expect("it is one");
        assert!(old.io.is_empty() && !serde_json::to_string(&old).expect("it is JSON").contains("io"));
    }
}
