// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on I/O of the control groups around threads that had waited for it.
//!
//! The kernel tells of nobody whose I/O it holds back. So the groups of those who waited, and all above them, are asked
//! at the mark: a limit that holds is still there then. Of a process that has ended nothing is known, but a child begins in
//! the groups of its parent: the nearest one that lives is asked instead.

use super::hierarchy::{CgroupVersion, Hierarchy};
use crate::owners::waits;
use crate::processes::text;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use tipme_record::incident::{IoLimit, IoLimitedGroup, Missing};
use tipme_record::records::{Exit, Wait};
use tipme_record::{Pid, RecordKind, Tid, entries};

/// The controller, as version 1 calls it.
const CONTROLLER: &str = "blkio";

/// Threads whose groups are looked up.
const THREADS: usize = 1_024;

/// Groups whose limits are read.
const GROUPS: usize = 256;

/// Limits that are kept of a group.
const LIMITS: usize = 64;

/// Bytes read of a file; a line that is cut is left out.
const FILE_BYTES: u64 = 16 * 1024;

/// Ended processes whose parents are kept; of further ones nobody is asked.
const ENDED: usize = 65_536;

/// Maximum number of parents that are tried for an ended process.
const PARENTS: usize = 32;

/// The bit of a wait's state that says it was for I/O.
const IO_WAIT: u16 = 1 << 15;

/// What a limit of one kind is called: its file in version 1, its key in version 2, writes or not, operations or not.
const KINDS: [(&str, &str, bool, bool); 4] = [
    ("blkio.throttle.read_bps_device", "rbps", false, false),
    ("blkio.throttle.write_bps_device", "wbps", true, false),
    ("blkio.throttle.read_iops_device", "riops", false, true),
    ("blkio.throttle.write_iops_device", "wiops", true, true),
];

/// The file of version 2.
const FILE: &str = "io.max";

/// The threads that waited for I/O.
#[derive(Default)]
pub(super) struct IoWaiters {
    threads: BTreeSet<(Pid, Tid)>,
    /// The parents of processes that have ended.
    parents: HashMap<Pid, Pid>,
    /// Waits of threads that were too many.
    beyond: u64,
}

/// The groups that limit them, and why there are not more.
pub(super) struct FoundLimits {
    pub(super) groups: Vec<IoLimitedGroup>,
    pub(super) missing: Option<Missing>,
}

/// The limits of each group that was looked at, and who was in or below it.
#[derive(Default)]
struct GroupsAround {
    groups: BTreeMap<PathBuf, IoLimitedGroup>,
    /// Groups that were too many, counted for each thread in them.
    groups_beyond: u64,
    limits_beyond: u64,
}

impl IoWaiters {
    /// Those that the waits of a task walk name.
    pub(super) fn by(tasks: &[u8]) -> IoWaiters {
        let mut waiters = IoWaiters::default();
        waits(tasks).for_each(|wait| waiters.add(&wait));
        waiters
    }

    /// Adds those of a chunk.
    pub(super) fn see(&mut self, chunk: &[u8]) {
        let records = entries(chunk).filter(|entry| entry.kind == RecordKind::Wait);
        records.filter_map(|entry| Wait::read(entry.bytes)).for_each(|wait| self.add(&wait));
    }

    /// Adds the ended processes of a chunk.
    pub(super) fn see_ended(&mut self, chunk: &[u8]) {
        let records = entries(chunk).filter(|entry| entry.kind == RecordKind::Exit);
        for exit in records.filter_map(|entry| Exit::read(entry.bytes)).filter(|exit| exit.head.tid.0 == exit.pid.0) {
            if self.parents.len() < ENDED {
                self.parents.insert(exit.pid, exit.parent);
            }
        }
    }

    fn add(&mut self, wait: &Wait) {
        let thread = (wait.pid, wait.head.tid);
        match wait.state & IO_WAIT != 0 {
            true if self.threads.len() < THREADS || self.threads.contains(&thread) => {
                self.threads.insert(thread);
            }
            true => self.beyond += 1,
            false => {}
        }
    }

    /// The limits of their groups.
    pub(super) fn resolve(self) -> FoundLimits {
        // A thread of this number may be of another process by now.
        let of = |(pid, tid): (Pid, Tid)| text(&format!("/proc/{pid}/task/{tid}/cgroup"), FILE_BYTES);
        self.among(Hierarchy::find(CONTROLLER).as_ref(), of)
    }

    /// A thread, or the nearest parent of its process that lives, with its groups.
    fn living(&self, thread: (Pid, Tid), of: &impl Fn((Pid, Tid)) -> String) -> Option<((Pid, Tid), String)> {
        let parent = |(pid, _): &(Pid, Tid)| self.parents.get(pid).map(|parent| (*parent, Tid(parent.0)));
        let line = std::iter::successors(Some(thread), parent).take(PARENTS);
        line.map(|thread| (thread, of(thread))).find(|(_, groups)| !groups.is_empty())
    }

    fn among(self, hierarchy: Option<&Hierarchy>, of: impl Fn((Pid, Tid)) -> String) -> FoundLimits {
        let mut looked = GroupsAround::default();
        let living = self.threads.iter().filter_map(|thread| self.living(*thread, &of));
        let living: BTreeMap<(Pid, Tid), String> = if hierarchy.is_some() { living.collect() } else { BTreeMap::new() };
        for (thread, groups) in living {
            let group = hierarchy.and_then(|found| Some((found, found.group_in(&groups, CONTROLLER)?)));
            group.into_iter().for_each(|(found, group)| looked.look(found, &group, thread.1));
        }
        let missing = looked.missing(self.beyond);
        let groups = looked.groups.into_values().filter(|group| !group.limits.is_empty()).collect();
        FoundLimits { groups, missing }
    }
}

impl GroupsAround {
    /// Looks at a group and at all above it.
    fn look(&mut self, hierarchy: &Hierarchy, group: &Path, tid: Tid) {
        for group in group.ancestors() {
            if !self.groups.contains_key(group) {
                if self.groups.len() >= GROUPS {
                    self.groups_beyond += 1;
                    continue;
                }
                let (limits, beyond) = limits(hierarchy, group);
                self.limits_beyond += beyond;
                let folder = folder(hierarchy, group).display().to_string();
                self.groups.insert(group.to_owned(), IoLimitedGroup { folder, limits, tids: Vec::new() });
            }
            self.groups.entry(group.to_owned()).and_modify(|group| group.tids.push(tid.0));
        }
    }

    fn missing(&self, waits: u64) -> Option<Missing> {
        let beyond = [
            (waits, "waits of threads", THREADS),
            (self.groups_beyond, "times a group", GROUPS),
            (self.limits_beyond, "limits of a group", LIMITS),
        ];
        let why = beyond.iter().filter(|(count, ..)| *count > 0);
        let why: Vec<String> = why.map(|(count, what, bound)| format!("{count} {what} beyond {bound}")).collect();
        (!why.is_empty()).then(|| Missing { what: "limits on I/O".to_owned(), why: why.join(", ") })
    }
}

/// The folder of a group; of the topmost one the mount itself.
fn folder(hierarchy: &Hierarchy, group: &Path) -> PathBuf {
    hierarchy.mount.components().chain(group.components()).collect()
}

/// The limits of a group, and how many there are beyond those that are kept.
fn limits(hierarchy: &Hierarchy, group: &Path) -> (Vec<IoLimit>, u64) {
    let read = |name: &str| {
        let file = folder(hierarchy, group).join(name).display().to_string();
        (text(&file, FILE_BYTES), file)
    };
    let mut limits: Vec<IoLimit> = match hierarchy.version {
        CgroupVersion::One => KINDS.iter().flat_map(|kind| of_file(&read(kind.0), *kind)).collect(),
        CgroupVersion::Two => {
            let file = read(FILE);
            KINDS.iter().flat_map(|kind| of_key(&file, *kind)).collect()
        }
    };
    let beyond = limits.len().saturating_sub(LIMITS);
    limits.truncate(LIMITS);
    (limits, beyond as u64)
}

/// The limits in a file of version 1: `8:0 1048576`.
fn of_file((text, file): &(String, String), (_, _, write, operations): (&str, &str, bool, bool)) -> Vec<IoLimit> {
    let limit = |line: &str| {
        let (device, amount) = line.split_once(' ')?;
        let (device, per_second) = (device_number(device)?, amount.trim().parse().ok()?);
        Some(IoLimit { file: file.clone(), device, write, operations, per_second })
    };
    whole_lines(text).filter_map(limit).collect()
}

/// The limits with a key of version 2: `8:0 rbps=1048576 wbps=max riops=max wiops=max`.
fn of_key((text, file): &(String, String), (_, key, write, operations): (&str, &str, bool, bool)) -> Vec<IoLimit> {
    let limit = |line: &str| {
        let (device, rest) = line.split_once(' ')?;
        let value = rest.split(' ').find_map(|word| word.split_once('=').filter(|(name, _)| *name == key));
        // No limit is `max`, which does not parse.
        let (device, per_second) = (device_number(device)?, value?.1.parse().ok()?);
        Some(IoLimit { file: file.clone(), device, write, operations, per_second })
    };
    whole_lines(text).filter_map(limit).collect()
}

/// The lines that end with a line break.
fn whole_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'))
}

/// A device in the kernel's encoding.
fn device_number(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some((major << 20) | minor)
}

#[cfg(test)]
mod tests;
